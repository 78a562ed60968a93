"""Creates schedules, once for each request, even if the request is repeated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.schedules.errors import ScheduleExists, ScheduleNotFound
from duetime.domain.schedules.schedule_record import StoredSchedule
from duetime.domain.schedules.time_zones import tzdata_version
from duetime.domain.tasks.content import Content, ContentPlace
from duetime.domain.tasks.idempotency_keys import Accepted
from duetime.services.schedules.schedule_writer import busy
from duetime.services.tasks.creation_rules import PAYLOAD

if TYPE_CHECKING:
    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.tasks.idempotency_keys import IdempotencyKey, RememberedKey
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.repeated_requests import RepeatedRequests
    from duetime.services.schedules.schedule_writer import ScheduleWriter
    from duetime.services.shards import Shards

_NOTHING = Content(ContentPlace.RECORD, PAYLOAD, b"")
_TAIL_BITS, _NAME_LENGTH = 64, 10


@dataclass(frozen=True, slots=True)
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
        """Create a schedule, and place the tasks due soon; a request repeated with its key creates no other.

        Args:
            owner: owner of the schedule.
            spec: specification of the schedule.
            key: idempotency key of the request.
            traceparent: trace of the request.

        Raises:
            FieldInvalid: a field is invalid, or the schedule never has a run.
            KeyReused: its idempotency key was used with a different body.
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
        # The first occurrence may be at this very instant, as for a rate. Read first and named by the write: a late
        # write must not undo a newer one.
        vacancy = self.stores.schedules.vacancy(owner, name)
        if vacancy is None:
            # A concurrent repeat of the request may have created it since the key was read.
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
        """The result of an earlier request with the same key; if that request crashed before its write, write it now.

        Raises:
            ScheduleExists: another schedule has its name.
            ScheduleNotFound: it was created and has been deleted.
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
            # The name is reused: the process that deleted the earlier schedule may have crashed before it removed the
            # payloads, and nothing finds them afterwards.
            self.writer.expire_payloads(removed)
        if not self.stores.schedules.save(made, self.runtime.nonce()):
            self.writer.expire_payload(made.uid, made.payload)
            found, _ = self.stores.schedules.read(made.owner, made.name)
            if found is None:
                raise busy(made.name)
            if found.uid != made.uid:
                raise ScheduleExists(made.name)
            # A concurrent repeat of the same request was first.
            return self.writer.with_payload(found)
        self.writer.retain_payload(made)
        return self.writer.expand(replace(made, incarnation=made.incarnation + 1))

    def _made(self, owner: str, uid: TaskId, spec: ScheduleSpec, vacancy: int) -> StoredSchedule:
        """A valid new schedule; its payload is not stored yet."""
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
            # Versions continue after those of an earlier schedule of the same name, so that none of its entity tags
            # matches.
            version=vacancy + 1,
        )
        made = made.limited_to(spec.remaining_runs)
        self.writer.check(made)
        return made


def _generated_name(uid: TaskId) -> str:
    """The name of a schedule created without one: the same for each repeat of its request."""
    return f"schedule-{sha256(uid.text.encode()).hexdigest()[:_NAME_LENGTH]}"
