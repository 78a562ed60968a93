"""Fakes of services that run jobs: Batch, CodeBuild, Glue, and Lambda durable functions.

ECS and Step Functions have separate modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.errors import Exceptions

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME, _TASK = "DUETIME_JOB", "DUETIME_TASK"
_PLACE = "us-east-1:123456789012"


class FakeJobs:
    """The base class of fake services that run jobs.

    Attributes:
        begin: called when a job begins.
        over: called when a job is stopped.
        has_capacity: whether a job can be started.
        jobs: descriptions of all jobs, by the service's identifier.
        names: the job names given by tasks, by the service's identifier.
        facts: the task data passed to each job.
        listed_after: returns the milliseconds until the service lists a new job.
    """

    state_field: str
    """Name of the field in a job's description that contains the job's state."""

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.now = now
        self.listed_after: Callable[[], int] = lambda: 0
        self._listed_at: dict[str, int] = {}
        self.begin: Callable[[FakeJobs, str], None] = lambda _service, _job: None
        self.over: Callable[[FakeJobs, str], None] = lambda _service, _job: None
        self.has_capacity = True
        self.exceptions = Exceptions()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        self.facts: dict[str, str] = {}

    def event(self, job: str) -> str | list[str]:
        """How the EventBridge rule's message about an ended job identifies the job."""
        return self.names[job]

    def running(self) -> list[str]:
        """The running jobs."""
        return [job for job in self.jobs if self.is_running(job)]

    def is_running(self, job: str) -> bool:
        """Whether a job is running."""
        raise NotImplementedError

    def has_succeeded(self, job: str) -> bool:
        """Whether a job has succeeded."""
        return bool(self.jobs[job][self.state_field] == "SUCCEEDED")

    def end(self, job: str, *, well: bool) -> None:
        """End a job."""
        raise NotImplementedError

    def _begun(self, job: str, name: str, facts: str, described: dict[str, Any]) -> None:
        self.jobs[job], self.names[job], self.facts[job] = described, name, facts
        self._listed_at[job] = self.now() + self.listed_after()
        self.begin(self, job)

    def _listed(self) -> dict[str, dict[str, Any]]:
        """The jobs that the service already lists, in the order in which they were started."""
        return {job: each for job, each in self.jobs.items() if self._listed_at.get(job, 0) <= self.now()}

    def _stopped(self, job: str, state: dict[str, Any]) -> None:
        if self.is_running(job):
            self.jobs[job] |= state
            self.over(self, job)


class FakeBatch(FakeJobs):
    """An AWS Batch client; AWS Batch does not require unique job names. Source: AWS Batch API Reference."""

    state_field = "status"

    def is_running(self, job: str) -> bool:
        """Whether a job has not ended."""
        return self.jobs[job]["status"] not in {"SUCCEEDED", "FAILED"}

    def end(self, job: str, *, well: bool) -> None:
        """End a job as if its container had exited."""
        self.jobs[job] |= {
            "status": "SUCCEEDED" if well else "FAILED",
            "statusReason": "Essential container in task exited",
            "container": {"exitCode": 0 if well else 3},
        }

    def submit_job(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Start a job."""
        job = f"{len(self.jobs):08x}-0000-4000-8000-000000000000"
        arn = f"arn:aws:batch:{_PLACE}:job/{job}"
        variables = {each["name"]: each["value"] for each in request["containerOverrides"]["environment"]}
        name = request["jobName"]
        self._begun(
            job,
            name,
            variables[_TASK],
            {
                "jobArn": arn,
                "jobId": job,
                "jobName": name,
                "jobQueue": request["jobQueue"],
                "jobDefinition": request["jobDefinition"],
                "status": "RUNNABLE",
                "startedAt": 0,
            },
        )
        return {"jobArn": arn, "jobId": job, "jobName": name}

    def list_jobs(self, *, jobQueue: str, filters: list[dict[str, Any]]) -> dict[str, Any]:
        """List a queue's jobs that have a given name, in any state."""
        (names,) = (each["values"] for each in filters if each["name"] == "JOB_NAME")
        kept = ("jobArn", "jobId", "jobName", "status")
        listed = self._listed().values()
        of_name = [each for each in listed if each["jobQueue"] == jobQueue and each["jobName"] in names]
        return {"jobSummaryList": [{field: each[field] for field in kept} for each in of_name]}

    def describe_jobs(self, *, jobs: list[str]) -> dict[str, Any]:
        """Describe jobs by their ids."""
        return {"jobs": [self.jobs[job] for job in jobs if job in self.jobs]}

    def terminate_job(self, *, jobId: str, reason: str) -> dict[str, Any]:
        """Stop a job."""
        self._stopped(jobId, {"status": "FAILED", "statusReason": reason, "isTerminated": True})
        return {}


class FakeCodeBuild(FakeJobs):
    """A CodeBuild client that does not remember idempotency tokens. Source: CodeBuild API Reference."""

    state_field = "buildStatus"

    def event(self, job: str) -> str | list[str]:
        """The service, Region, project and ARN, which identify a build in the message."""
        return ["codebuild", "us-east-1", self.jobs[job]["projectName"], self.jobs[job]["arn"]]

    def is_running(self, job: str) -> bool:
        """Whether a build is running."""
        return bool(self.jobs[job]["buildStatus"] == "IN_PROGRESS")

    def end(self, job: str, *, well: bool) -> None:
        """End a build."""
        phase: dict[str, Any] = {"phaseType": "BUILD", "phaseStatus": "FAILED", "contexts": [{"message": "exit 1"}]}
        if well:
            phase = {"phaseType": "BUILD", "phaseStatus": "SUCCEEDED"}
        self.jobs[job] |= {
            "buildStatus": "SUCCEEDED" if well else "FAILED",
            "phases": [phase],
            "exportedEnvironmentVariables": [{"name": "ROWS", "value": "7"}],
        }

    def start_build(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Start a build."""
        if not self.has_capacity:
            raise self.exceptions.make("AccountLimitExceededException", "StartBuild")
        project = request["projectName"]
        job = f"{project}:{len(self.jobs):08x}-0000-4000-8000-000000000000"
        variables = request["environmentVariablesOverride"]
        values = {each["name"]: each["value"] for each in variables}
        build: dict[str, Any] = {
            "id": job,
            "arn": f"arn:aws:codebuild:{_PLACE}:build/{job}",
            "projectName": project,
            "buildStatus": "IN_PROGRESS",
            "environment": {
                "type": "LINUX_CONTAINER",
                "image": "aws/codebuild/standard:7.0",
                "computeType": "BUILD_GENERAL1_SMALL",
                "environmentVariables": variables,
            },
        }
        self._begun(job, values[_NAME], values[_TASK], build)
        return {"build": build}

    def list_builds_for_project(self, *, projectName: str, sortOrder: str) -> dict[str, Any]:
        """List a project's latest builds."""
        assert sortOrder == "DESCENDING"
        ids = [job for job, build in self._listed().items() if build["projectName"] == projectName]
        return {"ids": ids[:-101:-1]} if ids else {}

    def batch_get_builds(self, *, ids: list[str]) -> dict[str, Any]:
        """Describe builds."""
        return {"builds": [self.jobs[job] for job in ids if job in self.jobs]}

    def stop_build(self, *, id: str) -> dict[str, Any]:  # noqa: A002 - boto3's own
        """Stop a build."""
        self._stopped(id, {"buildStatus": "STOPPED"})
        return {"build": self.jobs[id]}


class FakeGlue(FakeJobs):
    """A Glue client. Source: AWS Glue Web API Reference."""

    state_field = "JobRunState"

    def event(self, job: str) -> str | list[str]:
        """The service, Region, job name and id, which identify a run in the message."""
        return ["glue", "us-east-1", self.jobs[job]["JobName"], job]

    def is_running(self, job: str) -> bool:
        """Whether a run is active."""
        return bool(self.jobs[job]["JobRunState"] == "RUNNING")

    def end(self, job: str, *, well: bool) -> None:
        """End a run."""
        self.jobs[job] |= (
            {"JobRunState": "SUCCEEDED"} if well else {"JobRunState": "FAILED", "ErrorMessage": "no table"}
        )

    def start_job_run(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Start a run."""
        if not self.has_capacity:
            raise self.exceptions.make("ConcurrentRunsExceededException", "StartJobRun")
        job, arguments = f"jr_{len(self.jobs):08x}", request["Arguments"]
        described = {"Id": job, "JobName": request["JobName"], "JobRunState": "RUNNING", "Arguments": arguments}
        self._begun(job, arguments[f"--{_NAME}"], arguments[f"--{_TASK}"], described)
        return {"JobRunId": job}

    def get_job_runs(self, *, JobName: str, MaxResults: int) -> dict[str, Any]:
        """List a job's runs, latest first."""
        runs = [run for run in self._listed().values() if run["JobName"] == JobName]
        return {"JobRuns": runs[::-1][:MaxResults]}

    def get_job_run(self, *, JobName: str, RunId: str) -> dict[str, Any]:
        """Describe a run."""
        if RunId not in self.jobs or self.jobs[RunId]["JobName"] != JobName:
            raise self.exceptions.make("EntityNotFoundException", "GetJobRun")
        return {"JobRun": self.jobs[RunId]}

    def batch_stop_job_run(self, *, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:
        """Stop runs."""
        for job in JobRunIds:
            self._stopped(job, {"JobRunState": "STOPPED"})
        return {"SuccessfulSubmissions": [{"JobName": JobName, "JobRunId": job} for job in JobRunIds], "Errors": []}


class FakeDurableFunctions(FakeJobs):
    """A Lambda client that invokes durable functions.

    Source: Lambda API Reference; Lambda Developer Guide, "Idempotency" of durable functions.
    """

    state_field = "Status"

    def is_running(self, job: str) -> bool:
        """Whether an execution is running."""
        return bool(self.jobs[job]["Status"] == "RUNNING")

    def end(self, job: str, *, well: bool) -> None:
        """End an execution."""
        failed = {"Status": "FAILED", "Error": {"ErrorType": "Boom", "ErrorMessage": "why"}}
        self.jobs[job] |= {"Status": "SUCCEEDED", "Result": '{"rows": 7}'} if well else failed

    def invoke(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Start an execution once per name; a repeated request with the same name must have the same payload."""
        assert request["InvocationType"] == "Event"
        name, payload = request["DurableExecutionName"], request["Payload"].decode()
        for job, known in self.names.items():
            if known == name and self.facts[job] != payload:
                raise self.exceptions.make("DurableExecutionAlreadyStartedException", "Invoke")
            if known == name:
                return {"StatusCode": 202, "DurableExecutionArn": job}
        function = ":".join(request["FunctionName"].split(":")[:7])
        job = f"{function}:3/durable-execution/{name}/{len(self.jobs):08x}"
        described = {
            "DurableExecutionArn": job,
            "DurableExecutionName": name,
            "FunctionArn": function,
            "Status": "RUNNING",
            "StartTimestamp": 0,
        }
        self._begun(job, name, payload, described)
        return {"StatusCode": 202, "DurableExecutionArn": job}

    def list_durable_executions_by_function(self, *, FunctionName: str, DurableExecutionName: str) -> dict[str, Any]:
        """List a function's executions that have a given name."""
        kept = ("DurableExecutionArn", "DurableExecutionName", "FunctionArn", "Status", "StartTimestamp")
        found = [
            {field: each[field] for field in kept}
            for each in self._listed().values()
            if each["FunctionArn"] == FunctionName and each["DurableExecutionName"] == DurableExecutionName
        ]
        return {"DurableExecutions": found}

    def get_durable_execution(self, *, DurableExecutionArn: str) -> dict[str, Any]:
        """Describe an execution."""
        if DurableExecutionArn not in self.jobs:
            raise self.exceptions.make("ResourceNotFoundException", "GetDurableExecution")
        return self.jobs[DurableExecutionArn]

    def stop_durable_execution(self, *, DurableExecutionArn: str, Error: dict[str, Any]) -> dict[str, Any]:
        """Stop an execution."""
        self._stopped(DurableExecutionArn, {"Status": "STOPPED", "Error": Error})
        return {"StopTimestamp": 0}
