"""Invariants of the jobs that AWS runs for tasks: a task has one job at a time, and a job's end ends the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import JOB_PREFIX, JOB_UNKNOWN, is_job, task_of_job
from duetime.domain.tasks.states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task import Task
    from tests.simulation.fault_simulation import FaultSimulation

_ENDS = {
    AttemptOutcome.SUCCEEDED: frozenset({True}),
    AttemptOutcome.RETRIED: frozenset({False}),
    AttemptOutcome.FAILED: frozenset({False, None}),
}
"""The possible results of the job, by the attempt's outcome; `None` if there was no job or its result is unknown."""


class JobWatching:
    """Watches jobs.

    Attributes:
        names: the names of all jobs that have begun.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.names: list[str] = []

    def begun(self, name: str, job: str) -> None:
        """Check, when a job begins, that the task has no other running job and has not ended."""
        self.names.append(name)
        if (task_id := task_of_job(name)) is None:
            return
        others = [each for each in self.running_of(task_id) if each != job]
        self._account.watching.check(not others, f"{name} began while {others} ran")
        task = self._account.watching.record(task_id)
        has_ended = task is not None and task.is_terminal
        self._account.watching.check(not has_ended, f"{name} began although its task has ended")

    def written(self, name: str, before: State, after: State) -> None:
        """Check that a task that ends has no running job."""
        if after in TERMINAL and before not in TERMINAL:
            left = list(self.running_of(name))
            self._account.watching.check(not left, f"{name} is {after}, and {left} is left running")

    def running(self) -> Iterator[tuple[str, str]]:
        """The running jobs, each with the job's name."""
        yield from ((each.name, each.arn) for each in self._account.executions_of_tasks.running())
        containers = self._account.ecs.tasks.items()
        yield from ((each["startedBy"], arn) for arn, each in containers if each["lastStatus"] == "RUNNING")
        for service in self._account.job_services.values():
            yield from ((service.names[job], job) for job in service.running() if job in service.names)

    def running_of(self, task_id: str) -> Iterator[str]:
        """The running jobs of a task."""
        return (job for name, job in self.running() if task_of_job(name) == task_id)

    def check_end(self) -> None:
        """Check that no job is running, no job was begun twice, and each attempt has the outcome of its job."""
        check = self._account.watching.check
        check(not list(self.running()), f"{list(self.running())} are still running")
        check(len(set(self.names)) == len(self.names), "a job was begun twice")
        for task in self._account.watching.tasks():
            if is_job(task.target) and not task.erased:
                self._check_outcomes(task)

    def _check_outcomes(self, task: Task) -> None:
        before = 0
        for line in task.attempt_history:
            succeeded = self._has_succeeded(f"{JOB_PREFIX}{task.id}-{before}")
            error = line.error or (task.error if line is task.attempt_history[-1] else None)
            is_known = error is None or error.type != JOB_UNKNOWN
            if line.outcome in _ENDS and is_known:
                is_so = succeeded in _ENDS[line.outcome]
                self._account.watching.check(is_so, f"{task.id}: {line.outcome} after {succeeded} of job {before}")
            before = line.fence

    def _has_succeeded(self, name: str) -> bool | None:
        for execution in self._account.executions_of_tasks.executions.values():
            if execution.name == name:
                return execution.status == "SUCCEEDED"
        for task in self._account.ecs.tasks.values():
            if task["startedBy"] == name:
                return bool(task["containers"]) and task["containers"][0].get("exitCode") == 0
        for service in self._account.job_services.values():
            for job, known in service.names.items():
                if known == name:
                    return service.has_succeeded(job)
        return None
