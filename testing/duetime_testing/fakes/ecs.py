"""A fake of ECS that runs, stops and describes tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.errors import Exceptions

if TYPE_CHECKING:
    from collections.abc import Callable

_DESCRIBED = 3_600_000
"""How long DescribeTasks still returns a stopped task, in milliseconds (Source: ECS API Reference, DescribeTasks)."""


class FakeEcs:
    """An ECS client with in-memory tasks.

    Attributes:
        now: returns the time in milliseconds.
        has_capacity: whether a task can be placed.
        begin: called with the ARN of a placed task.
        over: called with the name of a stopped task.
        tasks: descriptions of all tasks, by ARN.
        requests: the request that started each task, by ARN.
        listed_after: returns the milliseconds until the service lists and describes a new task.
    """

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.now = now
        self.has_capacity = True
        self.over: Callable[[str], None] = lambda _name: None
        self.begin: Callable[[str], None] = lambda _arn: None
        self.exceptions = Exceptions()
        self.tasks: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.listed_after: Callable[[], int] = lambda: 0
        self._listed_at: dict[str, int] = {}
        self._stopped_at: dict[str, int] = {}

    def run_task(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Run a task; repeated requests with the same token to the same cluster start only one task.

        Source: ECS API Reference, RunTask and "Ensuring idempotency".
        """
        for arn, known in self.requests.items():
            if (known["cluster"], known["clientToken"]) == (request["cluster"], request["clientToken"]):
                if known != request:
                    raise self.exceptions.make("ConflictException", "RunTask", "clientToken", resourceIds=[arn])
                return {"tasks": [self.tasks[arn]], "failures": []}
        if not self.has_capacity:
            return {"tasks": [], "failures": [{"reason": "RESOURCE:MEMORY"}]}
        arn = f"{request['cluster'].replace(':cluster/', ':task/')}/{len(self.tasks):032x}"
        names = [each["name"] for each in request["overrides"]["containerOverrides"]]
        self.requests[arn] = request
        self._listed_at[arn] = self.now() + self.listed_after()
        self.tasks[arn] = {
            "taskArn": arn,
            "startedBy": request["startedBy"],
            "lastStatus": "RUNNING",
            "containers": [{"name": name} for name in names],
        }
        self.begin(arn)
        return {"tasks": [self.tasks[arn]], "failures": []}

    def list_tasks(self, *, cluster: str, startedBy: str) -> dict[str, Any]:
        """List a cluster's running tasks that were started with the given `startedBy`."""
        running = (arn for arn, task in self.tasks.items() if task["lastStatus"] != "STOPPED")
        listed = [arn for arn in running if self._listed_at.get(arn, 0) <= self.now()]
        request = {"cluster": cluster, "startedBy": startedBy}
        return {"taskArns": [arn for arn in listed if self.requests[arn].items() >= request.items()]}

    def describe_tasks(self, *, cluster: str, tasks: list[str]) -> dict[str, Any]:
        """Describe tasks, except tasks that were stopped long ago or are not listed yet."""
        del cluster
        there = [arn for arn in tasks if arn in self.tasks and self._listed_at.get(arn, 0) <= self.now()]
        known = [arn for arn in there if self._is_described(arn)]
        missing = [{"arn": arn, "reason": "MISSING"} for arn in tasks if arn not in known]
        return {"tasks": [self.tasks[arn] for arn in known], "failures": missing}

    def stop_task(self, *, cluster: str, task: str, reason: str) -> dict[str, Any]:
        """Stop a task."""
        del cluster
        if task not in self.tasks:
            raise self.exceptions.make("InvalidParameterException", "StopTask", "The referenced task was not found.")
        if self.tasks[task]["lastStatus"] != "STOPPED":
            self.end(task, None, "UserInitiated", reason)
            self.over(self.tasks[task]["startedBy"])
        return {"task": self.tasks[task]}

    def end(
        self, arn: str, exit_code: int | None, stop_code: str = "EssentialContainerExited", reason: str = ""
    ) -> None:
        """End a task as if its containers had exited or a user had stopped the task."""
        task = self.tasks[arn]
        if task["lastStatus"] == "STOPPED":
            return
        task |= {"lastStatus": "STOPPED", "stopCode": stop_code, "stoppedReason": reason}
        task["containers"] = [{**each, "exitCode": exit_code} for each in task["containers"] if exit_code is not None]
        self._stopped_at[arn] = self.now()

    def _is_described(self, arn: str) -> bool:
        return self.now() < self._stopped_at.get(arn, self.now()) + _DESCRIBED
