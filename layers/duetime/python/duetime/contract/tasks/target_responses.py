"""Targets in responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

LambdaMode = Literal["sync", "async", "durable"]


class HandlerTargetResponse(TypedDict):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class RequestBodyResponse(TypedDict, total=False):
    """The body of a request, in one of four forms."""

    json: Annotated[Any, Field(description="Any JSON.")]
    form: Annotated[dict[str, str], Field(description="Fields of a form.")]
    text: Annotated[str, Field(description="Text in UTF-8.")]
    base64: Annotated[str, Field(description="Bytes, base64.")]


class RequestAuthResponse(TypedDict):
    """Authentication of a request."""

    secret: Annotated[str, Field(description="Name of the secret in the deployment's settings.")]
    scheme: Annotated[
        Literal["bearer", "basic", "header", "oauth_client"], Field(description="How the secret is sent.")
    ]
    header: Annotated[str | None, Field(description="Name of the header, for the scheme `header`.")]


class ResponseOptionsResponse(TypedDict):
    """The part of the response that becomes the task's result."""

    keep: Annotated[Literal["body", "all", "none"], Field(description="Which parts of the response.")]
    max_bytes: Annotated[int, Field(description="Size of the body, in bytes.")]
    when_larger: Annotated[Literal["fail", "truncate"], Field(description="What happens to a larger body.")]


class HttpTargetResponse(TypedDict):
    """An HTTP endpoint. Fields of the request are present if they were set."""

    kind: Literal["http"]
    url: str
    phases: Annotated[
        Sequence[Literal["prepare", "clean", "rollback"]],
        Field(description="Phases that the endpoint supports besides `run`."),
    ]
    queries: Annotated[
        Sequence[Literal["status", "progress", "summary"]], Field(description="Queries that the endpoint answers.")
    ]
    method: Annotated[NotRequired[str], Field(description="Method of the request.")]
    headers: Annotated[NotRequired[dict[str, str]], Field(description="Headers of the request.")]
    query: Annotated[NotRequired[dict[str, str]], Field(description="Parameters added to the URL's query.")]
    body: Annotated[NotRequired[RequestBodyResponse], Field(description="Body of the request.")]
    success: Annotated[NotRequired[Sequence[int]], Field(description="Statuses that mean success.")]
    auth: Annotated[NotRequired[RequestAuthResponse], Field(description="Authentication of the request.")]
    response: Annotated[NotRequired[ResponseOptionsResponse], Field(description="Parts of the response that are kept.")]


class CallbackTargetResponse(TypedDict):
    """The callback URL of another task, whose id is the name of this one."""

    kind: Literal["callback"]
    url: Annotated[str, Field(description="Where the outcome is posted.")]


class PullTargetResponse(TypedDict):
    """Pull workers, which lease the tasks of this type."""

    kind: Literal["pull"]


class DefinitionRunResponse(TypedDict):
    """The run of a topology definition."""

    name: str
    version: Annotated[
        int | None, Field(description="Its version; null in a schedule that runs the latest one each time.")
    ]
    parameters: Annotated[dict[str, Any], Field(description="The values of its parameters.")]


class TopologyTargetResponse(TypedDict):
    """A topology, whose graph is the payload."""

    kind: Literal["topology"]
    definition: Annotated[
        NotRequired[DefinitionRunResponse], Field(description="The definition that it is a run of, if it is one.")
    ]


class ApprovalTargetResponse(TypedDict):
    """A person who approves or rejects the task."""

    kind: Literal["approval"]
    timeout_seconds: Annotated[int, Field(description="How long after it is due it waits.")]
    on_timeout: Annotated[Literal["fail", "reject", "approve"], Field(description="What happens after that.")]


class LambdaTargetResponse(TypedDict):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: str
    mode: LambdaMode


class EventBridgeTargetResponse(TypedDict):
    """An event bus."""

    kind: Literal["eventbridge"]
    arn: str
    detail_type: Annotated[str | None, Field(description="Detail type of the event; null for the type of the task.")]


class AwsTargetResponse(TypedDict):
    """An SQS queue or an SNS topic."""

    kind: Literal["sqs", "sns"]
    arn: str


class StepFunctionsTargetResponse(TypedDict):
    """A state machine."""

    kind: Literal["step_functions"]
    arn: str
    wait: Annotated[bool, Field(description="Whether the execution's end is the outcome; if not, its start is.")]


class EcsTargetResponse(TypedDict):
    """An ECS task definition."""

    kind: Literal["ecs"]
    arn: str
    cluster: str
    container: str
    parameters: Annotated[dict[str, Any], Field(description="Further fields of the request `RunTask`.")]


class BatchTargetResponse(TypedDict):
    """A Batch job definition."""

    kind: Literal["batch"]
    arn: str
    queue: str
    parameters: Annotated[dict[str, Any], Field(description="Further fields of the request `SubmitJob`.")]


class JobTargetResponse(TypedDict):
    """A CodeBuild project or a Glue job."""

    kind: Literal["codebuild", "glue"]
    arn: str
    parameters: Annotated[
        dict[str, Any], Field(description="Further fields of the request `StartBuild` or `StartJobRun`.")
    ]


TargetResponse = (
    HandlerTargetResponse
    | HttpTargetResponse
    | CallbackTargetResponse
    | PullTargetResponse
    | LambdaTargetResponse
    | EventBridgeTargetResponse
    | AwsTargetResponse
    | StepFunctionsTargetResponse
    | EcsTargetResponse
    | BatchTargetResponse
    | JobTargetResponse
    | TopologyTargetResponse
    | ApprovalTargetResponse
)
