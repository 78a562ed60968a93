"""Users of a simulated account whose tasks are jobs that AWS runs, and the AWS services that run the jobs."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from duetime.domain.times import MINUTE, SECOND, Millis
from duetime_testing.fakes.stepfunctions import Status
from duetime_testing.simulation.faults import Fault
from tests.simulation import works
from tests.simulation.endpoints import CLUSTER, JOB_TARGETS, JOBS, TASK_DEFINITION

if TYPE_CHECKING:
    from duetime_testing.fakes.ecs import FakeEcs
    from duetime_testing.fakes.job_services import FakeJobs
    from duetime_testing.fakes.stepfunctions import Execution
    from duetime_testing.simulation.machines import Machine
    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.users import Users

_MACHINE = {"kind": "step_functions", "arn": JOBS, "wait": True}
_CONTAINER = {"kind": "ecs", "arn": TASK_DEFINITION, "cluster": CLUSTER, "container": "report"}
_TARGETS = (_MACHINE, _CONTAINER, *JOB_TARGETS.values())
_LENGTHS = (0, 1, 20, 100, 400)
"""The durations of jobs, in seconds; some durations exceed the jobs' time limits."""
_STARTS = frozenset({"start_execution", "run_task", "submit_job", "start_build", "start_job_run", "invoke"})
_START_FAULTS = (Fault.CRASH_BEFORE, *2 * (Fault.CRASH_AFTER,), Fault.AWAY, Fault.LOST, Fault.LATE, Fault.STALLED)
_START_RATE = 0.3
"""If there are faults, the probability that a job's start fails, so that the result of the start is unknown."""
_CANCELLED = 0.5
"""The fraction of tasks that are cancelled by force within a minute after their due time."""
_LISTED_AFTER = (0, 0, 1, 30)
"""The delays, in seconds, after which a started job appears in lists."""


class JobUsers:
    """Creates tasks with jobs, and runs the jobs; other users control these tasks in the same way as other tasks.

    Attributes:
        runs_jobs: whether jobs end by themselves; otherwise, the test ends the jobs.
    """

    def __init__(self, simulation: FaultSimulation, users: Users) -> None:
        self.simulation = simulation
        self.users = users
        self.runs_jobs = False
        self._numbers = count(1)

    def use(self, until: Millis) -> None:
        """Create tasks at random; each request is sent up to four times until it is accepted."""
        self.runs_jobs = True
        pick = self.simulation.random.choice
        services: list[FakeEcs | FakeJobs] = [self.simulation.ecs, *self.simulation.job_services.values()]
        for service in services:
            service.listed_after = lambda: pick(_LISTED_AFTER) * SECOND
        while self.simulation.time.now() < until:
            self.simulation.take(self.simulation.random.randrange(1, 30 * SECOND))
            key = f"job-{next(self._numbers)}"
            body: dict[str, Any] = {
                "type": works.PLAIN,
                "name": key,
                "target": pick(_TARGETS),
                "delay_seconds": pick([0, 5, 90]),
                "notify_within_seconds": pick([60, 600]),
                "timeout_seconds": 30,
                "retry": {"max_attempts": pick([1, 3]), "initial_seconds": pick([0, 20])},
            }
            if pick([True, False]):
                body["lock"] = {"key": "job"}
            for _ in range(4):
                answer = self.users.ask("POST", "/v1/tasks", body, headers={"Idempotency-Key": key})
                if answer is not None and answer.status == 201:
                    self._accepted(answer.body["id"], body["delay_seconds"] * SECOND)
                    break
                self.simulation.take(2 * SECOND)

    def _accepted(self, task_id: str, delay: Millis) -> None:
        self.simulation.watching.accepted.append(task_id)
        if self.simulation.random.random() < _CANCELLED:
            self.simulation.time.start_process(partial(self._cancel, task_id, delay))

    def _cancel(self, task_id: str, delay: Millis) -> None:
        self.simulation.take(delay + self.simulation.random.randrange(MINUTE))
        self.users.cancel_by_force(task_id)

    def fault_for(self, machine: Machine, operation: str) -> Fault | None:
        """The fault of a call that starts a job, in addition to the faults that other calls may have."""
        is_start = self.runs_jobs and machine.function == "worker" and operation in _STARTS
        if not is_start or not self.simulation.rate or self.simulation.random.random() >= _START_RATE:
            return None
        fault = self.simulation.random.choice(_START_FAULTS)
        self.simulation.count(f"start {fault.name.lower()}")
        return fault

    def run_execution(self, execution: Execution) -> None:
        """Run an execution until it ends by itself or is stopped."""
        self.simulation.jobs.begun(execution.name, execution.arn)
        if self.runs_jobs:
            self.simulation.time.start_process(partial(self._execute, execution))

    def run_container(self, arn: str) -> None:
        """Run a container until it ends by itself or is stopped."""
        name = self.simulation.ecs.tasks[arn]["startedBy"]
        self.simulation.jobs.begun(name, arn)
        if self.runs_jobs:
            self.simulation.time.start_process(partial(self._contain, arn, name))

    def run_job(self, service: FakeJobs, job: str) -> None:
        """Run a job of another service until it ends by itself or is stopped."""
        self.simulation.jobs.begun(service.names[job], job)
        if self.runs_jobs:
            self.simulation.time.start_process(partial(self._work, service, job))

    def _execute(self, execution: Execution) -> None:
        self.simulation.take(self.simulation.random.choice(_LENGTHS) * SECOND)
        status = self.simulation.random.choice([Status.SUCCEEDED, Status.SUCCEEDED, Status.FAILED, Status.ABORTED])
        self.simulation.end_execution(execution, status, "7")

    def _work(self, service: FakeJobs, job: str) -> None:
        self.simulation.take(self.simulation.random.choice(_LENGTHS) * SECOND)
        self.simulation.end_job(service, job, well=self.simulation.random.choice([True, True, False]))

    def _contain(self, arn: str, name: str) -> None:
        self.simulation.take(self.simulation.random.choice(_LENGTHS) * SECOND)
        if self.simulation.ecs.tasks[arn]["lastStatus"] == "RUNNING":
            self.simulation.ecs.end(arn, self.simulation.random.choice([0, 0, 1]))
            self.simulation.send_job_event(name)
