"""Stored results of the steps of a handler, which run once over all attempts of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import unless_referenced

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step.

    Attributes:
        phase: phase of the handler; names are unique within a phase.
        name: name that the handler gave it.
        attempt: number of the attempt that stored it.
        fence: fence of that attempt.
        finished_at: when its function returned.
        took: how long its function took, in milliseconds.
        result: JSON text in UTF-8.
        expires_at: when it may be removed.
    """

    phase: str
    name: str
    attempt: int
    fence: int
    finished_at: Millis
    took: Millis
    result: bytes
    expires_at: Millis


def may_have_steps(task: Task, phase: Phase) -> bool:
    """Whether an earlier attempt may have stored steps of a phase."""
    return task.claims > 1 or phase not in {Phase.PREPARE, Phase.RUN}


def step_expiry(since: Millis, retention: Millis) -> Millis:
    """When a step may be removed that was stored, or read by another attempt, at the given time.

    A task that ends keeps its steps for as long as its record, since a retry may follow; one that waits for a long time
    keeps them for at least `UNREFERENCED_CONTENT_LIFE`.
    """
    return unless_referenced(since + retention).at


def needs_extension(step: StepResult, now: Millis, retention: Millis) -> bool:
    """Whether the expiry of a step that is read by another attempt must be extended; not at each attempt."""
    return step.expires_at - now < (step_expiry(now, retention) - now) // 2
