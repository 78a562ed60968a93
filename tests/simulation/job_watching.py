"""What must hold of the jobs that AWS runs for tasks: a task has one at a time, and its end is the attempt's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import JOB_PREFIX, JOB_UNKNOWN, is_job, task_of_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.task import Task
    from tests.simulation.fault_simulation import FaultSimulation

_ENDS = {
    AttemptOutcome.SUCCEEDED: frozenset({True}),
    AttemptOutcome.RETRIED: frozenset({False}),
    AttemptOutcome.FAILED: frozenset({False, None}),
}
"""Whether the job of an attempt has succeeded; `None` if there was none: its start was rejected, or nobody knows."""


class JobWatching:
    """Watches jobs.

    Attributes:
        names: of every job that has begun.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.names: list[str] = []

    def begun(self, name: str) -> None:
        """Look at a job that begins: no other of its task runs."""
        self.names.append(name)
        task_id = task_of_job(name)
        others = [each for each in self.running() if each != name and task_of_job(each) == task_id]
        self._account.watching.check(not others, f"{name} began while {others} ran")

    def running(self) -> Iterator[str]:
        """The names of the jobs that run."""
        yield from (each.name for each in self._account.executions_of_tasks.running())
        yield from (each["startedBy"] for each in self._account.ecs.tasks.values() if each["lastStatus"] == "RUNNING")

    def check_end(self) -> None:
        """No job runs any more, none was begun twice, and each attempt has the outcome of its job."""
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
        return None
