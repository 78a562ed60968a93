"""Tasks whose targets are jobs that AWS runs, and operations such as a job's end and the delivery of its event."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.times import MINUTE, SECOND
from duetime_testing.fakes.stepfunctions import Status
from tests.pairs.operations import OF_TASKS, TRIGGER, WORKER, Operation
from tests.pairs.subjects import Subject, made, named, state_is, worked
from tests.simulation.endpoints import CLUSTER, JOB_TARGETS, JOBS, TASK_DEFINITION

if TYPE_CHECKING:
    from tests.pairs.world import World

_MACHINE = {"kind": "step_functions", "arn": JOBS, "wait": True}
_CONTAINER = {"kind": "ecs", "arn": TASK_DEFINITION, "cluster": CLUSTER, "container": "report"}
_UNLISTED = 90 * SECOND
"""How long a started job is not listed, which is longer than the lease of the worker that starts the job."""
_UNHEARD = 6 * MINUTE
"""The time after which duetime must have found the end of a job, with or without the job's event."""


def _end(status: Status, world: World) -> None:
    """End the running job as AWS does, and send its event."""
    world.point("states.end")
    for job in world.executions_of_tasks.running():
        world.end_execution(job, status, "7")
        world.about["job_ended_at"] = world.time.now()


def _tell_again(world: World) -> None:
    """Send the event about the job's end once more."""
    world.point("events.send")
    for name in world.jobs.names[-1:]:
        world.send_job_event(name)


def _end_and_work(world: World) -> None:
    """End the job, and process the job's event at once."""
    _end(Status.SUCCEEDED, world)
    WORKER.act(world)


def _tell_and_work_on(world: World) -> None:
    """Send the event about the job's end once more, process the event, and begin the next attempt."""
    _tell_again(world)
    for _ in range(2):
        world.take(3 * SECOND)
        WORKER.act(world)


OF_JOBS = (
    Operation("job-succeeds", partial(_end, Status.SUCCEEDED), is_step=True),
    Operation("job-fails", partial(_end, Status.FAILED), is_step=True),
    Operation("job-event", _tell_again, is_step=True),
)
HEARD = Operation("job-succeeds-and-is-heard", _end_and_work, is_step=True)
NEXT_ATTEMPT = Operation("job-event-and-next-attempt", _tell_and_work_on, is_step=True)


def job_starting(world: World, pause: int = 1) -> None:
    """A task on the queue; its job has not begun."""
    made(world, target=_MACHINE, notify_within_seconds=7200, retry={"max_attempts": 2, "initial_seconds": pause})
    world.time.run_until(world.time.now() + 2 * SECOND)


def job_running(world: World) -> None:
    """A task whose job is running."""
    job_starting(world)
    worked(world)
    state_is(world, "running")


def job_ended(world: World) -> None:
    """A task whose job has succeeded, with the job's event on the queue."""
    job_running(world)
    world.do(partial(_end, Status.SUCCEEDED, world))
    world.time.run_until(world.time.now() + SECOND)


def job_unheard(world: World) -> None:
    """A task whose job has failed without an event; the check of the job is on the queue."""
    job_running(world)
    for job in world.executions_of_tasks.running():
        job.end(Status.FAILED, world.time.now(), "Boom")
    for _ in range(_UNHEARD // MINUTE):
        world.do(partial(TRIGGER.act, world))
        world.time.run_until(world.time.now() + MINUTE)


def job_checked(world: World) -> None:
    """A task whose job has failed without an event after a check of the job; nothing is on the queue."""
    job_running(world)
    for _ in range(_UNHEARD // MINUTE):
        world.do(partial(TRIGGER.act, world))
        world.time.run_until(world.time.now() + MINUTE)
        world.do(partial(WORKER.act, world))
    state_is(world, "running")
    for job in world.executions_of_tasks.running():
        job.end(Status.FAILED, world.time.now(), "Boom")


def job_failed(world: World) -> None:
    """A task whose job has failed, and which may be retried; the job's event is on the queue."""
    job_running(world)
    world.do(partial(_end, Status.FAILED, world))
    world.time.run_until(world.time.now() + SECOND)


def job_lost(world: World) -> None:
    """A task whose job is running, but whose worker died before it recorded the job; the worker's lease has ended."""
    job_starting(world)
    _lose_worker(world)


def job_lost_again(world: World) -> None:
    """A task in its second attempt whose worker died before it recorded the job; the first attempt's job has failed."""
    job_starting(world, 30)
    worked(world)
    world.do(partial(_end, Status.FAILED, world))
    world.time.run_until(world.time.now() + SECOND)
    world.do(partial(WORKER.act, world))
    state_is(world, "waiting")
    world.time.run_until(world.time.now() + MINUTE)
    _lose_worker(world)


def _lose_worker(world: World) -> None:
    """Let a worker die as soon as its job is running, and let the worker's lease end."""
    actor = world.begin(WORKER)
    assert not world.executions_of_tasks.running()
    assert world.run_until(world.executions_of_tasks.running)
    for machine in list(world.machines):
        if machine.strand is not None:
            machine.die()
    assert world.run_until(lambda: actor.is_done)
    world.actors.clear()
    world.time.run_until(world.time.now() + 40 * SECOND)


def job_unlisted(world: World) -> None:
    """A task on the queue whose job runs in a service that lists a job only some time after the job's start."""
    world.job_services["batch"].listed_after = lambda: _UNLISTED
    made(world, target=JOB_TARGETS["batch"], notify_within_seconds=7200, retry={"max_attempts": 2})
    world.time.run_until(world.time.now() + 2 * SECOND)


def job_undescribed(world: World) -> None:
    """A task whose container is running, but is not yet listed or described by the service."""
    world.ecs.listed_after = lambda: _UNLISTED
    made(world, target=_CONTAINER, notify_within_seconds=7200)
    worked(world)
    state_is(world, "running")


_CONTROL = named("get patch-name pause resume run retry cancel cancel-by-force notify-success", OF_TASKS)
_ENDS = named("get pause cancel cancel-by-force notify-success", OF_TASKS)

SUBJECTS = (
    Subject("job-starting", job_starting, (*_ENDS, OF_JOBS[0], HEARD, WORKER, TRIGGER)),
    Subject("job-running", job_running, (*OF_JOBS, *_CONTROL, WORKER, TRIGGER)),
    Subject("job-ended", job_ended, (*_ENDS, OF_JOBS[-1], WORKER, TRIGGER)),
    Subject("job-failed", job_failed, (NEXT_ATTEMPT, WORKER, TRIGGER)),
    Subject("job-lost", job_lost, (*_ENDS, WORKER, TRIGGER)),
    Subject("job-lost-again", job_lost_again, (*_ENDS, WORKER, TRIGGER)),
    Subject("job-unlisted", job_unlisted, (*_ENDS[-2:], WORKER, TRIGGER), lives=True),
    Subject("job-undescribed", job_undescribed, (*_ENDS[-2:], WORKER, TRIGGER), lives=True),
    Subject("job-checked", job_checked, (*_ENDS, WORKER, TRIGGER)),
    Subject("job-unheard", job_unheard, (*_ENDS, OF_JOBS[-1], WORKER, TRIGGER)),
)
