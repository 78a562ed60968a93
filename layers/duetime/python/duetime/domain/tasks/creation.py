"""Creates the record of a task from a client's request, with its idempotency key and its unique key.

A request with the same idempotency key and body creates the same resource; a request with the same key and a different
body is rejected (Source: IETF draft "The Idempotency-Key HTTP Header Field").

At most one task at a time holds each of an owner's unique keys. Keys are never released explicitly: the key's item
names the task that last took the key, and that task's record determines whether it still holds the key. A task starts
to hold its key when it is created or reopened; that write is in one transaction with the write of the key's item.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.ids import TaskId
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, MAX_DUE_AHEAD, MAX_EVENT_AHEAD
from duetime.domain.tasks.states import LEASED, TERMINAL, State
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task import Task, fence_of_epoch, unless_referenced
from duetime.domain.tasks.task_options import Until, unique_of
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Content, Expiry
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.tasks.task_options import Debounce, OnConflict
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph


T = TypeVar("T")


@frozen
class IdempotencyKey:
    """A client's key for a request, with the hash of the request's body and the time for which the key is stored."""

    text: str
    body_hash: str
    life: Millis = IDEMPOTENCY_KEY_LIFE


@frozen
class Accepted(Generic[T]):
    """The result of a request that may be repeated.

    Attributes:
        is_replay: whether an earlier request with the same key created the value, so that this request did nothing.
        on_conflict: what was done because another task held the unique key; `None` if the task was created.
    """

    value: T
    is_replay: bool = False
    on_conflict: OnConflict | None = None

    @property
    def is_new(self) -> bool:
        """Whether this request created the value."""
        return not self.is_replay and self.on_conflict is None


@frozen
class KeyRedirect:
    """Redirects an idempotency key from the task that was to be created to an existing task.

    Attributes:
        wanted: the task that was to be created and that the key still names.
        instead: the task that holds the unique key.
        on_conflict: what happens to the existing task.
    """

    owner: str
    key: str
    wanted: TaskId
    instead: TaskId
    on_conflict: OnConflict


@frozen
class RememberedKey:
    """The value of an idempotency key. The value is stored before its task, so that a replay writes the same task.

    Attributes:
        task_id: id of the task, or of another resource that the request creates.
        due_at: the due time that the first request computed.
        body_hash: hash of the request's body.
        expires_at: when the key may be used again.
        edition: edition of the resource's name; a replay creates the resource only if the edition is unchanged.
        on_conflict: what was done instead of creating a task, because the task `task_id` held the unique key.
    """

    task_id: TaskId
    due_at: Millis
    created_at: Millis
    body_hash: str
    expires_at: Millis
    edition: int = 0
    on_conflict: OnConflict | None = None


@frozen
class KeyHolder:
    """The item of a unique key.

    Attributes:
        task_id: the task that last took the key; its record determines whether it still holds the key.
        nonce: nonce of the write that stored the item.
    """

    task_id: TaskId
    nonce: str


@frozen
class KeyTaking:
    """Makes a task take a unique key, as part of the write that makes the task hold the key.

    Attributes:
        since_fence: lower bound of the fences of the task's later attempts, because the end of an earlier attempt does
            not free a key that was taken again.
        after: if the key is free, nonce of the item as read; `None` if there was no item.
    """

    owner: str
    key: str
    task_id: TaskId
    since_fence: int
    after: str | None


KeyWrite: TypeAlias = "KeyTaking | KeyRedirect"
"""The write to a unique key's item, in the same transaction as the write of a record."""


def holds_key(task: Task) -> bool:
    """Whether a task holds its unique key."""
    unique = unique_of(task.unique, task.debounce)
    if unique is None or task.state in TERMINAL:
        return False
    return unique.until is Until.ENDED or not has_begun(task)


def has_begun(task: Task) -> bool:
    """Whether an attempt of a task has started, so that the task must no longer be replaced."""
    return task.state in LEASED or task.started_at is not None


@frozen
class Origin:
    """The event from which a task is created; the same event always leads to the same task.

    Attributes:
        source: source of the event; ids are unique per source.
        id: id of the event.
        at: when the event happened, which is the same for each delivery.
    """

    source: str
    id: str
    at: Millis

    def task_id(self, due: Millis, shards: int) -> TaskId:
        """The id of the task."""
        digest = sha256(f"{self.source}\0{self.id}".encode()).digest()
        spread, tail = int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:10], "big")
        return TaskId.of(max(due, self.at), spread % shards, tail)

    def check(self, now: Millis) -> None:
        """Rejects an implausible time.

        Raises:
            FieldInvalid: the time is before 1970, or farther in the future than clock differences can explain.
        """
        if self.at < 0:
            raise FieldInvalid("time", "lies before 1970", FaultCode.OUT_OF_RANGE)
        if self.at > now + MAX_EVENT_AHEAD:
            raise FieldInvalid("time", "lies in the future", FaultCode.OUT_OF_RANGE)


@frozen
class Identity:
    """The values of a task that must stay the same if its creation is repeated."""

    task_id: TaskId
    due_at: Millis
    created_at: Millis

    @classmethod
    def of(cls, remembered: RememberedKey) -> Identity:
        """The identity that is stored under an idempotency key."""
        return cls(remembered.task_id, remembered.due_at, remembered.created_at)

    @property
    def expiry(self) -> Expiry:
        """Expiry that the task's payload has until the record refers to the payload."""
        return unless_referenced(max(self.due_at, self.created_at))


@frozen
class Order:
    """A client's request for one task.

    Attributes:
        key: the client's idempotency key, which identifies a repeated request.
        origin: the event from which the task is created, which identifies a repeated delivery.
        graph: graph of a topology whose request has fields for the graph; otherwise the graph is read from the payload.
        traceparent: the trace of the request.
        parent: the task whose handler sends the request; `None` for other callers.
        completes: id of the group whose members must end before the task runs; `None` for any other task.
        line_number: for a task in a batch, the task's number in the line of its ordered key; `None` to take the next
            number.
    """

    spec: TaskSpec
    key: IdempotencyKey | None = None
    origin: Origin | None = None
    graph: Graph | None = None
    traceparent: str | None = None
    parent: TaskId | None = None
    completes: str | None = None
    line_number: int | None = None

    @property
    def parent_task_id(self) -> TaskId | None:
        """The parent of the new task: the task in the request, or the task whose handler sends the request."""
        return self.spec.parent_task_id or self.parent

    @property
    def place_of_graph(self) -> str:
        """Path prefix of the graph's fields in the request."""
        return "payload." if self.graph is None else ""


@frozen
class Draft:
    """A record that is ready to be written, with its nonce and the `Order` from which it was created."""

    order: Order
    task: Task
    identity: Identity


class FieldMerge(Protocol):
    """A client's update of a value, such as a target, that may give only some of the value's fields."""

    def of(self, before: Task, default_target: Target) -> TaskChanges:
        """Returns the new values of the given fields.

        Args:
            before: the current task.
            default_target: the target of the task's type.

        Raises:
            FieldInvalid: an updated field is invalid.
        """
        ...


@frozen
class TaskUpdate:
    """A client's update of a task.

    Attributes:
        fields: new values by field of `Task`, apart from due time and payload.
        merge: updates that must still be merged with the current task; they take precedence over `fields`.
        due_at: a new due time.
        delay: the time from now to the new due time; cannot be combined with `due_at`.
        payload: a new payload.
        redirect: for a creation that replaces this task, the redirect of its idempotency key, which is stored in the
            same write; requires a new due time.
    """

    fields: TaskChanges
    due_at: Millis | None = None
    delay: Millis | None = None
    payload: bytes | None = None
    merge: FieldMerge | None = None
    redirect: KeyRedirect | None = None

    def merged_into(self, before: Task, default_target: Target) -> TaskUpdate:
        """The update merged with the current task, so that `merge` is empty.

        Raises:
            FieldInvalid: an updated field is invalid.
        """
        if self.merge is None:
            return self
        fields: TaskChanges = {**self.fields, **self.merge.of(before, default_target)}
        return replace(self, fields=fields, merge=None)

    @property
    def sets_due(self) -> bool:
        """Whether the update sets a new due time."""
        return self.due_at is not None or self.delay is not None


def due_of(spec: TaskSpec, now: Millis) -> Millis:
    """The due time of a task that is accepted now.

    Raises:
        FieldInvalid: the due time is more than ten years in the future.
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
    """The due time of a debounced task after another creation with its key.

    Args:
        debounce: debounce options of the other creation.
        first: when the task was created.
        now: the time.
    """
    due = now + debounce.seconds * SECOND
    return due if debounce.max_seconds is None else max(now, min(due, first + debounce.max_seconds * SECOND))


def new_id(due: Millis, now: Millis, shard: int, tail: int) -> TaskId:
    """The id of a task that is accepted now; its home is the due time, or now if the due time is in the past."""
    return TaskId.of(max(due, now), shard, tail)


def new_task(
    task_id: TaskId, spec: TaskSpec, owner: str, due: Millis, now: Millis, payload: Content, epoch: int = 0
) -> Task:
    """The record of a newly accepted task, with the first fence of the deployment's epoch."""
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
        group=spec.group,
        order=spec.order,
        fence=fence_of_epoch(0, epoch),
        **spec.options(),
    )
