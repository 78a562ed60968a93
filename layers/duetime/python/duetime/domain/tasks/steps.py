"""Stored results of a handler's steps; each step runs only once over all attempts of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import unless_referenced
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@frozen
class StepResult:
    """The result of a step.

    Attributes:
        phase: phase of the handler; names are unique within a phase.
        name: the name that the handler gave the step.
        attempt: number of the attempt that stored the step.
        fence: fence of that attempt.
        finished_at: when the step's function returned.
        took: how long the step's function took, in milliseconds.
        result: JSON text in UTF-8.
        expires_at: when the step may be removed.
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
    """The time from which a step may be removed, if it was stored, or read by another attempt, at the given time.

    An ended task keeps its steps as long as its record, because a retry may follow; a task that waits for a long time
    keeps its steps for at least `UNREFERENCED_CONTENT_LIFE`.
    """
    return unless_referenced(since + retention).at


def needs_extension(step: StepResult, now: Millis, retention: Millis) -> bool:
    """Whether to extend the expiry of a step that another attempt reads; not every attempt extends the expiry."""
    return step.expires_at - now < (step_expiry(now, retention) - now) // 2
