"""The live update messages that clients send and receive over the WebSocket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from duetime.contract.http import request_json
from duetime.contract.http.problems import ProblemCode, ProblemFault
from duetime.contract.http.request_errors import BodyTooLarge, BodyUnreadable, Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import faults_in
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, Tags
from duetime.contract.tasks.queries import States, TaskConditions, WantedErrorType, WantedSchedule
from duetime.contract.tasks.responses import Instant, TaskErrorResponse, TaskProgressResponse
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import MAX_WATCH_MESSAGE_BYTES, MAX_WATCH_REF_LENGTH
from duetime.domain.live_updates import Topic, TopicKind
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.filters import TaskFilter


_NAME = SCHEDULE_NAME_PATTERN.removeprefix("^").removesuffix("$")
TOPIC_PATTERN = rf"^(mine|(task|topology):[0-9A-Za-z]{{26}}|schedule:{_NAME})$"
_DEPTH = 8
Ref = Annotated[
    str,
    Field(
        pattern=rf"^[!-~]{{1,{MAX_WATCH_REF_LENGTH}}}$",
        description="The client's name for the subscription; another subscription with this name replaces it.",
        examples=["1"],
    ),
]


def _without_null_times(schema: dict[str, Any]) -> None:
    """Makes times optional but not nullable in the schema."""
    for field in schema["properties"].values():
        if field.get("format") == "date-time":
            field.pop("default", None)


class WatchFilter(TaskConditions):
    """A filter for tasks; a task must meet all conditions."""

    model_config = ConfigDict(json_schema_extra=_without_null_times)

    state: Annotated[States, Field(description="Only tasks in this state, or in any of these states.")] = ()
    tags: Annotated[Tags, Field(description="Only tasks that have all of these tags.")] = Field(default_factory=dict)
    error_type: WantedErrorType = None
    schedule: WantedSchedule = None

    @property
    def task_filter(self) -> TaskFilter:
        """The filter that these fields describe."""
        return replace(
            self.conditions, states=self.state, tags=self.tags, error_type=self.error_type, schedule=self.schedule
        )


class SubscribeMessage(Body):
    """Starts a subscription; the server first sends a snapshot, and then sends changes."""

    do: Literal["subscribe"]
    ref: Ref
    topic: Annotated[
        str,
        Field(
            pattern=TOPIC_PATTERN,
            description="What to watch: `task:ID`; `topology:ID`, which includes its nodes; `schedule:NAME`, which "
            "includes its runs; or `mine`, all tasks of the caller that match the filter.",
            examples=["mine"],
        ),
    ]
    filter: Annotated[WatchFilter, Field(description="Allowed only with the topic `mine`.")] = WatchFilter()


class UnsubscribeMessage(Body):
    """Ends a subscription."""

    do: Literal["unsubscribe"]
    ref: Ref


class PingMessage(Body):
    """Keeps the connection open, because API Gateway closes it after ten minutes without a message."""

    do: Literal["ping"]
    ref: Annotated[Ref | None, Field(description="Text that the response repeats.")] = None


MESSAGES: Mapping[str, type[Body]] = {
    "subscribe": SubscribeMessage,
    "unsubscribe": UnsubscribeMessage,
    "ping": PingMessage,
}


@frozen
class Subscribe:
    """A client subscribes to changes."""

    ref: str
    topic: Topic
    task_filter: TaskFilter


@frozen
class Unsubscribe:
    """A client ends a subscription."""

    ref: str


@frozen
class Ping:
    """A client keeps its connection alive."""

    ref: str | None


Message: TypeAlias = Subscribe | Unsubscribe | Ping


class MessageRefused(Exception):
    """An invalid message was received.

    Attributes:
        ref: the name of the message's subscription, if it can be parsed.
        error: the reason.
    """

    def __init__(self, ref: str | None, error: Exception) -> None:
        super().__init__(str(error))
        self.ref = ref
        self.error = error


def read_message(text: str) -> Message:
    """Parses a message.

    Raises:
        MessageRefused: the message is invalid.
    """
    ref = None
    try:
        _reject_large(text)
        document = request_json.document_of(text, _DEPTH)
        ref = _ref_in(document.value)
        body = read_body(_model(document), document)
        return _message(body)
    except (BodyTooLarge, BodyUnreadable, FieldsInvalid) as error:
        raise MessageRefused(ref, error) from None


def _reject_large(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_WATCH_MESSAGE_BYTES:
        raise BodyTooLarge(MAX_WATCH_MESSAGE_BYTES)


def _ref_in(value: object) -> str | None:
    """The subscription that a message names, even if the rest of the message is invalid."""
    ref = value.get("ref") if isinstance(value, dict) else None
    return ref if isinstance(ref, str) and len(ref) <= MAX_WATCH_REF_LENGTH and not faults_in(ref) else None


def _model(document: request_json.Document) -> type[Body]:
    if not isinstance(document.value, dict):
        raise FieldsInvalid([Fault("body", "should be an object", FaultCode.WRONG_TYPE)])
    wanted = document.value.get("do")
    model = MESSAGES.get(wanted) if isinstance(wanted, str) else None
    if model is None:
        code = FaultCode.REQUIRED if "do" not in document.value else FaultCode.NOT_ALLOWED
        raise FieldsInvalid([Fault("do", f"should be one of {', '.join(MESSAGES)}", code)])
    return model


def _message(body: Body) -> Message:
    match body:
        case SubscribeMessage():
            return Subscribe(body.ref, _topic(body), body.filter.task_filter)
        case UnsubscribeMessage():
            return Unsubscribe(body.ref)
        case PingMessage():
            return Ping(body.ref)
    raise AssertionError(body)


def _topic(body: SubscribeMessage) -> Topic:
    kind, _, name = body.topic.partition(":")
    topic = Topic(TopicKind(kind), name)
    if topic.kind is not TopicKind.MINE and body.filter != WatchFilter():
        raise FieldsInvalid([Fault("filter", "is allowed with the topic 'mine' only", FaultCode.CONFLICT)])
    if topic.kind not in (TopicKind.TASK, TopicKind.TOPOLOGY):
        return topic
    try:
        return Topic(topic.kind, TaskId.parse(name.upper()).text)
    except InvalidTaskId:
        raise FieldsInvalid([Fault("topic", "should name a task id", FaultCode.PATTERN)]) from None


_Version = Annotated[
    int,
    Field(
        description="Version that grows with every write of the record, so the state with the higher version is newer."
    ),
]
_Refs = Annotated[Sequence[str], Field(description="Names of subscriptions, as the client chose them.")]


class WatchedTask(TypedDict):
    """A task, as shown in live updates, without payload or result."""

    kind: Literal["task"]
    id: str
    type: str
    name: str | None
    state: State
    due_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    priority: Priority
    tags: Mapping[str, str]
    attempt: Annotated[int, Field(description="Number of attempts that have started.")]
    progress: TaskProgressResponse | None
    error: TaskErrorResponse | None
    schedule: Annotated[
        str | None, Field(description="Name of the schedule that the task is a run of; null if the task is not a run.")
    ]
    topology: Annotated[
        str | None, Field(description="Id of the topology that the task is a node of; null if the task is not a node.")
    ]
    node: Annotated[str | None, Field(description="Name of the node; null if the task is not a node.")]
    version: Annotated[int, Field(description="Version, as in the response to `GET /v1/tasks/{task_id}`.")]


class WatchedSchedule(TypedDict):
    """A schedule, as shown in live updates."""

    kind: Literal["schedule"]
    name: str
    state: ScheduleState
    runs_skipped: int
    version: Annotated[int, Field(description="Version, as in the response to `GET /v1/schedules/{name}`.")]


class SnapshotFrame(TypedDict):
    """The response to `subscribe`, with the subject's current state.

    Changes to the subject may arrive before or after this message.
    """

    kind: Literal["snapshot"]
    ref: str
    version: _Version
    item: Annotated[
        WatchedTask | WatchedSchedule | None,
        Field(description="The subject; null for the topic `mine`, whose tasks are listed by `GET /v1/tasks`."),
    ]


class ChangeEntry(TypedDict):
    """A record that has changed."""

    id: Annotated[str, Field(description="Id of the task, or name of the schedule.")]
    version: _Version
    refs: Annotated[_Refs, Field(description="Subscriptions that now include the record.")]
    left: Annotated[_Refs, Field(description="Subscriptions that no longer include the record.")]
    item: Annotated[WatchedTask | WatchedSchedule | None, Field(description="The record; null if it was deleted.")]


class ChangeFrame(TypedDict):
    """Changes, with at most one change per record.

    If a record changes several times within a short time, only the last change is sent.
    """

    kind: Literal["change"]
    changes: Annotated[Sequence[ChangeEntry], Field(description="The changes.")]


class StaleFrame(TypedDict):
    """There were too many changes to send, so the client must read the subjects of these subscriptions again."""

    kind: Literal["stale"]
    refs: _Refs


class UnsubscribedFrame(TypedDict):
    """The response to `unsubscribe`."""

    kind: Literal["unsubscribed"]
    ref: str


class PongFrame(TypedDict):
    """The response to `ping`."""

    kind: Literal["pong"]
    ref: str | None


class ErrorFrame(TypedDict):
    """A message was rejected; the connection and its other subscriptions are unchanged."""

    kind: Literal["error"]
    ref: Annotated[str | None, Field(description="The rejected message's `ref`; null if it cannot be read.")]
    code: Annotated[ProblemCode, Field(description="Problem code, as in the REST API.")]
    detail: Annotated[str, Field(description="Human-readable description of what went wrong.")]
    errors: Annotated[Sequence[ProblemFault], Field(description="Errors in individual fields.")]


FRAMES = (SnapshotFrame, ChangeFrame, StaleFrame, UnsubscribedFrame, PongFrame, ErrorFrame)
