"""What a task calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.attempts import Ending
    from duetime.domain.task import Asked, Phase, Progress, Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Work:
    """What a target is given: the same for a Python handler and for an HTTP service.

    Attributes:
        phase: what it is asked to do.
        task: the record as it was claimed; its `attempt` and `fence` are this attempt's.
        payload: JSON text in UTF-8.
        checkpoint: what a paused attempt left; JSON text in UTF-8.
        deadline: when the attempt must have ended.
        report: tells the task's progress and renews the lease; `None` only renews it.
        asked: what the user asks of the attempt, as of the last heartbeat.
    """

    phase: Phase
    task: Task
    payload: bytes
    checkpoint: bytes | None
    deadline: Millis
    report: Callable[[Progress | None], None]
    asked: Callable[[], Asked | None]


class TargetRunner(Protocol):
    """Calls targets."""

    def phases(self, task: Task) -> frozenset[Phase]:
        """What the task's target offers; `run` is always among it."""
        ...

    def run(self, work: Work) -> Ending:
        """Have the target do one phase and wait for its end. Never raises: whatever goes wrong is a `Failed`."""
        ...
