"""From what a client asks for to the record of a task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_DUE_AHEAD, MAX_EVENT_AHEAD
from duetime.domain.tasks.content import unless_referenced
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task import Task
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.content import Content, Expiry
    from duetime.domain.tasks.idempotency_keys import IdempotencyKey, KeyRedirect, RememberedKey
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.tasks.task_options import Debounce
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph


@dataclass(frozen=True, slots=True)
class Origin:
    """The event that a task is made of: made of the same event again, it is the same task.

    Attributes:
        source: whose event it is; no two events of one source have the same id.
        id: the event's.
        at: when it happened; the same however often it is delivered.
    """

    source: str
    id: str
    at: Millis

    def task_id(self, due: Millis, shards: int) -> TaskId:
        """The id of the task that is made of it."""
        digest = sha256(f"{self.source}\0{self.id}".encode()).digest()
        spread, tail = int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:10], "big")
        return TaskId.of(max(due, self.at), spread % shards, tail)

    def check(self, now: Millis) -> None:
        """Reject a time that cannot be true.

        Raises:
            FieldInvalid: it lies before 1970, or ahead of the clock by more than clocks of others may.
        """
        if self.at < 0:
            raise FieldInvalid("time", "lies before 1970", FaultCode.OUT_OF_RANGE)
        if self.at > now + MAX_EVENT_AHEAD:
            raise FieldInvalid("time", "lies in the future", FaultCode.OUT_OF_RANGE)


@dataclass(frozen=True, slots=True)
class Identity:
    """What stays the same of a task however often its creation is repeated."""

    task_id: TaskId
    due_at: Millis
    created_at: Millis

    @classmethod
    def of(cls, remembered: RememberedKey) -> Identity:
        """What an idempotency key remembers of it."""
        return cls(remembered.task_id, remembered.due_at, remembered.created_at)

    @property
    def expiry(self) -> Expiry:
        """Of its payload, until the record refers to it."""
        return unless_referenced(max(self.due_at, self.created_at))


@dataclass(frozen=True, slots=True)
class Order:
    """One task that a client asks for.

    Attributes:
        key: the client's, by which a repeated request is known.
        origin: the event that the task is made of, by which a repeated delivery is known.
        graph: of a topology whose request has fields for it; else it is read from the payload.
        traceparent: the trace of the request.
    """

    spec: TaskSpec
    key: IdempotencyKey | None = None
    origin: Origin | None = None
    graph: Graph | None = None
    traceparent: str | None = None

    @property
    def place_of_graph(self) -> str:
        """What names the place of its graph in the request, before the names of the graph's fields."""
        return "payload." if self.graph is None else ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A record that is ready to be written, with a nonce of its own, and the order it is made of."""

    order: Order
    task: Task
    identity: Identity


class FieldMerge(Protocol):
    """What a client wants changed of fields, of which it may name parts only."""

    def of(self, before: Task, default_target: Target) -> TaskChanges:
        """The new values of the fields that it names.

        Args:
            before: the task as it is.
            default_target: what the task's type says is called.

        Raises:
            FieldInvalid: a field with the change cannot be accepted.
        """
        ...


@dataclass(frozen=True, slots=True)
class TaskChange:
    """What a client wants changed.

    Attributes:
        fields: new values by field of `Task`, due time and payload apart.
        merge: what is still to be merged into the task as it is; its values go before those of `fields`.
        due_at: a new due time.
        delay: a new due time, counted from now; excludes `due_at`.
        payload: a new payload.
        redirect: of the idempotency key of a creation that replaces the task, in one write; needs a new due time.
    """

    fields: TaskChanges
    due_at: Millis | None = None
    delay: Millis | None = None
    payload: bytes | None = None
    merge: FieldMerge | None = None
    redirect: KeyRedirect | None = None

    def merged_into(self, before: Task, default_target: Target) -> TaskChange:
        """The same change of a task as it is, with nothing left to be merged.

        Raises:
            FieldInvalid: a field with the change cannot be accepted.
        """
        if self.merge is None:
            return self
        fields: TaskChanges = {**self.fields, **self.merge.of(before, default_target)}
        return replace(self, fields=fields, merge=None)

    @property
    def sets_due(self) -> bool:
        """Whether it sets a new due time."""
        return self.due_at is not None or self.delay is not None


def due_of(spec: TaskSpec, now: Millis) -> Millis:
    """When a task is due that is accepted now.

    Raises:
        FieldInvalid: more than ten years ahead.
    """
    due = spec.due_at if spec.due_at is not None else now + (spec.delay or 0)
    if spec.debounce is not None:
        due = debounced_due(spec.debounce, now, now)
    if due > now + MAX_DUE_AHEAD:
        raise FieldInvalid(
            "due_at" if spec.due_at is not None else "delay_seconds",
            "is more than ten years ahead",
            FaultCode.OUT_OF_RANGE,
        )
    return due


def debounced_due(debounce: Debounce, first: Millis, now: Millis) -> Millis:
    """When a task is due with whose key a creation comes now.

    Args:
        debounce: of the creation that comes now.
        first: when the task was created.
        now: the time.
    """
    due = now + debounce.seconds * SECOND
    return due if debounce.max_seconds is None else max(now, min(due, first + debounce.max_seconds * SECOND))


def new_id(due: Millis, now: Millis, shard: int, tail: int) -> TaskId:
    """The id of a task that is accepted now: its home is its due time, or now if that is past."""
    return TaskId.of(max(due, now), shard, tail)


def new_task(task_id: TaskId, spec: TaskSpec, owner: str, due: Millis, now: Millis, payload: Content) -> Task:
    """The record of a newly accepted task."""
    return Task(
        id=task_id,
        owner=owner,
        type=spec.type,
        state=State.SCHEDULED,
        due_at=due,
        next_at=task_id.home,
        created_at=now,
        payload=payload,
        target=spec.target or HandlerTarget(),
        unique=spec.unique,
        debounce=spec.debounce,
        **spec.options(),
    )
