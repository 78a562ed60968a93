"""Fields of targets: URLs, ARNs and options."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, each_once, printable
from duetime.domain.limits import (
    MAX_ARN_LENGTH,
    MAX_DEADLINE_SECONDS,
    MAX_DETAIL_TYPE_LENGTH,
    MAX_PARAMETERS,
    MAX_REQUEST_BYTES,
    MAX_URL_LENGTH,
)
from duetime.domain.tasks import placeholders
from duetime.domain.tasks.arns import AwsService, arn_pattern, cluster_pattern, job_queue_pattern

TargetKind = Literal[
    "handler",
    "http",
    "pull",
    "topology",
    "approval",
    "lambda",
    "sqs",
    "sns",
    "eventbridge",
    "step_functions",
    "ecs",
    "batch",
    "codebuild",
    "glue",
]
ApprovalSeconds = Annotated[
    int, Field(ge=1, le=MAX_DEADLINE_SECONDS, description="How long after it is due it waits for a decision.")
]
# The characters of RFC 3986, all ASCII: no spaces, control characters or backslashes, which parsers interpret
# differently.
_URI = re.compile(r"[A-Za-z0-9:/?#\[\]@!$&'()*+,;=._~%-]+")


def http_url(text: str) -> str:
    """Rejects texts that are not HTTP URLs, or contain credentials."""
    if _URI.fullmatch(text) is None:
        raise ValueError("contains a character that no URL has; percent-encode it")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError("should be an http or https URL with a host")
    if "@" in parts.netloc:
        raise ValueError("contains credentials, which would be stored and shown")
    return text


def target_url(text: str) -> str:
    """Rejects texts that are not HTTP URLs after replacing placeholders; placeholders are not allowed in the host."""
    if why := placeholders.refusal(text):
        raise ValueError(why)
    http_url(placeholders.sample_url(text))
    authority = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]
    if placeholders.PREFIX in authority:
        raise ValueError("has a placeholder in its host; only its path and its query may hold one")
    return text


TargetPhases = Annotated[
    list[Literal["prepare", "clean", "rollback"]],
    Field(
        description="Phases that the endpoint supports besides `run`.",
        examples=[["prepare", "rollback"]],
        json_schema_extra={"uniqueItems": True},
    ),
    AfterValidator(each_once),
]
OfferedQueries = Annotated[
    list[Literal["status", "progress", "summary"]],
    Field(
        description="Queries that the endpoint answers: see `POST /v1/tasks/{task_id}/query`.",
        examples=[["status"]],
        json_schema_extra={"uniqueItems": True},
    ),
    AfterValidator(each_once),
]
TargetUrl = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description="http or https, with a host and without credentials. Path and query may hold placeholders such "
        "as `<duetime.task-id>`.",
        examples=["https://example.org/report"],
        json_schema_extra={"format": "uri"},
    ),
    AfterValidator(target_url),
]
CallbackUrl = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description="URL that the outcome is posted to, signed: http or https, with a host and without credentials.",
        examples=["https://example.org/task-ended"],
        json_schema_extra={"format": "uri", "pattern": "^https?://"},
    ),
    AfterValidator(http_url),
]


def _arn(service: AwsService, example: str) -> Any:  # noqa: ANN401 - what stands behind a field's type
    return Field(
        max_length=MAX_ARN_LENGTH,
        pattern=arn_pattern(service),
        description="ARN of the AWS resource; it must match a pattern in the deployment's settings.",
        examples=[example],
    )


FunctionArn = Annotated[str, _arn(AwsService.LAMBDA, "arn:aws:lambda:eu-west-1:123456789012:function:report")]
QueueArn = Annotated[str, _arn(AwsService.SQS, "arn:aws:sqs:eu-west-1:123456789012:reports")]
TopicArn = Annotated[str, _arn(AwsService.SNS, "arn:aws:sns:eu-west-1:123456789012:reports")]
EventBusArn = Annotated[str, _arn(AwsService.EVENTBRIDGE, "arn:aws:events:eu-west-1:123456789012:event-bus/default")]
StateMachineArn = Annotated[
    str, _arn(AwsService.STEP_FUNCTIONS, "arn:aws:states:eu-west-1:123456789012:stateMachine:report")
]
LambdaMode = Annotated[
    Literal["sync", "async", "durable"],
    Field(
        description="`sync`: the function's result is the outcome. `async`: the function reports its outcome later. "
        "`durable`: the end of its durable execution is the outcome, within `notify_within_seconds`; the ARN has a "
        "version or an alias."
    ),
]
DetailType = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_DETAIL_TYPE_LENGTH,
        description="Detail type of the event; the type of the task if left out.",
    ),
    AfterValidator(printable),
]
DefinitionName = Annotated[
    str, Field(pattern=SCHEDULE_NAME_PATTERN, description="Name of the topology definition.", examples=["nightly"])
]
DefinitionNumber = Annotated[
    int, Field(ge=1, description="Version of the definition; null for the latest when the run is created.")
]
RunParameters = Annotated[
    dict[str, Any],
    Field(
        max_length=MAX_PARAMETERS,
        description="Values of the parameters that the definition declares; those with a default may be left out.",
        examples=[{"region": "eu-west-1"}],
    ),
]
TaskDefinitionArn = Annotated[str, _arn(AwsService.ECS, "arn:aws:ecs:eu-west-1:123456789012:task-definition/report:7")]
ClusterArn = Annotated[
    str,
    Field(
        max_length=MAX_ARN_LENGTH,
        pattern=cluster_pattern(),
        description="ARN of the cluster that the task runs on; it must match a pattern in the deployment's settings.",
        examples=["arn:aws:ecs:eu-west-1:123456789012:cluster/reports"],
    ),
]
JobDefinitionArn = Annotated[str, _arn(AwsService.BATCH, "arn:aws:batch:eu-west-1:123456789012:job-definition/report")]
JobQueueArn = Annotated[
    str,
    Field(
        max_length=MAX_ARN_LENGTH,
        pattern=job_queue_pattern(),
        description="ARN of the job queue; it must match a pattern in the deployment's settings.",
        examples=["arn:aws:batch:eu-west-1:123456789012:job-queue/reports"],
    ),
]
ProjectArn = Annotated[str, _arn(AwsService.CODEBUILD, "arn:aws:codebuild:eu-west-1:123456789012:project/report")]
GlueJobArn = Annotated[str, _arn(AwsService.GLUE, "arn:aws:glue:eu-west-1:123456789012:job/report")]
CONTAINER_PATTERN = "^[A-Za-z0-9_-]{1,255}$"
ContainerName = Annotated[
    str,
    Field(
        pattern=CONTAINER_PATTERN,
        description="Container of the task definition that is given the task, as the variable `DUETIME_TASK`, and "
        "whose exit code is the outcome.",
        examples=["report"],
    ),
]
WaitsForEnd = Annotated[
    bool,
    Field(
        description="Whether the execution's end is the outcome, within `notify_within_seconds`; if not, its start is."
    ),
]


def _of_request(request: str, example: dict[str, Any]) -> Any:  # noqa: ANN401 - what stands behind a field's type
    return Field(description=f"Further fields of the request {request}, under its names.", examples=[example])


def _without(*ours: str) -> Any:  # noqa: ANN401 - same
    def check(value: dict[str, Any]) -> dict[str, Any]:
        """Rejects parameters that the scheduler sets itself, and objects that are too large for a record."""
        if given := sorted(value.keys() & ours):
            raise ValueError(f"cannot have {given[0]!r}, which duetime sets")
        if len(json.dumps(value).encode()) > MAX_REQUEST_BYTES:
            raise ValueError(f"has more than {MAX_REQUEST_BYTES} bytes")
        return value

    return AfterValidator(check)


RunTaskParameters = Annotated[
    dict[str, Any],
    _of_request("`RunTask` of ECS", {"launchType": "FARGATE"}),
    _without("cluster", "taskDefinition", "startedBy", "clientToken", "count"),
]
SubmitJobParameters = Annotated[
    dict[str, Any],
    _of_request("`SubmitJob` of Batch", {"parameters": {"month": "2026-11"}}),
    _without("jobName", "jobQueue", "jobDefinition"),
]
StartBuildParameters = Annotated[
    dict[str, Any],
    _of_request("`StartBuild` of CodeBuild", {"sourceVersion": "main"}),
    _without("projectName", "idempotencyToken"),
]
StartJobRunParameters = Annotated[
    dict[str, Any], _of_request("`StartJobRun` of Glue", {"WorkerType": "G.1X"}), _without("JobName", "JobRunId")
]
JobParameters = Annotated[dict[str, Any], Field(description="Further fields of the request that starts a job.")]
