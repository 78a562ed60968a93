"""Accepting tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import KeyReused, RequestError, TaskDeleted, Unavailable
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, INLINE_CONTENT_BYTES
from duetime.domain.tasks.content_expiry import unless_referenced
from duetime.domain.tasks.creation import due_of, new_id, new_task
from duetime.domain.tasks.idempotency_keys import Accepted, RememberedKey
from duetime.domain.times import MINUTE
from duetime.services.content_retention import retain_open
from duetime.services.spans import MESSAGE_ID, creation_span
from duetime.services.tasks.creation_rules import PAYLOAD, CreationRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.content_expiry import Expiry
    from duetime.domain.tasks.creation import Origin
    from duetime.domain.tasks.task import Task, TaskSpec
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.shards import Shards


_TAIL_BITS = 64


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key for a request, and the hash of the body it came with."""

    text: str
    body_hash: str


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


@dataclass(frozen=True, slots=True)
class _Identity:
    """What stays the same however often a request is repeated."""

    task_id: TaskId
    due_at: Millis
    created_at: Millis

    @property
    def expiry(self) -> Expiry:
        """Of its payload, until the record refers to it."""
        return unless_referenced(max(self.due_at, self.created_at))


@dataclass(frozen=True, slots=True)
class TaskCreator:
    """Accepts tasks: once it has answered, the record is durable and everything else can be recovered.

    Attributes:
        shards: how many shards ids are spread over.
        rules: what a task must be to be accepted.
    """

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    shards: Shards
    rules: CreationRules

    def create(self, owner: str, order: Order) -> Task:
        """Accept one task; see `create_once`."""
        return self.create_once(owner, order).value

    def create_once(self, owner: str, order: Order) -> Accepted[Task]:
        """Accept one task, and say whether it was accepted before.

        Raises:
            FieldInvalid: it is due more than ten years ahead, or its target may not be called.
            KeyReused: its idempotency key came with another body before.
            TaskDeleted: its idempotency key made a task that was deleted since.
            Unavailable: the store did not answer; nothing may have been accepted.
        """
        task, written = self._traced(owner, order)
        if written:
            self.enqueuer.send_due([task])
        return Accepted(task, is_replay=not written)

    def create_many(self, owner: str, orders: Sequence[Order]) -> list[Accepted[Task] | RequestError | Unavailable]:
        """Accept many tasks, each for itself: a task or the reason why not, in the order they were requested."""

        def attempt(order: Order) -> tuple[Task, bool] | RequestError | Unavailable:
            try:
                return self._traced(owner, order)
            except (RequestError, Unavailable) as refusal:
                return refusal

        self.shards.prepare()
        ends = self.runtime.executor.map(attempt, orders)
        self._send_new(ends)
        return [Accepted(end[0], is_replay=not end[1]) if isinstance(end, tuple) else end for end in ends]

    def create_each(self, owner: str, orders: Sequence[Order]) -> list[Task | Exception]:
        """Accept many tasks, each for itself, whatever goes wrong with any: a task or why there is none, in order."""

        def attempt(order: Order) -> tuple[Task, bool] | Exception:
            try:
                return self._traced(owner, order)
            except Exception as error:  # noqa: BLE001 - a defect that one order meets must not take others with it
                return error

        self.shards.prepare()
        ends = self.runtime.executor.map(attempt, orders)
        self._send_new(ends)
        return [end[0] if isinstance(end, tuple) else end for end in ends]

    def _send_new(self, ends: Sequence[tuple[Task, bool] | Exception]) -> None:
        """Send what is due of the records that were written just now."""
        self.enqueuer.send_due([end[0] for end in ends if isinstance(end, tuple) and end[1]])

    def _traced(self, owner: str, order: Order) -> tuple[Task, bool]:
        """Make the record exist, as a span whose context the task keeps: its attempts link to it."""
        with self.runtime.tracer.span(creation_span(order.spec.type, order.traceparent)) as opened:
            task, written = self._write(owner, replace(order, traceparent=opened.context or order.traceparent))
            opened.end_with({MESSAGE_ID: task.id.text})
        return task, written

    def _write(self, owner: str, order: Order) -> tuple[Task, bool]:
        """Make the record exist; says whether it was this call that wrote it."""
        spec = replace(order.spec, target=self.rules.accept(order.spec, order.graph))
        accepted = self._accepted(order)
        if order.key is not None:
            task_id, accepted = accepted.task_id, self._remember(owner, order.key, accepted)
            if accepted.task_id != task_id and (known := self.stores.tasks.read(accepted.task_id)):
                if known.erased:
                    raise TaskDeleted(known.id)
                return self._retained(known, accepted), False
        if self._is_costly(order) and (known := self.stores.tasks.read(accepted.task_id)):
            return self._retained(known, accepted), False
        payload = self.stores.contents.keep(accepted.task_id, PAYLOAD, order.spec.payload, accepted.expiry)
        task = new_task(accepted.task_id, spec, owner, accepted.due_at, accepted.created_at, payload)
        # A repeat may come long after its first try: nobody reads its home minute any more.
        task = replace(task, next_at=max(task.next_at, self.runtime.now()), traceparent=order.traceparent)
        if self.enqueuer.create(task):
            self._retained(task, accepted)
            return replace(task, payload=replace(payload, data=order.spec.payload)), True
        if order.origin is not None:
            return task, False
        # Somebody else is repeating the same request just now, and wrote this very record first.
        return self._retained(self.stores.tasks.read(task.id) or task, accepted), False

    def _retained(self, task: Task, accepted: _Identity) -> Task:
        """An open task whose payload lasts as long as its record; whoever wrote the record may not have come so far."""
        if task.payload.is_outside and not task.is_terminal:
            retain_open(self.stores.tasks, self.stores.contents, task, accepted.expiry)
        return task

    def _accepted(self, order: Order) -> _Identity:
        now = self.runtime.now()
        if order.origin is None:
            due = due_of(order.spec, now)
            shard = self.runtime.random_source.below(self.shards.count())
            return _Identity(new_id(due, now, shard, self.runtime.random_source.bits(_TAIL_BITS)), due, now)
        order.origin.check(now)
        due = due_of(order.spec, order.origin.at)
        return _Identity(order.origin.task_id(due, self.shards.at(order.origin.at)), due, now)

    def _is_costly(self, order: Order) -> bool:
        """Whether a repeated delivery would write something beside the record it finds: a payload, or a timer."""
        if order.origin is None:
            return False
        return len(order.spec.payload) > INLINE_CONTENT_BYTES or order.origin.at < self.runtime.now() - MINUTE

    def _remember(self, owner: str, key: IdempotencyKey, accepted: _Identity) -> _Identity:
        now = accepted.created_at
        wanted = RememberedKey(
            accepted.task_id, accepted.due_at, now, body_hash=key.body_hash, expires_at=now + IDEMPOTENCY_KEY_LIFE
        )
        known = self.stores.keys.remember(owner, key.text, wanted, now)
        if known.body_hash != key.body_hash:
            raise KeyReused
        return _Identity(known.task_id, known.due_at, known.created_at)
