"""Fields of targets: URLs, ARNs, options, and custom requests to HTTP endpoints with their rules."""

# This module does not use `from __future__ import annotations`, because pydantic would then parse each annotation's
# text at every start.

import base64
import json
import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, each_once, printable
from duetime.domain.limits import (
    DEFAULT_APPROVAL_SECONDS,
    DEFAULT_BATCH_SIZE,
    DEFAULT_BATCH_WAIT_SECONDS,
    DEFAULT_EVENT_SECONDS,
    MAX_ARN_LENGTH,
    MAX_CONDITION_LENGTH,
    MAX_DEADLINE_SECONDS,
    MAX_DETAIL_TYPE_LENGTH,
    MAX_EVENT_KEY_LENGTH,
    MAX_HANDLER_BATCH,
    MAX_HANDLER_BATCH_WAIT_SECONDS,
    MAX_HTTP_FIELD_LENGTH,
    MAX_HTTP_FIELD_NAME_LENGTH,
    MAX_HTTP_FIELDS,
    MAX_LOOKBACK_SECONDS,
    MAX_PARAMETERS,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    MAX_SECRET_NAME_LENGTH,
    MAX_SUCCESS_STATUSES,
    MAX_URL_LENGTH,
)
from duetime.domain.tasks import placeholders
from duetime.domain.tasks.targets import AwsService, arn_pattern, cluster_pattern, is_qualified, job_queue_pattern

TargetKind = Literal[
    "handler",
    "http",
    "pull",
    "topology",
    "approval",
    "wait_for_event",
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
    int,
    Field(
        ge=1,
        le=MAX_DEADLINE_SECONDS,
        description="How long the task waits for a decision after its due time, or after its turn, if later.",
    ),
]
EventName = Annotated[
    str,
    Field(
        pattern=SCHEDULE_NAME_PATTERN,
        description="Name of the event, among the owner's events.",
        examples=["order.paid"],
    ),
]
EventKey = Annotated[
    str,
    Field(
        max_length=MAX_EVENT_KEY_LENGTH, description="Distinguishes events with the same name.", examples=["order-4711"]
    ),
    AfterValidator(printable),
]
EventSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_DEADLINE_SECONDS,
        description="How long the task waits for the event after its due time, or after its turn, if later.",
    ),
]
LookbackSeconds = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_LOOKBACK_SECONDS,
        description="How long before the task's creation the signal may have been sent.",
    ),
]


def _signal_condition(text: str) -> str:
    """Rejects an invalid condition."""
    # This module is imported late, because few tasks have a condition.
    from duetime_common.conditions import reject_signal_condition  # noqa: PLC0415 - see the line above

    reject_signal_condition(text)
    return text


SignalCondition = Annotated[
    str,
    Field(
        max_length=MAX_CONDITION_LENGTH,
        description="JMESPath condition on the signal's `payload`. A signal that does not meet the condition is "
        "ignored: it neither wakes nor ends the task.",
        examples=["payload.amount >= `100`"],
    ),
    AfterValidator(_signal_condition),
]
# The characters of RFC 3986, which are all ASCII, exclude spaces, control characters and backslashes, which parsers
# interpret differently.
_URI = re.compile(r"[A-Za-z0-9:/?#\[\]@!$&'()*+,;=._~%-]+")


def http_url(text: str) -> str:
    """Rejects strings that are not HTTP URLs or that contain credentials."""
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
    """Rejects strings that are not HTTP URLs once placeholders are replaced; the host cannot have placeholders."""
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
        description="http or https, with a host and without credentials. Path and query may contain placeholders such "
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
        description="URL that receives the signed outcome: http or https, with a host and without credentials.",
        examples=["https://example.org/task-ended"],
        json_schema_extra={"format": "uri", "pattern": "^https?://"},
    ),
    AfterValidator(http_url),
]


def _arn(service: AwsService, example: str) -> Any:  # noqa: ANN401 - what stands behind a field's type
    return Field(
        max_length=MAX_ARN_LENGTH,
        pattern=arn_pattern(service),
        description="ARN of the AWS resource; must match a pattern in the deployment's settings.",
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
        description="`sync`: the outcome is the function's result. `async`: the function reports the outcome later. "
        "`durable`: the outcome is the end of the durable execution, within `notify_within_seconds`; the ARN needs a "
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
    int, Field(ge=1, description="Version of the definition; null for the latest version at the run's creation.")
]
RunParameters = Annotated[
    dict[str, Any],
    Field(
        max_length=MAX_PARAMETERS,
        description="Values of the definition's parameters; parameters with a default may be left out.",
        examples=[{"region": "eu-west-1"}],
    ),
]
TaskDefinitionArn = Annotated[str, _arn(AwsService.ECS, "arn:aws:ecs:eu-west-1:123456789012:task-definition/report:7")]
ClusterArn = Annotated[
    str,
    Field(
        max_length=MAX_ARN_LENGTH,
        pattern=cluster_pattern(),
        description="ARN of the cluster that the task runs on; must match a pattern in the deployment's settings.",
        examples=["arn:aws:ecs:eu-west-1:123456789012:cluster/reports"],
    ),
]
JobDefinitionArn = Annotated[str, _arn(AwsService.BATCH, "arn:aws:batch:eu-west-1:123456789012:job-definition/report")]
JobQueueArn = Annotated[
    str,
    Field(
        max_length=MAX_ARN_LENGTH,
        pattern=job_queue_pattern(),
        description="ARN of the job queue; must match a pattern in the deployment's settings.",
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
        description="Container of the task definition that receives the task in the variable `DUETIME_TASK`; its exit "
        "code is the outcome.",
        examples=["report"],
    ),
]
WaitsForEnd = Annotated[
    bool,
    Field(
        description="Whether the outcome is the end of the execution, within `notify_within_seconds`, instead of its "
        "start."
    ),
]


def _of_request(request: str, example: dict[str, Any]) -> Any:  # noqa: ANN401 - what stands behind a field's type
    return Field(description=f"Additional fields of the request {request}, by their AWS names.", examples=[example])


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
JobParameters = Annotated[dict[str, Any], Field(description="Additional fields of the request that starts a job.")]


_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of a header (Source: RFC 9110, 5.6.2)."""
_VISIBLE = re.compile(r"[!-~]([ -~]*[!-~])?")
"""Pattern of a header's value, which has no characters that could start another header (Source: RFC 9110, 5.5)."""
_CONNECTION = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Connection headers, which only the HTTP client may set (Source: RFC 9110, 7.6.1)."""
_SECRET = frozenset({"authorization", "cookie"})
_OURS = frozenset({"idempotency-key", "traceparent", "tracestate"})
_OUR_PREFIXES = ("duetime-", "webhook-")
SECRET_NAME_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_./-]{{0,{MAX_SECRET_NAME_LENGTH - 1}}}$"
_FORMS = ("json", "form", "text", "base64")


def header_name(name: str) -> str:
    """Rejects invalid names of headers, and headers that users may not set."""
    lower = name.lower()
    if _TOKEN.fullmatch(name) is None:
        raise ValueError("should be the name of a header: letters, digits and -")
    if lower in _CONNECTION or lower.startswith("proxy-"):
        raise ValueError("is a header of the connection, which cannot be set")
    if lower in _SECRET:
        raise ValueError("is a header with a secret, which would be stored and shown; use `auth`")
    if lower in _OURS or lower.startswith(_OUR_PREFIXES):
        raise ValueError("is a header that duetime sets itself")
    return name


def _header_value(text: str) -> str:
    """Rejects characters that could end a header, and unknown placeholders."""
    if _VISIBLE.fullmatch(text) is None:
        raise ValueError("should be visible ASCII characters, with spaces between them only")
    return _with_placeholders(text)


def _with_placeholders(text: str) -> str:
    if why := placeholders.refusal(text):
        raise ValueError(why)
    return text


def _each_header_once(headers: dict[str, str]) -> dict[str, str]:
    if len({name.lower() for name in headers}) != len(headers):
        raise ValueError("names a header twice; upper and lower case are the same")
    return headers


def base64_text(text: str) -> str:
    """Rejects a string that is not base64."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("is not base64") from None
    return text


def _texts_known(value: Any) -> Any:  # noqa: ANN401 - any JSON
    for _, text, is_key in placeholders.texts_of(value, ()):
        if is_key:
            raise ValueError("has a key with a placeholder; only values may hold one")
        _with_placeholders(text)
    return value


_Name = Annotated[str, Field(min_length=1, max_length=MAX_HTTP_FIELD_NAME_LENGTH)]
_Value = Annotated[str, Field(max_length=MAX_HTTP_FIELD_LENGTH), AfterValidator(_with_placeholders)]
RequestMethod = Annotated[
    Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    Field(
        description=(
            "Method of a custom request. If `method` or `body` is given, the request is sent as described here, "
            "unsigned. Otherwise, a signed `PUT` with `?action=run` and the full description of the run is sent."
        ),
        examples=["POST"],
    ),
]
RequestHeaders = Annotated[
    dict[
        Annotated[_Name, AfterValidator(header_name)],
        Annotated[str, Field(min_length=1, max_length=MAX_HTTP_FIELD_LENGTH), AfterValidator(_header_value)],
    ],
    Field(
        max_length=MAX_HTTP_FIELDS,
        description="Headers to add. Values may contain placeholders. Secrets belong in `auth`.",
        examples=[{"Accept": "application/json"}],
    ),
    AfterValidator(_each_header_once),
]
RequestQuery = Annotated[
    dict[_Name, _Value],
    Field(
        max_length=MAX_HTTP_FIELDS,
        description="Query parameters to add to the URL, percent-encoded. Values may contain placeholders.",
        examples=[{"day": "<duetime.scheduled-at>"}],
    ),
]
SuccessStatuses = Annotated[
    list[Annotated[int, Field(ge=200, le=599)]],
    Field(
        min_length=1,
        max_length=MAX_SUCCESS_STATUSES,
        description="Statuses that mean success, instead of all statuses from 200 to 299. Other statuses from 200 to "
        "299 are retried.",
        examples=[[200, 404]],
    ),
]


class RequestBody(Body):
    """The body of a request, in one of four forms; strings can have placeholders."""

    json_: Annotated[
        Any, Field(alias="json", description="Any JSON.", examples=[{"text": "done"}]), AfterValidator(_texts_known)
    ] = None
    form: Annotated[
        dict[_Name, _Value] | None,
        Field(description="Fields of a form, sent as `application/x-www-form-urlencoded`.", examples=[{"to": "team"}]),
    ] = None
    text: Annotated[
        Annotated[str, AfterValidator(_with_placeholders)] | None,
        Field(max_length=MAX_REQUEST_BYTES, description="Text in UTF-8.", examples=["done"]),
    ] = None
    base64: Annotated[
        Annotated[str, AfterValidator(base64_text)] | None,
        Field(
            max_length=MAX_REQUEST_BYTES,
            description="Bytes, encoded as base64, without placeholders.",
            examples=["AAEC"],
        ),
    ] = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = {name for name in self.model_fields_set if name == "json_" or getattr(self, name) is not None}
        if len(given) != 1 or given != self.model_fields_set:
            raise ValueError(f"should have exactly one of {', '.join(f'`{form}`' for form in _FORMS)}")
        return self


class RequestAuth(Body):
    """Authentication of the request."""

    secret: Annotated[
        str,
        Field(
            pattern=SECRET_NAME_PATTERN,
            description="Name of a secret in the deployment's settings (`http_secrets`), never the secret itself.",
            examples=["crm"],
        ),
    ]
    scheme: Annotated[
        Literal["bearer", "basic", "header", "oauth_client"],
        Field(
            description="`bearer`, `basic`: an `Authorization` header. `header`: a custom header. `oauth_client`: "
            "a bearer token, fetched with the OAuth 2.0 client credentials grant."
        ),
    ]
    header: Annotated[
        Annotated[str, AfterValidator(header_name)] | None,
        Field(
            max_length=MAX_HTTP_FIELD_NAME_LENGTH,
            description="Name of the header, for the scheme `header`.",
            examples=["X-Api-Key"],
        ),
    ] = None


class ResponseOptions(Body):
    """The part of the response that becomes the task's result."""

    keep: Annotated[
        Literal["body", "all", "none"],
        Field(
            description="`body`; `all`: an object with `status`, `headers` and `body`; `none`: the body is not read."
        ),
    ] = "body"
    max_bytes: Annotated[int, Field(ge=1, le=MAX_RESULT_BYTES, description="Maximum size of the body, in bytes.")] = (
        MAX_RESULT_BYTES
    )
    when_larger: Annotated[
        Literal["fail", "truncate"],
        Field(description="Whether a larger body fails the task, or is truncated to text."),
    ] = "fail"


_ANY_VERSION = "arn:aws:lambda:eu-west-1:123456789012:function:report:1"


class HandlerTarget(Body):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class CallBatch(Body):
    """How tasks share calls. One request is sent for several due tasks, and the response has an outcome for each."""

    max_size: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_HANDLER_BATCH,
            description="Maximum number of tasks in one call, which all come from one delivery of the queue.",
        ),
    ] = DEFAULT_BATCH_SIZE
    max_wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=MAX_HANDLER_BATCH_WAIT_SECONDS,
            description="How long the first task may wait for other tasks; at most half of its timeout.",
        ),
    ] = DEFAULT_BATCH_WAIT_SECONDS


class HttpTarget(Body):
    """An HTTP endpoint, called with the payload once per phase, or with a custom request."""

    kind: Literal["http"]
    url: TargetUrl
    phases: TargetPhases = []  # noqa: RUF012 - pydantic copies defaults
    queries: OfferedQueries = []  # noqa: RUF012 - pydantic copies defaults
    method: RequestMethod | None = None
    headers: RequestHeaders = {}  # noqa: RUF012 - pydantic copies defaults
    query: RequestQuery = {}  # noqa: RUF012 - pydantic copies defaults
    body: Annotated[
        RequestBody | None,
        Field(description="Body of a custom request; if left out, POST, PUT and PATCH send the payload as JSON."),
    ] = None
    success: Annotated[
        SuccessStatuses | None, Field(description="Statuses that mean success; null for all statuses from 200 to 299.")
    ] = None
    auth: Annotated[RequestAuth | None, Field(description="Authentication of the request.")] = None
    response: Annotated[
        ResponseOptions | None, Field(description="The part of the response to keep; null for the entire body.")
    ] = None
    batch: Annotated[
        CallBatch | None,
        Field(
            description="How tasks share calls; null if they do not. Cannot be given with `phases`, `success`, "
            "`response` or a custom request."
        ),
    ] = None


class PullTarget(Body):
    """Pull workers, which are your own workers that lease tasks of types that the deployment declares as pulled."""

    kind: Literal["pull"]


class DefinitionRun(Body):
    """The run of a topology definition."""

    name: DefinitionName
    version: DefinitionNumber | None = None
    parameters: RunParameters = {}  # noqa: RUF012 - pydantic copies defaults


class TopologyTarget(Body):
    """A topology, whose graph (`nodes`, `on_failure` and so on) is the payload or comes from a definition."""

    kind: Literal["topology"]
    definition: Annotated[
        DefinitionRun | None,
        Field(
            description="The topology definition to run. Leave out the payload: the definition's graph becomes the "
            "payload."
        ),
    ] = None


class ApprovalTarget(Body):
    """A person approves or rejects the task, and nothing is called."""

    kind: Literal["approval"]
    timeout_seconds: ApprovalSeconds = DEFAULT_APPROVAL_SECONDS
    on_timeout: Annotated[
        Literal["fail", "reject", "approve"],
        Field(description="What happens if nobody decides in time: the task fails, is rejected or is approved."),
    ] = "fail"


class EventTarget(Body):
    """The task waits for an event, which is a signal with the event's name and key. Nothing is called."""

    kind: Literal["wait_for_event"]
    event: EventName
    key: EventKey = ""
    timeout_seconds: EventSeconds = DEFAULT_EVENT_SECONDS
    lookback_seconds: LookbackSeconds = 0
    when: SignalCondition | None = None


class LambdaTarget(Body):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: FunctionArn
    mode: LambdaMode = "sync"

    @field_validator("mode")
    @classmethod
    def _names_a_version(cls, mode: str, info: ValidationInfo) -> str:
        """Rejects a durable execution whose ARN has neither a version nor an alias, because Lambda also rejects it."""
        if mode == "durable" and not is_qualified(info.data.get("arn", _ANY_VERSION)):
            raise ValueError("`durable` needs an ARN with a version or an alias")
        return mode


class SqsTarget(Body):
    """An SQS queue, to which a message is sent."""

    kind: Literal["sqs"]
    arn: QueueArn


class SnsTarget(Body):
    """An SNS topic, to which a message is published."""

    kind: Literal["sns"]
    arn: TopicArn


class EventBridgeTarget(Body):
    """An EventBridge event bus, to which an event is sent."""

    kind: Literal["eventbridge"]
    arn: EventBusArn
    detail_type: DetailType | None = None


class StepFunctionsTarget(Body):
    """A Step Functions state machine, which is executed."""

    kind: Literal["step_functions"]
    arn: StateMachineArn
    wait: WaitsForEnd = False


class EcsTarget(Body):
    """An ECS task definition. Each attempt starts an ECS task and waits for its end."""

    kind: Literal["ecs"]
    arn: TaskDefinitionArn
    cluster: ClusterArn
    container: ContainerName
    parameters: RunTaskParameters = {}  # noqa: RUF012 - pydantic copies defaults


class BatchTarget(Body):
    """A Batch job definition. Each attempt submits a job and waits for its end."""

    kind: Literal["batch"]
    arn: JobDefinitionArn
    queue: JobQueueArn
    parameters: SubmitJobParameters = {}  # noqa: RUF012 - pydantic copies defaults


class CodeBuildTarget(Body):
    """A CodeBuild project. Each attempt starts a build and waits for its end."""

    kind: Literal["codebuild"]
    arn: ProjectArn
    parameters: StartBuildParameters = {}  # noqa: RUF012 - pydantic copies defaults


class GlueTarget(Body):
    """A Glue job. Each attempt starts a job run and waits for its end."""

    kind: Literal["glue"]
    arn: GlueJobArn
    parameters: StartJobRunParameters = {}  # noqa: RUF012 - pydantic copies defaults


JobTarget = EcsTarget | BatchTarget | CodeBuildTarget | GlueTarget
"""Targets whose jobs the scheduler always waits for."""
AwsTarget = LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | JobTarget
Target = Annotated[
    HandlerTarget | HttpTarget | PullTarget | AwsTarget | TopologyTarget | ApprovalTarget | EventTarget,
    Field(
        discriminator="kind",
        description="The target. The default is pull workers if the type is declared as pulled, and otherwise the "
        "type's handler.",
    ),
]
