"""Logs the tracebacks of failed attempts, and stores the latest one of each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.content import after_record
from duetime.domain.tracebacks import AttemptTraceback

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.notices import ConsolePages
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import TracebackStore


@dataclass(frozen=True, slots=True)
class TracebackRecorder:
    """Logs and stores tracebacks.

    Attributes:
        is_kept: whether tracebacks are stored, at one more write for each failed attempt, or only logged.
        retention: how long one is kept, in milliseconds; as long as finished tasks.
        pages: links of log lines to the console.
    """

    store: TracebackStore
    runtime: Runtime
    is_kept: bool
    retention: Millis
    pages: ConsolePages

    def record(self, task: Task, failed: Failed) -> None:
        """Log a traceback, and store it if the store answers: the outcome must not wait for it."""
        if not failed.traceback:
            return
        telemetry = self.runtime.telemetry
        telemetry.note(
            "an attempt failed", error=failed.error.type, traceback=failed.traceback, **self.pages.link(task)
        )
        if not self.is_kept:
            return
        expiry = after_record(self.runtime.now() + self.retention)
        try:
            self.store.keep(task.id, AttemptTraceback(task.fence, failed.traceback), expiry)
        except Unavailable as error:
            telemetry.note("a traceback was not kept", error=str(error))
