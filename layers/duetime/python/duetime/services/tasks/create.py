"""Creates tasks, and begins uploads of payloads that are too large for a request."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from duetime.domain.errors import (
    FaultCode,
    FieldInvalid,
    KeyReused,
    RequestError,
    StateConflict,
    TaskDeleted,
    TaskNotFound,
    Unavailable,
    UniqueKeyHeld,
    VersionMismatch,
)
from duetime.domain.limits import INLINE_CONTENT_BYTES
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.creation import (
    Accepted,
    Draft,
    Identity,
    KeyRedirect,
    Order,
    RememberedKey,
    TaskUpdate,
    debounced_due,
    due_of,
    has_begun,
    new_id,
    new_task,
)
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import OnConflict, unique_of
from duetime.domain.times import MINUTE
from duetime.domain.uploads import UPLOAD_FIELD, SignedUpload, Upload, UploadMissing
from duetime.services.content_retention import retain_open
from duetime.services.task_telemetry import MESSAGE_ID, creation_span
from duetime.services.tasks.creation_rules import CreationRules, payload_name
from duetime.services.unique_keys import key_status
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.creation import IdempotencyKey
    from duetime.domain.tasks.task import Content, Task, UploadedBytes
    from duetime.domain.tasks.task_options import Unique
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import KeyStore, UploadStore
    from duetime.services.dependencies import DependencyReader
    from duetime.services.enqueue import Enqueuer, Shards
    from duetime.services.tasks.update import TaskUpdater

Made = TypeVar("Made", bound="Accepted[Task] | Draft")
_TAIL_BITS = 64
_TRIES = 5
"""How often a creation is tried if another process takes its unique key or changes the key's holder meanwhile."""
E = TypeVar("E", bound=Exception)
_BY_CREATION = Attribution(reason="a creation with its unique key")


@frozen
class TaskCreator:
    """Creates tasks. Once the response is sent, the record is durable and everything else can be recovered.

    Attributes:
        shards: how many shards ids are spread over.
        rules: rules for accepting tasks.
        key_conflicts: resolves creations whose unique key is held.
        dependency_reader: reads what a task waits for.
    """

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    shards: Shards
    rules: CreationRules
    key_conflicts: KeyConflicts
    dependency_reader: Callable[[], DependencyReader]

    def create(self, owner: str, order: Order) -> Task:
        """Create one task, as `create_once` does."""
        return self.create_once(owner, order).value

    def create_once(self, owner: str, order: Order) -> Accepted[Task]:
        """Create one task, and return whether the task already existed.

        Raises:
            FieldInvalid: the task is due more than ten years ahead, or its target is not allowed.
            KeyReused: the request's idempotency key was used with a different body.
            TaskDeleted: the task that belongs to the idempotency key has been deleted.
            UniqueKeyHeld: another task holds the unique key, and can neither be kept nor replaced.
            Unavailable: the store did not answer; nothing may have been accepted.
        """
        accepted = self._traced(order, partial(self._write, owner))
        if accepted.is_new:
            self.enqueuer.send_due([accepted.value])
        return accepted

    def draft(self, owner: str, order: Order) -> Accepted[Task] | Draft:
        """Prepare a record for writing, unless the task exists; the caller must then create and finish the record.

        Raises:
            RequestError: as in `create_once`.
            Unavailable: the store did not answer.
        """
        return self._traced(order, partial(self._draft, owner))

    def resolved(self, owner: str, order: Order) -> TaskSpec:
        """The requested task with its type's defaults and the graphs of definitions that it names; writes nothing.

        Raises:
            FieldInvalid: the task's parent, a task in its `after`, or a definition that it names, does not exist.
            Unavailable: the store did not answer.
        """
        self._check_parent(owner, order.spec.parent_task_id)
        return self.rules.resolved(owner, self._with_dependencies(owner, order.spec), order.place_of_graph)

    def _traced(self, order: Order, make: Callable[[Order], Made]) -> Made:
        """Create or prepare a record within a span, whose context is stored in the task for links from its attempts."""
        with self.runtime.tracer.span(creation_span(order.spec.type, order.traceparent)) as opened:
            made = make(replace(order, traceparent=opened.context or order.traceparent))
            opened.end_with({MESSAGE_ID: (made.task if isinstance(made, Draft) else made.value).id.text})
        return made

    def _write(self, owner: str, order: Order) -> Accepted[Task]:
        """Write the record; returns the task, and whether this call wrote the record."""
        made = self._draft(owner, order)
        return self.finish(made, is_new=self.enqueuer.create(made.task)) if isinstance(made, Draft) else made

    def _draft(self, owner: str, order: Order) -> Accepted[Task] | Draft:
        """Do the steps before the record is written; if the record exists or has a unique key, do all steps."""
        try:
            spec = self.resolved(owner, order)
        except FieldInvalid:
            # A repeat gets the same response as the first request, even if the definition has changed.
            repeated = self._answered(owner, order) if order.origin is None else self._existing(self._identity(order))
            if repeated is None:
                raise
            return repeated
        if order.completes is not None:
            # The completion task of a group must not be replaced because of its type's default for `unique`.
            spec = replace(spec, unique=None)
        order = replace(order, spec=replace(spec, target=self.rules.accept(owner, spec, order.graph)))
        identity = self._identity(order)
        if order.key is not None:
            task_id, remembered = identity.task_id, self._remember(owner, order.key, identity)
            identity = Identity.of(remembered)
            if identity.task_id != task_id and (replayed := self._replayed(remembered)):
                return replayed
        if (unique := unique_of(order.spec.unique, order.spec.debounce)) is not None:
            return self._write_unique(owner, order, identity, unique)
        if self._is_costly(order) and (known := self._existing(identity)):
            return known
        try:
            return Draft(order, self._new_record(owner, order, identity), identity)
        except UploadMissing:
            # A concurrent copy of the request may have used up the upload.
            if order.key is None or (known := self._existing(identity)) is None:
                raise
            return known

    def finish(self, made: Draft, *, is_new: bool) -> Accepted[Task]:
        """Do the steps that follow once the record has been written or found to exist."""
        task, order = made.task, made.order
        if is_new:
            self._retained(task, made.identity)
            if order.spec.upload is not None:
                with suppress(Unavailable):
                    # If the upload is not removed, it expires.
                    self.stores.uploads.remove(Upload(task.owner, order.spec.upload))
                return Accepted(task)
            return Accepted(replace(task, payload=replace(task.payload, data=order.spec.payload)))
        if order.origin is not None:
            return Accepted(task, is_replay=True)
        # A concurrent repeat of the same request wrote this record first.
        return Accepted(self._retained(self.stores.tasks.read(task.id) or task, made.identity), is_replay=True)

    def _write_unique(self, owner: str, order: Order, identity: Identity, unique: Unique) -> Accepted[Task]:
        """Write the record unless another task holds its unique key; retry if the key's holder changes."""
        may_exist = order.origin is not None
        for _ in range(_TRIES):
            if may_exist and (known := self._existing(identity)):
                return known
            may_exist = True
            status = key_status(self.stores, owner, unique.key)
            settled = None
            if status.holder is not None:
                wanted = None if order.key is None else (order.key.text, identity.task_id)
                settled = self.key_conflicts.settle(status.holder, order.spec, unique, wanted)
            # The response is read after the key, because a copy of this request may have replaced a task that has ended
            # since.
            if settled is None and status.nonce is not None:
                settled = self._answered(owner, order, identity.task_id)
            if settled is not None:
                return settled
            if status.holder is not None:
                continue
            made = Draft(order, self._new_record(owner, order, identity), identity)
            if self.enqueuer.create(made.task, status.taken_by(made.task.id)):
                return self.finish(made, is_new=True)
        raise Unavailable(f"the unique key {unique.key!r} has too many concurrent takers")

    def _existing(self, identity: Identity) -> Accepted[Task] | None:
        """The existing task of the same request or event, or `None`."""
        known = self.stores.tasks.read(identity.task_id)
        return None if known is None else Accepted(self._retained(known, identity), is_replay=True)

    def _answered(self, owner: str, order: Order, wanted: TaskId | None = None) -> Accepted[Task] | None:
        """The response to an earlier or concurrent copy of the request, if any, to return instead of a new task."""
        key = order.key
        known = self.stores.keys.find(owner, key.text, self.runtime.now()) if key else None
        if key is None or known is None or known.task_id == wanted or known.body_hash != key.body_hash:
            return None
        return self._replayed(known)

    def _replayed(self, remembered: RememberedKey) -> Accepted[Task] | None:
        """The task of an idempotency key; `None` if the task does not exist yet."""
        known = self.stores.tasks.read(remembered.task_id)
        if known is None:
            return None
        if known.erased:
            raise TaskDeleted(known.id)
        task = self._retained(known, Identity.of(remembered))
        return Accepted(task, is_replay=True, on_conflict=remembered.on_conflict)

    def _new_record(self, owner: str, order: Order, identity: Identity) -> Task:
        """The record to write, with its payload stored and its place in its group taken."""
        if order.spec.group is not None:
            # Few tasks are members of a group, so the module is not imported at startup.
            from duetime.services.groups import join  # noqa: PLC0415 - see the line above

            join(self.stores, self.runtime, owner, order, identity)
        payload = self._stored_payload(owner, order, identity)
        task = new_task(
            identity.task_id, order.spec, owner, identity.due_at, identity.created_at, payload, self.runtime.epoch
        )
        # A repeat may come long after the first request, when the trigger no longer reads the id's home minute.
        next_at = max(task.next_at, self.runtime.now())
        if order.spec.after is not None:
            # A worker checks the dependencies at once, even if the task is due later.
            task, next_at = replace(task, state=State.BLOCKED, after=order.spec.after), self.runtime.now()
        return replace(
            task,
            next_at=next_at,
            traceparent=order.traceparent,
            parent_task_id=order.parent_task_id,
            completes=order.completes,
            order_number=order.line_number,
            nonce=self.runtime.nonce(),
        )

    def _stored_payload(self, owner: str, order: Order, identity: Identity) -> Content:
        """Store the payload, or attach the uploaded payload; a small payload becomes part of the record."""
        spec = order.spec
        if spec.upload is None:
            return self.stores.contents.keep(identity.task_id, payload_name(spec.target), spec.payload, identity.expiry)
        if order.origin is not None:
            raise FieldInvalid(UPLOAD_FIELD, "is not allowed in an event", FaultCode.NOT_ALLOWED)
        content = self.stores.uploads.attach(Upload(owner, spec.upload), identity.task_id, identity.expiry)
        if content is None:
            raise UploadMissing
        return content

    def _check_parent(self, owner: str, parent: TaskId | None) -> None:
        """Reject a parent id that is not the id of an existing task of the owner."""
        if parent is None:
            return
        found = self.stores.tasks.read(parent)
        if found is None or not found.exists_for(owner):
            raise FieldInvalid("parent_task_id", "is not the id of an existing task", FaultCode.NOT_ALLOWED)

    def _with_dependencies(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """The spec with its accepted dependencies, which must exist."""
        if spec.after is None:
            return spec
        return replace(spec, after=self.dependency_reader().accepted(owner, spec.after))

    def _retained(self, task: Task, accepted: Identity) -> Task:
        """Remove the expiry from an open task's payload, in case the record's writer crashed; returns the task."""
        if task.payload.is_outside and not task.is_terminal:
            retain_open(self.stores.tasks, self.stores.contents, task, accepted.expiry)
        return task

    def _identity(self, order: Order) -> Identity:
        now = self.runtime.now()
        if order.origin is None:
            due = due_of(order.spec, now)
            shard = self.runtime.random_source.below(self.shards.count())
            return Identity(new_id(due, now, shard, self.runtime.random_source.bits(_TAIL_BITS)), due, now)
        order.origin.check(now)
        due = due_of(order.spec, order.origin.at)
        return Identity(order.origin.task_id(due, self.shards.at(order.origin.at)), due, now)

    def _is_costly(self, order: Order) -> bool:
        """Whether a repeated delivery of the event would write data outside the record, or would be rejected."""
        at = None if order.origin is None else order.origin.at
        writes_more = len(order.spec.payload) > INLINE_CONTENT_BYTES or order.spec.group is not None
        return at is not None and (writes_more or at < self.runtime.now() - MINUTE)

    def _remember(self, owner: str, key: IdempotencyKey, accepted: Identity) -> RememberedKey:
        now = accepted.created_at
        wanted = RememberedKey(
            accepted.task_id, accepted.due_at, now, body_hash=key.body_hash, expires_at=now + key.life
        )
        known = self.stores.keys.remember(owner, key.text, wanted, now)
        if known.body_hash != key.body_hash:
            raise KeyReused
        return known


@frozen
class BatchCreator:
    """Creates many tasks independently, so that one task's failure does not affect the other tasks."""

    task_creator: TaskCreator

    def create_many(self, owner: str, orders: Sequence[Order]) -> list[Accepted[Task] | RequestError | Unavailable]:
        """Create a task for each order; returns the tasks, or errors in their place, in the requested order."""
        refusals: tuple[type[RequestError | Unavailable], ...] = (RequestError, Unavailable)
        return self._create_each(owner, orders, refusals)

    def create_each(self, owner: str, orders: Sequence[Order]) -> list[Task | Exception]:
        """Create a task for each order; returns the tasks, or any errors in their place, in the same order."""
        ends = self._create_each(owner, orders, (Exception,))
        return [end.value if isinstance(end, Accepted) else end for end in ends]

    def _create_each(
        self, owner: str, orders: Sequence[Order], refusals: tuple[type[E], ...]
    ) -> list[Accepted[Task] | E]:
        """Prepare all records and write them with few requests, then create the other tasks one by one."""
        creator, executor = self.task_creator, self.task_creator.runtime.executor

        def draft(order: Order | E) -> Accepted[Task] | Draft | E:
            if not isinstance(order, Order):
                return order
            try:
                return creator.draft(owner, order)
            except refusals as refusal:
                return refusal

        def finish(made: Accepted[Task] | Draft | E) -> Accepted[Task] | E:
            if not isinstance(made, Draft):
                return made
            try:
                return creator.finish(made, is_new=made.task.nonce in written or creator.enqueuer.create(made.task))
            except refusals as refusal:
                return refusal

        creator.shards.prepare()
        with suppress(Unavailable):
            # The defaults are read before parallel calls need them; if the read fails, each call reports the failure.
            creator.rules.types.look(owner)
        drafts = executor.map(draft, self._numbered(owner, orders, refusals))
        written = self._insert([each.task for each in drafts if isinstance(each, Draft)], refusals)
        ends = executor.map(finish, drafts)
        creator.enqueuer.send_due([end.value for end in ends if isinstance(end, Accepted) and end.is_new])
        return ends

    def _numbered(self, owner: str, orders: Sequence[Order], refusals: tuple[type[E], ...]) -> Sequence[Order | E]:
        """Give the tasks of each ordered key consecutive numbers, because the tasks are created in parallel."""
        counts = Counter(order.spec.order.key for order in orders if order.spec.order is not None)
        if not counts:
            return orders
        # Few tasks have an ordered key, so the module is not imported at startup.
        from duetime.domain.order_lines import LineName  # noqa: PLC0415 - see the line above

        lines, now = self.task_creator.enqueuer.order_lines(), self.task_creator.runtime.now()
        following: dict[str, int | E] = {}
        for key, count in counts.items():
            try:
                following[key] = lines.next_number(LineName(owner, key), count, now)
            except refusals as refusal:
                following[key] = refusal
        numbered: list[Order | E] = []
        for order in orders:
            number = None if order.spec.order is None else following[order.spec.order.key]
            if isinstance(number, int) and order.spec.order is not None:
                following[order.spec.order.key] = number + 1
            numbered.append(replace(order, line_number=number) if number is None or isinstance(number, int) else number)
        return numbered

    def _insert(self, tasks: Sequence[Task], refusals: tuple[type[Exception], ...]) -> Collection[str]:
        """Write records with few requests; if this fails, the records are written one by one."""
        try:
            return self.task_creator.enqueuer.insert(tasks)
        except refusals as defect:
            note = "records could not be written in a batch, and are written one by one"
            self.task_creator.runtime.telemetry.note(note, error=type(defect).__name__)
            return ()


@frozen
class KeyConflicts:
    """Resolves a creation whose unique key is taken."""

    task_updater: Callable[[], TaskUpdater]
    keys: KeyStore
    runtime: Runtime

    def settle(
        self, holder: Task, spec: TaskSpec, unique: Unique, wanted: tuple[str, TaskId] | None
    ) -> Accepted[Task] | None:
        """Keep the task that holds the key, or apply the new task's fields to it.

        Args:
            holder: the task that holds the key, as read.
            spec: specification of the new task.
            unique: unique key of the new task.
            wanted: the new task's idempotency key, and the id that belongs to the key; `None` without a key.

        Returns:
            The task that holds the key, and the result; `None` if the task has changed since, so that the holder must
            be read again.

        Raises:
            UniqueKeyHeld: the creation must be rejected, or the task cannot be replaced.
            FieldInvalid: a field of the creation is invalid.
            Unavailable: the store did not answer; nothing may have been changed.
        """
        redirect = None if wanted is None else KeyRedirect(holder.owner, *wanted, holder.id, unique.on_conflict)
        match unique.on_conflict:
            case OnConflict.KEEP:
                if redirect is not None:
                    self.keys.redirect(redirect)
                return Accepted(holder, on_conflict=OnConflict.KEEP)
            case OnConflict.REFUSE:
                raise _held(holder, spec, unique)
            case OnConflict.REPLACE:
                return self._replace(holder, spec, unique, redirect)

    def _replace(
        self, holder: Task, spec: TaskSpec, unique: Unique, redirect: KeyRedirect | None
    ) -> Accepted[Task] | None:
        if has_begun(holder):
            raise _held(holder, spec, unique, ", and has begun: it can no longer be replaced")
        if holder.type != spec.type:
            raise _held(holder, spec, unique, f", and is of another type, {holder.type!r}")
        if holder.order != spec.order:
            raise _held(holder, spec, unique, ", and has another ordered key, or none")
        now = self.runtime.now()
        due = due_of(spec, now) if spec.debounce is None else debounced_due(spec.debounce, holder.created_at, now)
        fields: Any = {**spec.options(), "target": spec.target, "unique": spec.unique, "debounce": spec.debounce}
        # The change includes the redirect, so that a repeat after the task's end finds the result even if the response
        # was lost.
        change = TaskUpdate(fields, due_at=due, payload=spec.payload, redirect=redirect)
        try:
            task = self.task_updater().update(holder.owner, holder.id, change, holder.version, _BY_CREATION)
        except (StateConflict, TaskNotFound, VersionMismatch):
            return None
        return Accepted(task, on_conflict=OnConflict.REPLACE)


def _held(holder: Task, spec: TaskSpec, unique: Unique, why: str = "") -> UniqueKeyHeld:
    field = "unique.key" if spec.debounce is None else "debounce.key"
    return UniqueKeyHeld(holder, unique.key, why, field=field)


@frozen
class Uploads:
    """Begins uploads."""

    store: UploadStore
    runtime: Runtime

    def begin(self, owner: str, upload_id: str | None, content: UploadedBytes) -> tuple[Upload, SignedUpload]:
        """Sign the request with which an owner uploads a payload; nothing is stored yet.

        Args:
            owner: owner of the task that will have the payload.
            upload_id: id that the owner has chosen; `None` for a new id.
            content: size and type of the payload.
        """
        upload = Upload(owner, upload_id or self.runtime.random_source.nonce())
        return upload, self.store.sign(upload, content, self.runtime.now())
