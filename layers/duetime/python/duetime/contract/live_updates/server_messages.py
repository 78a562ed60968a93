"""What the WebSocket sends to a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.problem_kinds import ProblemCode
from duetime.contract.http.problems import ProblemFault
from duetime.contract.tasks.responses import Instant, TaskErrorResponse, TaskProgressResponse
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority

_Version = Annotated[
    int,
    Field(description="Grows with every write of the record: of two states of one record, the higher version counts."),
]
_Refs = Annotated[Sequence[str], Field(description="Names of subscriptions, as the client chose them.")]


class WatchedTask(TypedDict):
    """A task as live updates show it: never its payload or result."""

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
    schedule: Annotated[str | None, Field(description="Name of the schedule that it is a run of; null for none.")]
    topology: Annotated[str | None, Field(description="Id of the topology that it is a node of; null for none.")]
    node: Annotated[str | None, Field(description="Its name in that topology.")]
    version: Annotated[int, Field(description="As in the response to `GET /v1/tasks/{task_id}`.")]


class WatchedSchedule(TypedDict):
    """A schedule as live updates show it."""

    kind: Literal["schedule"]
    name: str
    state: ScheduleState
    runs_skipped: int
    version: Annotated[int, Field(description="As in the response to `GET /v1/schedules/{name}`.")]


class SnapshotFrame(TypedDict):
    """The response to `subscribe`: the subject as it is now. Changes of it may come before or after."""

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
    refs: Annotated[_Refs, Field(description="Subscriptions that the record belongs to now.")]
    left: Annotated[_Refs, Field(description="Subscriptions that it belonged to before, and no longer does.")]
    item: Annotated[WatchedTask | WatchedSchedule | None, Field(description="The record; null if it was deleted.")]


class ChangeFrame(TypedDict):
    """Changes, one for each record: of several in a short time, the last."""

    kind: Literal["change"]
    changes: Annotated[Sequence[ChangeEntry], Field(description="The changes.")]


class StaleFrame(TypedDict):
    """There were too many changes to send them all: read what these subscriptions are about again."""

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
    """A message was rejected; the connection and its other subscriptions are as before."""

    kind: Literal["error"]
    ref: Annotated[str | None, Field(description="Of the rejected message; null if it has none that can be read.")]
    code: Annotated[ProblemCode, Field(description="As in problems of the REST API.")]
    detail: Annotated[str, Field(description="What happened, for people.")]
    errors: Annotated[Sequence[ProblemFault], Field(description="The faults of single fields.")]


FRAMES = (SnapshotFrame, ChangeFrame, StaleFrame, UnsubscribedFrame, PongFrame, ErrorFrame)
