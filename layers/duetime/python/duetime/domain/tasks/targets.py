"""Defines targets, which are called by a task's attempts.

ARNs are `arn:partition:service:region:account:resource` (Source: IAM User Guide, "Amazon Resource Names").
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from enum import StrEnum
from functools import cache
from urllib.parse import urlsplit

from duetime.domain.limits import MAX_HOST_LENGTH, MAX_RESULT_BYTES
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.wildcards import translated
from duetime_common.frozen_classes import frozen

EVENT_SOURCE = "duetime"
"""Source field of all events that tasks put on event buses; with a fixed source, no task can impersonate another system
or create tasks through events."""
_SEGMENTS = 6
_DEFAULT_PORTS = {"http": 80, "https": 443}


class AwsService(StrEnum):
    """The services whose resources a task may call; the values are the target kinds."""

    LAMBDA = "lambda"
    SQS = "sqs"
    SNS = "sns"
    EVENTBRIDGE = "eventbridge"
    STEP_FUNCTIONS = "step_functions"
    ECS = "ecs"
    BATCH = "batch"
    CODEBUILD = "codebuild"
    GLUE = "glue"


_SEGMENT_OF = {
    AwsService.LAMBDA: "lambda",
    AwsService.SQS: "sqs",
    AwsService.SNS: "sns",
    AwsService.EVENTBRIDGE: "events",
    AwsService.STEP_FUNCTIONS: "states",
    AwsService.ECS: "ecs",
    AwsService.BATCH: "batch",
    AwsService.CODEBUILD: "codebuild",
    AwsService.GLUE: "glue",
}
_SERVICE_OF = {segment: service for service, segment in _SEGMENT_OF.items()}
_RESOURCES = {
    AwsService.LAMBDA: r"function:[A-Za-z0-9_-]{1,64}(:(\$LATEST|[A-Za-z0-9_-]{1,128}))?",
    AwsService.SQS: r"[A-Za-z0-9_-]{1,80}(\.fifo)?",
    AwsService.SNS: r"[A-Za-z0-9_-]{1,256}(\.fifo)?",
    AwsService.EVENTBRIDGE: r"event-bus/[A-Za-z0-9_./-]{1,256}",
    AwsService.STEP_FUNCTIONS: r"stateMachine:[A-Za-z0-9_-]{1,80}(:[A-Za-z0-9_.-]{1,80})?",
    AwsService.ECS: r"task-definition/[A-Za-z0-9_-]{1,255}(:[0-9]{1,9})?",
    AwsService.BATCH: r"job-definition/[A-Za-z0-9_-]{1,128}(:[0-9]{1,9})?",
    AwsService.CODEBUILD: r"project/[A-Za-z0-9_-]{2,255}",
    AwsService.GLUE: r"job/[A-Za-z0-9_.-]{1,255}",
}
"""Source: the services' API references, for names; functions and state machines may have a version or alias, and task
definitions and job definitions may have a revision."""
_CLUSTER = r"cluster/[A-Za-z0-9_-]{1,255}"
_JOB_QUEUE = r"job-queue/[A-Za-z0-9_-]{1,128}"
_QUALIFIED = re.compile(r"[^:]*(:[^:]*){5}:[^:]+:[^:]+")
_WITH_VERSION = re.compile(r"(.*:(?:(?:function|stateMachine):|(?:task|job)-definition/)[^:]+):[^:]+")
_ROLE = re.compile(r"arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/*?-]{1,128}")


def arn_pattern(service: AwsService) -> str:
    """Regular expression for the ARNs of a service's resources, in a form that JSON Schema also supports."""
    return _pattern(service, _RESOURCES[service])


def cluster_pattern() -> str:
    """Regular expression for the ARNs of ECS clusters."""
    return _pattern(AwsService.ECS, _CLUSTER)


def job_queue_pattern() -> str:
    """Regular expression for the ARNs of Batch job queues."""
    return _pattern(AwsService.BATCH, _JOB_QUEUE)


def is_qualified(arn: str) -> bool:
    """Whether the ARN of a function includes a version or an alias."""
    return _QUALIFIED.fullmatch(arn) is not None


def without_version(arn: str) -> str:
    """The ARN of a resource without its version, alias or revision."""
    found = _WITH_VERSION.fullmatch(arn)
    return arn if found is None else found.group(1)


def is_role(arn: str) -> bool:
    """Whether an ARN, or an ARN pattern, identifies a role that task containers may have."""
    return _ROLE.fullmatch(arn) is not None


def _pattern(service: AwsService, resource: str) -> str:
    place = rf"arn:aws(-[a-z]+)*:{_SEGMENT_OF[service]}:[a-z]{{2}}(-[a-z]+)+-[0-9]:[0-9]{{12}}"
    return f"^{place}:{resource}$"


def service_of(arn: str) -> AwsService | None:
    """The service that an ARN or an ARN pattern belongs to; `None` if tasks may not call this service's resources."""
    segments = arn.split(":", _SEGMENTS - 1)
    return _SERVICE_OF.get(segments[2]) if len(segments) == _SEGMENTS else None


@frozen
class ArnPatterns:
    """The resources that tasks may call.

    Attributes:
        patterns: ARNs in which `*` stands for any characters and `?` for one character, as in IAM policies.
    """

    patterns: tuple[str, ...] = ()

    def allow(self, arn: str) -> bool:
        """Whether a pattern matches an ARN.

        A wildcard matches only within one segment of the ARN; the last segment is the resource.
        """
        return any(_matcher(pattern).fullmatch(arn) for pattern in self.patterns)


@cache
def _matcher(pattern: str) -> re.Pattern[str]:
    *places, resource = pattern.split(":", _SEGMENTS - 1)
    return re.compile(":".join([*(translated(place, "[^:]") for place in places), translated(resource)]))


BODILESS = frozenset({"GET", "HEAD"})
"""Methods whose requests have no content (Source: RFC 9110, 9.3)."""
PAYLOAD_METHODS = frozenset({"POST", "PUT", "PATCH"})
"""Methods for which the default body is the task's payload."""


class BodyKind(StrEnum):
    """The encoding of a request's body."""

    JSON = "json"
    FORM = "form"
    TEXT = "text"
    BASE64 = "base64"

    @property
    def is_structured(self) -> bool:
        """Whether the body is stored as JSON text."""
        return self in (BodyKind.JSON, BodyKind.FORM)


@frozen
class RequestBody:
    """The body of a request.

    Attributes:
        text: for JSON, the JSON text; for a form, a JSON object of strings; for other encodings, the text itself, or
            the bytes in base64.
    """

    kind: BodyKind
    text: str


class AuthScheme(StrEnum):
    """The form of a secret in a header.

    Attributes:
        BEARER: `Authorization: Bearer`, with the secret.
        BASIC: `Authorization: Basic`, with a user's name and password.
        HEADER: a header of any name, with the secret.
        OAUTH_CLIENT: `Authorization: Bearer`, with a token from the client credentials flow of OAuth 2.0.
    """

    BEARER = "bearer"
    BASIC = "basic"
    HEADER = "header"
    OAUTH_CLIENT = "oauth_client"


@frozen
class Auth:
    """Authentication of a request; the secret itself is stored in Secrets Manager.

    Attributes:
        secret: the secret's name in the deployment's settings.
        header: the name of the header, for the scheme `header`.
    """

    secret: str
    scheme: AuthScheme
    header: str = ""


class Keep(StrEnum):
    """The part of a response that becomes the task's result.

    Attributes:
        BODY: the response's body.
        ALL: the response's status, headers and body.
        NONE: no part; the response's body is not read.
    """

    BODY = "body"
    ALL = "all"
    NONE = "none"


@frozen
class ResponseOptions:
    """The part of a response to keep.

    Attributes:
        max_bytes: maximum size of the response's body.
        truncates: whether a larger body is truncated; otherwise, the attempt fails.
    """

    keep: Keep = Keep.BODY
    max_bytes: int = MAX_RESULT_BYTES
    truncates: bool = False


@frozen
class HttpRequest:
    """The differences between a request and duetime's default request, which is a signed `PUT` of the envelope.

    Attributes:
        method: method of a custom request; empty for `POST` if there is a body.
        headers: pairs of names and values. Values of headers, the query and the body may contain placeholders.
        success: statuses that mean success; empty for all 2xx statuses.
    """

    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: RequestBody | None = None
    success: tuple[int, ...] = ()
    auth: Auth | None = None
    response: ResponseOptions = field(default_factory=ResponseOptions)

    @property
    def is_custom(self) -> bool:
        """Whether the request replaces duetime's default request, and has no envelope, phases or signature."""
        return bool(self.method) or self.body is not None

    @property
    def sent_method(self) -> str:
        """The method of a custom request."""
        return self.method or "POST"

    @property
    def size(self) -> int:
        """The request's size in bytes of UTF-8."""
        pairs = [text for pair in (*self.headers, *self.query) for text in pair]
        return sum(len(text.encode()) for text in (*pairs, self.body.text if self.body else ""))


def form_fields(body: RequestBody) -> list[tuple[str, str]]:
    """The fields of a form."""
    return list(json.loads(body.text).items())


@frozen
class HandlerTarget:
    """The Python handler that the worker function has registered for the task's type."""


class Phase(StrEnum):
    """A phase of an attempt; only `run` is mandatory.

    Attributes:
        PREPARE: preparation before `run`, within the same attempt.
        RUN: the work itself.
        CLEAN: cleanup after any outcome.
        ROLLBACK: undoing the work.
    """

    PREPARE = "prepare"
    RUN = "run"
    CLEAN = "clean"
    ROLLBACK = "rollback"


class Query(StrEnum):
    """A query about a task that an HTTP endpoint supports.

    Attributes:
        STATUS: the status of the task.
        PROGRESS: the progress of the task.
        SUMMARY: a summary for people.
    """

    STATUS = "status"
    PROGRESS = "progress"
    SUMMARY = "summary"


@frozen
class CallBatch:
    """How tasks share the calls to an endpoint.

    Attributes:
        max_size: maximum number of tasks in a call.
        max_wait_seconds: how long the first task may wait for more tasks.
    """

    max_size: int
    max_wait_seconds: float


@frozen
class HttpTarget:
    """An HTTP endpoint.

    Attributes:
        phases: supported phases in addition to `run`.
        queries: supported queries.
        request: the custom request, and the part of the response to keep.
        batch: how its tasks share calls; `None` if each task has its own call.
    """

    url: str
    phases: frozenset[Phase] = frozenset()
    queries: frozenset[Query] = frozenset()
    request: HttpRequest = field(default_factory=HttpRequest)
    batch: CallBatch | None = None

    @property
    def offers_more(self) -> str:
        """The name of the field that offers more than `run`; empty if there is no such field."""
        return "phases" if self.phases else "queries" if self.queries else ""

    @property
    def conflicts_with_batch(self) -> str:
        """The name of the field that requires a separate call for each task; empty if there is no such field."""
        request = self.request
        of_one = {
            "phases": self.phases,
            "method": request.method,
            "body": request.body,
            "success": request.success,
            "response": request.response != ResponseOptions(),
        }
        return next((name for name, value in of_one.items() if value), "")


@frozen
class PullTarget:
    """A pull worker, which runs anywhere and leases tasks of this type (see `services/pull/lease.py`)."""


@frozen
class AwsTarget:
    """An AWS resource that is called with the task.

    Attributes:
        service: service of the resource.
        waits: whether to wait until a Lambda function ends; otherwise, the function sends a notification when it ends.
        detail_type: detail type of the event on an event bus; empty for the task's type.
        is_job: whether the target is a long-running AWS job whose end the task waits for (see `aws_jobs`).
        place: where a job runs, which is the ARN of an ECS task's cluster or of a Batch job's queue.
        container: for an ECS task, the container that receives the task's facts.
        parameters: additional parameters of the request that starts a job, as the text of a JSON object; empty for no
            parameters.
    """

    service: AwsService
    arn: str
    waits: bool = True
    detail_type: str = ""
    is_job: bool = False
    place: str = ""
    container: str = ""
    parameters: str = ""


@frozen
class DefinitionRef:
    """The definition that a topology runs.

    Attributes:
        version: version of the definition; until a run is created, `None` means the latest version.
        parameters: parameters of the run, as JSON text.
    """

    name: str
    version: int | None = None
    parameters: str = "{}"


@frozen
class TopologyTarget:
    """A topology, which is a graph of tasks that the state machine runs; the graph is the task's payload.

    Attributes:
        definition: the source of the graph; `None` if its user gave the graph itself.
    """

    definition: DefinitionRef | None = None


class OnTimeout(StrEnum):
    """What happens to an approval about which nobody decides in time.

    Attributes:
        FAIL: the task fails.
        REJECT: the task is rejected, as if by a person.
        APPROVE: the task is approved without a payload.
    """

    FAIL = "fail"
    REJECT = "reject"
    APPROVE = "approve"


@frozen
class ApprovalTarget:
    """A target for which a person approves or rejects the task, without a call.

    Attributes:
        timeout_seconds: time limit after the due time, or after the task's turn.
    """

    timeout_seconds: int
    on_timeout: OnTimeout = OnTimeout.FAIL


@frozen
class EventTarget:
    """A target for which the task waits for an event, without a call.

    Attributes:
        event: name of the event.
        key: distinguishes events with the same name; empty for no key.
        timeout_seconds: time limit after the due time, or after the task's turn.
        lookback_seconds: how long before the task's creation a signal may have been sent.
        when: condition on the signal (`duetime_common.conditions`); `None` for any signal.
    """

    event: str
    key: str
    timeout_seconds: int
    lookback_seconds: int = 0
    when: str | None = None


@frozen
class CallbackTarget:
    """A URL that receives the outcome of another task; requests cannot name this kind of target."""

    url: str


WaitingTarget = ApprovalTarget | EventTarget
"""A target for which the task waits and nothing is called."""
Target = HandlerTarget | HttpTarget | PullTarget | AwsTarget | TopologyTarget | WaitingTarget | CallbackTarget


def definition_of(target: Target | None) -> DefinitionRef | None:
    """The definition that a topology runs; `None` for other targets."""
    return target.definition if isinstance(target, TopologyTarget) else None


def host_of(target: Target) -> str | None:
    """The host that a target calls, which may have a circuit; `None` if there is no host, or no valid host name."""
    if not isinstance(target, HttpTarget | CallbackTarget):
        return None
    try:
        parts = urlsplit(target.url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None
    if not host or len(host) > MAX_HOST_LENGTH:
        return None
    return host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"


def names_definitions(payload: bytes) -> bool:
    """Whether nodes of the graph in a payload may name definitions, according to a fast check without parsing."""
    return b'"definition"' in payload


def outlives_workers(target: Target | None) -> bool:
    """Whether an attempt continues with the next claim if its worker was lost, so that no attempt is used up.

    This is possible because a job that the lost worker may have started can be found by name, and a wait for an
    approval or an event calls nothing.
    """
    return isinstance(target, WaitingTarget) or (isinstance(target, AwsTarget) and target.is_job)


def pull_queue_of(task_type: str, target: Target | None, state: State) -> str:
    """The pulled type on whose queue a task waits; empty for the queues of the worker functions.

    The worker functions also run an outcome's follow-ups, and check what a blocked task waits for, because these must
    not wait for a pull worker.
    """
    is_of_workers = state in TERMINAL or state in {State.ROLLING_BACK, State.BLOCKED}
    return task_type if isinstance(target, PullTarget) and not is_of_workers else ""
