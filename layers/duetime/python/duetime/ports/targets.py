"""What a task calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.attempts import Ending
    from duetime.domain.task import Progress, Target, Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Work:
    """What a target is given: the same for a Python handler and for an HTTP service.

    Attributes:
        task: the record as it was claimed; its `attempt` and `fence` are this attempt's.
        payload: JSON text in UTF-8.
        deadline: when the attempt must have ended.
        report: tells the task's progress and renews the lease; `None` only renews it.
    """

    task: Task
    payload: bytes
    deadline: Millis
    report: Callable[[Progress | None], None]


class TargetRunner(Protocol):
    """Calls targets of one kind."""

    def run(self, target: Target, work: Work) -> Ending:
        """Call the target and wait for its end. Never raises: whatever goes wrong is a `Failed`."""
        ...
