"""The store of the tracebacks of last failed attempts.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.content import Expiry
    from duetime.domain.tracebacks import AttemptTraceback


class TracebackStore(Protocol):
    """One traceback a task: that of the attempt with the highest fence."""

    def keep(self, task_id: TaskId, traceback: AttemptTraceback, expiry: Expiry) -> None:
        """Keep a traceback in the place of the one before; not in that of a later attempt. Safe to resend."""
        ...

    def find(self, task_id: TaskId) -> AttemptTraceback | None:
        """The traceback that is kept for a task; `None` for none."""
        ...
