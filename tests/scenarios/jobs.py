"""Helpers for scenarios with tasks whose targets are jobs that AWS runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.stepfunctions import Status
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import Tasks
from tests.simulation.account import LEASE_SECONDS
from tests.simulation.endpoints import CLUSTER, JOB_TARGETS, JOBS, TASK_DEFINITION

if TYPE_CHECKING:
    from duetime_testing.fakes.stepfunctions import Execution

MACHINE = {"kind": "step_functions", "arn": JOBS, "wait": True}
CONTAINER = {"kind": "ecs", "arn": TASK_DEFINITION, "cluster": CLUSTER, "container": "report"}
JOB_KINDS: dict[str, dict[str, Any]] = {"states": MACHINE, "ecs": CONTAINER, **JOB_TARGETS}
"""A target for each AWS service that runs jobs, by the service's boto3 name."""
STARTS = {"start_execution", "run_task", "submit_job", "start_build", "start_job_run", "invoke"}
"""The calls that start jobs."""
LEASE = LEASE_SECONDS * SECOND
SOON = 5 * SECOND


class Jobs(Tasks):
    """An account with tasks whose targets are jobs."""

    def create_job(self, target: dict[str, Any] = MACHINE, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task with a job and let it start."""
        task_id = self.create(target=target, **{"notify_within_seconds": 7200, **fields})
        assert self.run_until(lambda: self.record(task_id).awaiting_notification, MINUTE)
        return task_id

    def running(self) -> list[str]:
        """The running jobs of all services."""
        return [job for _name, job in self.jobs.running()]

    def end_running(self) -> None:
        """End the only running job successfully, and send its event."""
        (job,) = self.running()
        if job in self.ecs.tasks:
            self.end_container(0)
            return
        for service in self.job_services.values():
            if job in service.jobs:
                self.end_job(service, job, well=True)
                return
        self.end()

    @property
    def executions(self) -> list[Execution]:
        """The executions that the tasks have started."""
        return list(self.executions_of_tasks.executions.values())

    def end(self, status: Status = Status.SUCCEEDED, output: str = '{"rows": 7}', *, heard: bool = True) -> None:
        """End the only running execution; its event is lost if `heard` is false."""
        (execution,) = self.executions_of_tasks.running()
        if heard:
            self.end_execution(execution, status, output)
        else:
            execution.output = output
            execution.end(status, self.now, "Boom")

    def end_container(self, code: int | None, stop_code: str = "EssentialContainerExited") -> None:
        """End the latest ECS task, and send its event."""
        arn = list(self.ecs.tasks)[-1]
        self.ecs.end(arn, code, stop_code, "why")
        self.send_job_event(self.ecs.tasks[arn]["startedBy"])
