"""Creates schedules, and writes them conditionally for all requests of their owners."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import ScheduleTimer, first_unread
from duetime.domain.errors import (
    ContentExpired,
    FaultCode,
    FieldInvalid,
    KeyReused,
    ScheduleExists,
    ScheduleNotFound,
    ScheduleVersionMismatch,
    Unavailable,
)
from duetime.domain.ids import TaskId
from duetime.domain.schedules.occurrences import next_nominal
from duetime.domain.schedules.schedule import check
from duetime.domain.schedules.schedule_changes import stopped_since
from duetime.domain.schedules.schedule_record import StoredSchedule
from duetime.domain.schedules.time_zones import tzdata_version
from duetime.domain.tasks.creation import Accepted, RememberedKey
from duetime.domain.tasks.task import Content, ContentPlace, after_record, unless_referenced
from duetime.domain.times import SECOND
from duetime.services.tasks.creation_rules import PAYLOAD
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.schedules.definition import ScheduleSpec, Written
    from duetime.domain.schedules.schedule_record import RemovedSchedule
    from duetime.domain.tasks.creation import IdempotencyKey
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import KeyStore
    from duetime.services.enqueue import Enqueuer, Shards
    from duetime.services.schedules.expander import ScheduleExpander


@frozen
class RepeatedRequests:
    """Stores the object that each idempotency key has created."""

    keys: KeyStore

    def known(self, owner: str, key: IdempotencyKey | None, now: Millis) -> RememberedKey | None:
        """The object that a key's first request creates; `None` if this is the first request or has no key.

        Raises:
            KeyReused: the key was used with a different request.
        """
        return None if key is None else _same(self.keys.find(owner, key.text, now), key)

    def remember(
        self, owner: str, key: IdempotencyKey, made: TaskId, now: Millis, edition: int = 0
    ) -> RememberedKey | None:
        """Record the object that a key's request is about to create.

        Args:
            owner: owner of the key.
            key: key of the request.
            made: id of the object that the request creates.
            now: time of the request.
            edition: edition of the object's name.

        Returns:
            The key's object if a concurrent request was first, otherwise `None`.

        Raises:
            KeyReused: the key was used with a different request.
        """
        wanted = RememberedKey(made, now, now, key.body_hash, expires_at=now + key.life, edition=edition)
        known = self.keys.remember(owner, key.text, wanted, now)
        return None if known.task_id == made else _same(known, key)


def _same(known: RememberedKey | None, key: IdempotencyKey) -> RememberedKey | None:
    if known is not None and known.body_hash != key.body_hash:
        raise KeyReused
    return known


TRIES = 10
_PATIENCE = 3 * SECOND
"""Longest wait of a caller for an expansion, such as a backfill at full rate; the trigger does the rest."""


@frozen
class ScheduleWriter:
    """Reads and writes schedules for their owners; writes are conditional, and set a timer first if needed.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
        retention: how long tasks are kept, which determines how long the payload of a deleted schedule is stored.
    """

    stores: Stores
    enqueuer: Enqueuer
    expander: ScheduleExpander
    runtime: Runtime
    look_ahead: Millis
    retention: RetentionPolicy

    def read_with_payload(self, owner: str, name: str) -> StoredSchedule:
        """Read a schedule with its payload."""
        return self.with_payload(self.read(owner, name))

    def with_payload(self, stored: StoredSchedule) -> StoredSchedule:
        """A schedule with its payload, unless the payload has expired."""
        payload = stored.payload
        if payload.data is None:
            with suppress(ContentExpired):
                payload = replace(payload, data=self.stores.contents.fetch(stored.uid, payload))
        return replace(stored, payload=payload)

    def read(self, owner: str, name: str, version: int | None = None) -> StoredSchedule:
        """A stored schedule without its payload; if `version` is given, the schedule must be at that version."""
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is None:
            raise ScheduleNotFound(name)
        _check_version(stored, version)
        return stored

    def read_again(self, stored: StoredSchedule, version: int | None) -> StoredSchedule:
        """The current state of a schedule that was read before.

        Raises:
            ScheduleNotFound: the schedule has been deleted, even if another schedule now has its name.
        """
        found = self.read(stored.owner, stored.name)
        if found.uid != stored.uid:
            raise ScheduleNotFound(stored.name)
        _check_version(found, version)
        return found

    def check(self, stored: StoredSchedule) -> None:
        """Reject a schedule that is invalid or would never run."""
        self.expander.planner.occurrence_tasks.check(stored)
        schedule = check(stored.schedule(self.expander.planner.calendars_of(stored)))
        if not stored.is_permanent and next_nominal(schedule, stored.done) is None:
            endless = replace(schedule, spec=replace(schedule.spec, end_at=None))
            if schedule.spec.end_at is not None and next_nominal(endless, stored.done) is not None:
                raise FieldInvalid("end_at", "leaves no time in the future", FaultCode.OUT_OF_RANGE)
            raise FieldInvalid(_field(stored.spec.written), "has no time in the future", FaultCode.OUT_OF_RANGE)

    def write(
        self,
        before: StoredSchedule,
        version: int | None,
        changed: Callable[[StoredSchedule], StoredSchedule],
        *,
        with_timer: bool = False,
    ) -> StoredSchedule:
        """Write a change, and repeat it after concurrent writes.

        Args:
            before: the schedule as read; another schedule with the same name is not changed.
            version: required version; `None` for any version.
            changed: makes the change.
            with_timer: whether the trigger must expand the schedule; if so, the schedule's timer is set first.
        """
        _check_version(before, version)
        for _ in range(TRIES):
            after = changed(before)
            if after == before:
                return before
            if with_timer:
                after = replace(after, generation=before.generation + 1, tzdata=tzdata_version())
                self.write_timer(after)
            if self.stores.schedules.save(after, self.runtime.nonce()):
                return replace(after, incarnation=before.incarnation + 1)
            before = self.read_again(before, version)
        raise busy(before.name)

    def marked(self, stored: StoredSchedule) -> StoredSchedule:
        """The schedule before a change, marked with the upcoming occurrences that its user has stopped or run early."""
        planner = self.expander.planner
        return planner.stopped_occurrences.marked(stored, self.runtime.now(), planner.known_calendars_of(stored))

    def with_stopped_since(self, before: StoredSchedule, after: StoredSchedule) -> StoredSchedule:
        """The changed schedule, also marked with occurrences that were stopped or began during the write.

        Args:
            before: schedule marked for the change.
            after: schedule as written.
        """
        if after.revision == before.revision:
            return after
        planner = self.expander.planner
        with suppress(Unavailable, ScheduleNotFound):
            # If this write fails, an occurrence that was stopped during the change still runs.
            calendars = planner.known_calendars_of(before)
            found = planner.stopped_occurrences.stopped_meanwhile(before, after, calendars)
            return self.write(after, None, partial(stopped_since, found=found)) if found else after
        return after

    def write_timer(self, stored: StoredSchedule) -> None:
        """Set the timer at which the trigger expands the schedule, in a minute that has not been read yet."""
        at = first_unread(self.runtime.now(), self.look_ahead)
        self.stores.tasks.add_schedule_timer(
            ScheduleTimer(stored.uid, stored.owner, stored.name, stored.generation, at)
        )

    def expand(self, stored: StoredSchedule) -> StoredSchedule:
        """Place occurrences that are due soon.

        If this fails, the trigger places them when the schedule's timer fires.
        """
        now = self.runtime.now()
        with suppress(Unavailable, ScheduleNotFound):
            timer = ScheduleTimer(stored.uid, stored.owner, stored.name, stored.generation, now)
            self.enqueuer.send_due(self.expander.expand([timer], now + _PATIENCE).tasks)
            found = self.read_with_payload(stored.owner, stored.name)
            if found.uid == stored.uid:
                return found
        # The request was carried out, even if the schedule has been deleted since and its name is used again.
        return stored

    def store_payload(self, uid: TaskId, data: bytes) -> Content:
        """Store the payload of a schedule's tasks, before the schedule refers to it."""
        # The name is unique, because two concurrent changes must not overwrite each other's payload.
        expiry = unless_referenced(self.runtime.now())
        return self.stores.contents.keep(uid, f"{PAYLOAD}.{self.runtime.nonce()}", data, expiry)

    def retain_payload(self, stored: StoredSchedule) -> None:
        """Retain the payload of a schedule that is never expanded; a first expansion retains all other payloads."""
        if stored.payload.is_outside and not stored.is_expandable:
            self.stores.contents.retain(stored.uid, stored.payload)

    def expire_payloads(self, removed: StoredSchedule | RemovedSchedule) -> None:
        """Set an expiry for the contents of a deleted schedule."""
        for payload in removed.outside_payloads:
            self.expire_payload(removed.uid, payload)

    def expire_payload(self, uid: TaskId, payload: Content) -> None:
        """Set an expiry for a payload that no schedule refers to; tasks may still refer to it for some time."""
        if payload.is_outside:
            self.stores.contents.expire(uid, payload, after_record(self.runtime.now() + self.retention.longest))


def _check_version(stored: StoredSchedule, version: int | None) -> None:
    if version not in (None, stored.version):
        raise ScheduleVersionMismatch(stored.name, stored.version)


def _field(written: Written) -> str:
    """The name of the timing field that the request contains."""
    names = ("cron", "rate", "interval", "dates", "permanent", "timings")
    return next((name for name in names if getattr(written, name) is not None), names[0])


def busy(name: str) -> Unavailable:
    """The error for a schedule with too many concurrent writes."""
    return Unavailable(f"the schedule {name!r} has too many concurrent writes")


_NOTHING = Content(ContentPlace.RECORD, PAYLOAD, b"")
_TAIL_BITS, _NAME_LENGTH = 64, 10


@frozen
class ScheduleCreator:
    """Creates schedules.

    Attributes:
        shards: how many shards ids are spread over.
        repeats: recognizes repeated requests by their idempotency keys.
    """

    writer: ScheduleWriter
    stores: Stores
    runtime: Runtime
    shards: Shards
    repeats: RepeatedRequests

    def create(
        self, owner: str, spec: ScheduleSpec, key: IdempotencyKey | None = None, traceparent: str | None = None
    ) -> Accepted[StoredSchedule]:
        """Create a schedule, and place the tasks due soon; a repeat with the same key creates no second schedule.

        Args:
            owner: owner of the schedule.
            spec: specification of the schedule.
            key: idempotency key of the request.
            traceparent: trace context of the request.

        Raises:
            FieldInvalid: a field is invalid, or the schedule would never run.
            KeyReused: the request's idempotency key was used with a different body.
            ScheduleExists: the name is taken.
            ScheduleNotFound: the key's schedule has been deleted.
        """
        now = self.runtime.now()
        known = self.repeats.known(owner, key, now)
        if known is not None:
            return self._made_before(owner, spec, known, traceparent)
        self.writer.expander.planner.occurrence_tasks.accept(owner, spec.task)
        uid = TaskId.of(
            now, self.runtime.random_source.below(self.shards.count()), self.runtime.random_source.bits(_TAIL_BITS)
        )
        name = spec.name or _generated_name(uid)
        # The first occurrence may be at exactly this instant, as for a rate. The vacancy is read first, and the write
        # succeeds only if it is unchanged, because a late write must not undo a newer write.
        vacancy = self.stores.schedules.vacancy(owner, name)
        if vacancy is None:
            # A concurrent repeat of the request may have created the schedule since the key was read.
            if (known := self.repeats.known(owner, key, now)) is not None:
                return self._made_before(owner, spec, known, traceparent)
            raise ScheduleExists(name)
        made = self._made(owner, uid, replace(spec, name=name), vacancy)
        if key is not None and (other := self.repeats.remember(owner, key, uid, now, vacancy)):
            return self._made_before(owner, spec, other, traceparent)
        return Accepted(self._save(replace(made, traceparent=traceparent), spec))

    def _made_before(
        self, owner: str, spec: ScheduleSpec, known: RememberedKey, traceparent: str | None
    ) -> Accepted[StoredSchedule]:
        """The result of an earlier request with the same key; if that request never wrote the schedule, write it now.

        Raises:
            ScheduleExists: another schedule has the name.
            ScheduleNotFound: the schedule was created and has been deleted.
        """
        name = spec.name or _generated_name(known.task_id)
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is not None and stored.uid == known.task_id:
            return Accepted(self.writer.with_payload(stored), is_replay=True)
        if stored is not None:
            raise ScheduleExists(name)
        if self.stores.schedules.vacancy(owner, name) != known.edition:
            raise ScheduleNotFound(name)
        made = self._made(owner, known.task_id, replace(spec, name=name), known.edition)
        return Accepted(self._save(replace(made, traceparent=traceparent), spec))

    def _save(self, made: StoredSchedule, spec: ScheduleSpec) -> StoredSchedule:
        """Store a new schedule with the payload of its tasks, and place the tasks due soon."""
        made = replace(made, payload=self.writer.store_payload(made.uid, spec.task.payload))
        self.writer.write_timer(made)
        if made.incarnation and (removed := self.stores.schedules.read_removed(made.owner, made.name)) is not None:
            # The process that deleted the earlier schedule with this name may have crashed before it removed the
            # payloads, which nothing would find afterwards.
            self.writer.expire_payloads(removed)
        if not self.stores.schedules.save(made, self.runtime.nonce()):
            self.writer.expire_payload(made.uid, made.payload)
            found, _ = self.stores.schedules.read(made.owner, made.name)
            if found is None:
                raise busy(made.name)
            if found.uid != made.uid:
                raise ScheduleExists(made.name)
            # A concurrent repeat of the same request came first.
            return self.writer.with_payload(found)
        self.writer.retain_payload(made)
        return self.writer.expand(replace(made, incarnation=made.incarnation + 1))

    def _made(self, owner: str, uid: TaskId, spec: ScheduleSpec, vacancy: int) -> StoredSchedule:
        """A new, valid schedule whose payload is not stored yet."""
        now = self.runtime.now()
        made = StoredSchedule(
            owner=owner,
            uid=uid,
            shards=self.shards.count(),
            spec=replace(spec, task=replace(spec.task, payload=b"")),
            payload=_NOTHING,
            created_at=now,
            updated_at=now,
            done=now - 1,
            tzdata=tzdata_version(),
            incarnation=vacancy,
            # Versions continue after the versions of an earlier schedule with the same name, so that none of its entity
            # tags matches.
            version=vacancy + 1,
        )
        made = made.limited_to(spec.remaining_runs)
        self.writer.check(made)
        return made


def _generated_name(uid: TaskId) -> str:
    """The name of a schedule created without a name; every repeat of its request gets the same name."""
    return f"schedule-{sha256(uid.text.encode()).hexdigest()[:_NAME_LENGTH]}"
