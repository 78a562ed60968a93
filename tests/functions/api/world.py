"""Functions that change a task in the way in which a worker would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_run import Claimant, Run
from duetime.domain.tasks.states import Move
from duetime.services.enqueue import message_for

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from tests.clocks import StandingClock


def claimed_by_a_worker(task_id: str, clock: StandingClock, lease: Millis = 30_000) -> Task:
    """Let a worker claim a due task, and return the task."""
    tasks = composed(CoreServices).stores.tasks
    task = tasks.read(TaskId.parse(task_id))
    assert task is not None
    message = message_for(task)
    claim = tasks.apply(Claimant("worker", clock.now(), lease).claim(message, f"claim {task.version}"))
    assert isinstance(claim, Applied)
    return claim.task


def ended_by_a_worker(task_id: str, clock: StandingClock, ending: Ending, took: Millis = 480) -> Task:
    """Let a worker claim a due task and end its attempt, and return the task."""
    task = claimed_by_a_worker(task_id, clock)
    started, clock.at = clock.at, clock.at + took
    end = composed(TaskServices).attempt_reports.outcome_writer.finish(
        Run(task, started, clock.at), ending, frozenset()
    )
    assert isinstance(end, Applied)
    return end.task


def closed_by_a_worker(task: Task, clock: StandingClock) -> None:
    """Let a worker complete the steps that follow an outcome."""
    close = Write(task.id, Move.CLOSE, "close", Guard(fence=task.fence), {"finished_at": clock.at})
    assert isinstance(composed(CoreServices).stores.tasks.apply(close), Applied)
