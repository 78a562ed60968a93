"""Tasks whose targets are jobs that AWS runs: a job's end, its event, and what its user asks for meanwhile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.times import MINUTE, SECOND
from duetime_testing.fakes.stepfunctions import Status
from tests.pairs.operations import OF_TASKS, TRIGGER, WORKER, Operation
from tests.pairs.subjects import Subject, made, named, state_is, worked
from tests.simulation.endpoints import JOBS

if TYPE_CHECKING:
    from tests.pairs.world import World

_MACHINE = {"kind": "step_functions", "arn": JOBS, "wait": True}
_UNHEARD = 6 * MINUTE
"""After this time a job has been looked for, whether or not its event was heard."""


def _end(status: Status, world: World) -> None:
    """End the job that runs, as AWS does; its event is sent."""
    world.point("states.end")
    for job in world.executions_of_tasks.running():
        world.end_execution(job, status, "7")


def _tell_again(world: World) -> None:
    """Send the event of the job's end once more."""
    world.point("events.send")
    for name in world.jobs.names[-1:]:
        world.send_job_event(name)


OF_JOBS = (
    Operation("job-succeeds", partial(_end, Status.SUCCEEDED), is_step=True),
    Operation("job-fails", partial(_end, Status.FAILED), is_step=True),
    Operation("job-event", _tell_again, is_step=True),
)


def job_starting(world: World) -> None:
    """On the queue; its job has not begun."""
    made(world, target=_MACHINE, notify_within_seconds=7200, retry={"max_attempts": 2, "initial_seconds": 1})
    world.time.run_until(world.time.now() + 2 * SECOND)


def job_running(world: World) -> None:
    """Its job runs."""
    job_starting(world)
    worked(world)
    state_is(world, "running")


def job_ended(world: World) -> None:
    """Its job has succeeded; the event is on the queue."""
    job_running(world)
    world.do(partial(_end, Status.SUCCEEDED, world))
    world.time.run_until(world.time.now() + SECOND)


def job_unheard(world: World) -> None:
    """Its job has failed without an event, and the check of it is on the queue."""
    job_running(world)
    for job in world.executions_of_tasks.running():
        job.end(Status.FAILED, world.time.now(), "Boom")
    for _ in range(_UNHEARD // MINUTE):
        world.do(partial(TRIGGER.act, world))
        world.time.run_until(world.time.now() + MINUTE)


_CONTROL = named("get patch-name pause resume run retry cancel cancel-by-force notify-success", OF_TASKS)
_ENDS = named("get pause cancel cancel-by-force notify-success", OF_TASKS)

SUBJECTS = (
    Subject("job-starting", job_starting, (*_ENDS, OF_JOBS[0], WORKER, TRIGGER)),
    Subject("job-running", job_running, (*OF_JOBS, *_CONTROL, WORKER, TRIGGER)),
    Subject("job-ended", job_ended, (*_ENDS, OF_JOBS[-1], WORKER, TRIGGER)),
    Subject("job-unheard", job_unheard, (*_ENDS, OF_JOBS[-1], WORKER, TRIGGER)),
)
