"""Making and steering schedules.

A change places the schedule's next timer first, then writes the schedule, then expands it at once: what a caller that
dies leaves undone is found by the trigger at that timer.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.timers import ScheduleTimer, first_unread
from duetime.domain.errors import (
    BackfillNotFound,
    ContentExpired,
    FieldInvalid,
    ScheduleExists,
    ScheduleNotFound,
    ScheduleStateConflict,
    ScheduleVersionMismatch,
    Unavailable,
)
from duetime.domain.ids import TaskId
from duetime.domain.limits import DELETION_MARKER_LIFE, MAX_BACKFILLS
from duetime.domain.schedules.backfill import requested
from duetime.domain.schedules.occurrences import Occurrence, next_nominal
from duetime.domain.schedules.run_history import BackfillRun
from duetime.domain.schedules.schedule import ScheduleState, check
from duetime.domain.schedules.stored_schedule import StoredSchedule
from duetime.domain.schedules.time_zones import tzdata_version
from duetime.domain.tasks.content import Content, ContentPlace
from duetime.domain.tasks.payload_expiry import after_record, unless_referenced
from duetime.domain.tasks.references import Cause
from duetime.domain.times import SECOND
from duetime.services.schedules.occurrence_tasks import Due
from duetime.services.tasks.create import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.schedules.definition import ScheduleChange, ScheduleSpec, Written
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.schedules.expander import ScheduleExpander
    from duetime.services.shards import Shards

_TRIES = 10
_PATIENCE = 3 * SECOND
"""How long a caller waits for a long expansion, such as a backfill at full pace; the trigger does the rest."""
_NOTHING = Content(ContentPlace.RECORD, PAYLOAD, b"")
_TAIL_BITS, _NAME_BITS, _BACKFILL_BITS = 64, 40, 32


@dataclass(frozen=True, slots=True)
class ScheduleManager:
    """Makes, changes, holds and removes schedules, each for its owner.

    Every method that names a schedule raises `ScheduleNotFound` if there is none of that name, and those that take a
    version `ScheduleVersionMismatch` if it is at another one. All may raise `Unavailable`.

    Attributes:
        shards: how many shards ids are spread over.
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
        retention: how long the payload of a schedule that is gone is kept, in milliseconds.
    """

    stores: Stores
    enqueuer: Enqueuer
    expander: ScheduleExpander
    runtime: Runtime
    shards: Shards
    look_ahead: Millis
    retention: Millis

    def create(self, owner: str, spec: ScheduleSpec) -> StoredSchedule:
        """Make a schedule, and place what is due soon.

        Raises:
            FieldInvalid: a field cannot be accepted, or its time never comes.
            ScheduleExists: there is one of its name.
        """
        self.expander.occurrence_tasks.accept(spec.task)
        now = self.runtime.now()
        uid = TaskId.of(
            now, self.runtime.random_source.below(self.shards.count()), self.runtime.random_source.bits(_TAIL_BITS)
        )
        name = spec.name or f"schedule-{self.runtime.random_source.bits(_NAME_BITS):010x}"
        # Its first instant may be this very one: that of a rate is.
        # Read first and named by the write: should that arrive late, it must not undo what has come since.
        vacancy = self.stores.schedules.vacancy(owner, name)
        if vacancy is None:
            raise ScheduleExists(name)
        made = self._made(owner, uid, replace(spec, name=name), now)
        # Versions go on where those of an earlier schedule of the name ended, so that no tag of its matches.
        made = replace(made, incarnation=vacancy, version=vacancy + 1)
        self._check(made)
        made = replace(made, payload=self._keep(uid, spec.task.payload))
        self._write_timer(made)
        if not self.stores.schedules.save(made, self.runtime.nonce()):
            self._expire(uid, made.payload)
            if self.stores.schedules.vacancy(owner, name) is None:
                raise ScheduleExists(name)
            raise _busy(name)
        self._retain(made)
        return self._expanded(replace(made, incarnation=vacancy + 1))

    def get(self, owner: str, name: str) -> StoredSchedule:
        """Read a schedule, its payload too."""
        stored = self._read(owner, name)
        payload = stored.payload
        if payload.data is None:
            with suppress(ContentExpired):
                payload = replace(payload, data=self.stores.contents.fetch(stored.uid, payload))
        return replace(stored, payload=payload)

    def list(self, owner: str, after: str, limit: int) -> Sequence[StoredSchedule]:
        """An owner's schedules by their names, eventually consistently; the list goes on behind `after`."""
        return self.stores.schedules.list_after(owner, after, limit)

    def change(self, owner: str, name: str, change: ScheduleChange, version: int | None = None) -> StoredSchedule:
        """Change a schedule; what was placed and is to come is placed anew.

        What was due by now and has not begun is dropped by a change of the timing, and by no other.

        Raises:
            FieldInvalid: a field cannot be accepted, or its time never comes.
        """
        task = change.fields.get("task")
        if task is not None:
            self.expander.occurrence_tasks.accept(task)
        payload: Content | None = None

        def changed(stored: StoredSchedule) -> StoredSchedule:
            nonlocal payload
            spec = change.of(stored.spec)
            keeps_due = stored.state is ScheduleState.ACTIVE and spec.has_timing_of(stored.spec)
            moved = stored.edited if keeps_due else stored.steered
            after = moved(self.runtime.now(), self.expander.known_calendars_of(stored))
            after = replace(after, spec=replace(spec, task=replace(spec.task, payload=b"")))
            if "remaining_runs" in change.fields:
                after = replace(after, remaining_runs=spec.remaining_runs)
            if after.state is ScheduleState.ENDED:
                after = replace(after, state=ScheduleState.ACTIVE)
            self._check(after)
            if task is None:
                return after
            payload = payload or self._keep(stored.uid, task.payload)
            return replace(after, payload=payload)

        before = self._read(owner, name)
        after = self._written(before, version, changed, looks=True)
        if task is not None:
            self._retain(after)
            self._expire(after.uid, before.payload)
        return self._expanded(after)

    def delete(self, owner: str, name: str, version: int | None = None) -> None:
        """Remove a schedule; what was placed and has not begun is dropped when its time comes."""
        stored = self._read(owner, name, version)
        for _ in range(_TRIES):
            expires_at = self.runtime.now() + DELETION_MARKER_LIFE
            if self.stores.schedules.remove(stored, self.runtime.nonce(), expires_at):
                self._expire(stored.uid, stored.payload)
                return
            try:
                stored = self._read_again(stored, version)
            except ScheduleNotFound:
                # Somebody else has removed it; what has its name now is another one.
                return
        raise _busy(name)

    def pause(self, owner: str, name: str, note: str = "", version: int | None = None) -> StoredSchedule:
        """Hold a schedule; what was placed and has not begun does not run. One that is held gets the note.

        Raises:
            ScheduleStateConflict: it has ended.
        """

        def paused(stored: StoredSchedule) -> StoredSchedule:
            if stored.state is ScheduleState.ENDED:
                raise ScheduleStateConflict(name, stored.state, "paused")
            if stored.state is ScheduleState.PAUSED:
                return replace(stored, note=note, version=stored.version + 1)
            return stored.paused(self.runtime.now(), note, self.expander.known_calendars_of(stored))

        return self._written(self._read(owner, name), version, paused)

    def resume(self, owner: str, name: str, version: int | None = None) -> StoredSchedule:
        """Let a schedule go on from now: what came while it was held is not caught up.

        Raises:
            ScheduleStateConflict: it has ended.
            FieldInvalid: a calendar that it names is gone, or its task's target may not be called any more.
        """

        def resumed(stored: StoredSchedule) -> StoredSchedule:
            if stored.state is not ScheduleState.PAUSED:
                return stored
            now = self.runtime.now()
            after = replace(stored, state=ScheduleState.ACTIVE, note="", done=now, changed_at=now)
            after = replace(after, version=stored.version + 1)
            self.expander.occurrence_tasks.check(after)
            self.expander.calendars_of(after)
            return after

        stored = self._read(owner, name, version)
        if stored.state is ScheduleState.ENDED:
            raise ScheduleStateConflict(name, stored.state, "resumed")
        if stored.state is ScheduleState.ACTIVE:
            return stored
        return self._expanded(self._written(stored, version, resumed, looks=True))

    def trigger(self, owner: str, name: str) -> Task:
        """Have a schedule's task run once, now, whatever its rhythm and even if it is held.

        Returns:
            The task; it may yet be skipped because of the run before, as any occurrence.
        """
        stored, now = self._read(owner, name), self.runtime.now()
        occurrence = Occurrence(now, now, now, f"now {self.runtime.nonce()}")
        occurrence_tasks = self.expander.occurrence_tasks
        due = Due(occurrence, Cause.TRIGGER)
        task = occurrence_tasks.produce(stored, due, occurrence_tasks.payload_of(stored))
        self.enqueuer.send_due([task])
        told = replace(stored, placed=stored.placed + 1)
        key = stored.spec.clock.zone.text_at(now)
        with suppress(Unavailable):
            # A remark that is lost does no harm.
            self.stores.schedules.save(
                told.remarked(now, key, f"triggered by hand: task {task.id}"), self.runtime.nonce()
            )
        return task

    def backfill(self, owner: str, name: str, start: Millis, end: Millis, per_minute: int) -> StoredSchedule:
        """Have the occurrences of a stretch of the past run, at a pace; the backfill is the last of `backfills`.

        Raises:
            FieldInvalid: the stretch is empty, not past, or nothing comes in it, or the pace is out of bounds.
            ScheduleStateConflict: too many backfills are on their way.
        """
        wanted = requested(start, end, per_minute, self.runtime.now())
        run_id = f"{self.runtime.random_source.bits(_BACKFILL_BITS):08x}"

        def backfilled(stored: StoredSchedule) -> StoredSchedule:
            if len(stored.open_backfills) >= MAX_BACKFILLS:
                raise ScheduleStateConflict(name, f"busy with {MAX_BACKFILLS} backfills", "given another")
            size = wanted.size(stored.schedule(self.expander.calendars_of(stored)))
            if not size:
                raise FieldInvalid("from", "begins a stretch of time in which the schedule has no occurrence")
            return replace(stored.with_backfill(BackfillRun(run_id, wanted, size)), version=stored.version + 1)

        return self._expanded(self._written(self._read(owner, name), None, backfilled, looks=True))

    def cancel_backfill(self, owner: str, name: str, backfill_id: str) -> StoredSchedule:
        """End a backfill; what it has placed, a few minutes' worth, still runs. One that has ended stays as it is.

        Raises:
            BackfillNotFound: the schedule has none of this id.
        """

        def cancelled(stored: StoredSchedule) -> StoredSchedule:
            run = next((each for each in stored.backfills if each.id == backfill_id), None)
            if run is None:
                raise BackfillNotFound(name, backfill_id)
            if run.ended_at is not None:
                return stored
            ended = stored.with_backfill(replace(run, ended_at=self.runtime.now()))
            return replace(ended, version=stored.version + 1)

        return self._written(self._read(owner, name), None, cancelled)

    def _made(self, owner: str, uid: TaskId, spec: ScheduleSpec, now: Millis) -> StoredSchedule:
        return StoredSchedule(
            owner=owner,
            uid=uid,
            shards=self.shards.count(),
            spec=replace(spec, task=replace(spec.task, payload=b"")),
            payload=_NOTHING,
            created_at=now,
            changed_at=now,
            done=now - 1,
            tzdata=tzdata_version(),
            remaining_runs=spec.remaining_runs,
        )

    def _check(self, stored: StoredSchedule) -> None:
        """Refuse a schedule that cannot be, or whose time never comes."""
        self.expander.occurrence_tasks.check(stored)
        schedule = check(stored.schedule(self.expander.calendars_of(stored)))
        if not stored.is_permanent and next_nominal(schedule, stored.done) is None:
            endless = replace(schedule, spec=replace(schedule.spec, end_at=None))
            if schedule.spec.end_at is not None and next_nominal(endless, stored.done) is not None:
                raise FieldInvalid("end_at", "leaves no time that is still to come")
            raise FieldInvalid(_field(stored.spec.written), "names no time that is still to come")

    def _written(
        self,
        before: StoredSchedule,
        version: int | None,
        changed: Callable[[StoredSchedule], StoredSchedule],
        *,
        looks: bool = False,
    ) -> StoredSchedule:
        """Write a change, made anew if somebody else's write comes between.

        Args:
            before: the schedule as it was read; another one that gets its name meanwhile is left alone.
            version: at which it must be; `None` for any.
            changed: makes the change.
            looks: whether it must be looked at: then its timer comes first.
        """
        _check_version(before, version)
        for _ in range(_TRIES):
            after = changed(before)
            if after == before:
                return before
            if looks:
                after = replace(after, generation=before.generation + 1, tzdata=tzdata_version())
                self._write_timer(after)
            if self.stores.schedules.save(after, self.runtime.nonce()):
                return replace(after, incarnation=before.incarnation + 1)
            before = self._read_again(before, version)
        raise _busy(before.name)

    def _expanded(self, stored: StoredSchedule) -> StoredSchedule:
        """Place what is due soon, here and now; what goes wrong is mended by the trigger at the schedule's timer."""
        now = self.runtime.now()
        with suppress(Unavailable, ScheduleNotFound):
            timer = ScheduleTimer(stored.uid, stored.owner, stored.name, stored.generation, now)
            self.enqueuer.send_due(self.expander.expand([timer], now + _PATIENCE).tasks)
            found = self.get(stored.owner, stored.name)
            if found.uid == stored.uid:
                return found
        # It may have been deleted since, and another one made of its name: what was asked for was done all the same.
        return stored

    def _write_timer(self, stored: StoredSchedule) -> None:
        at = first_unread(self.runtime.now(), self.look_ahead)
        self.stores.tasks.add_schedule_timer(
            ScheduleTimer(stored.uid, stored.owner, stored.name, stored.generation, at)
        )

    def _read(self, owner: str, name: str, version: int | None = None) -> StoredSchedule:
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is None:
            raise ScheduleNotFound(name)
        _check_version(stored, version)
        return stored

    def _read_again(self, stored: StoredSchedule, version: int | None) -> StoredSchedule:
        """The very schedule that was read before, as it is now.

        Raises:
            ScheduleNotFound: it is gone, even if there is another one of its name.
        """
        found = self._read(stored.owner, stored.name)
        if found.uid != stored.uid:
            raise ScheduleNotFound(stored.name)
        _check_version(found, version)
        return found

    def _keep(self, uid: TaskId, data: bytes) -> Content:
        # A name of its own: of two changes at once, neither may overwrite the bytes of the one that is taken.
        expiry = unless_referenced(self.runtime.now())
        return self.stores.contents.keep(uid, f"{PAYLOAD}.{self.runtime.nonce()}", data, expiry)

    def _retain(self, stored: StoredSchedule) -> None:
        """Let the payload last as long as a schedule that nobody looks at; of any other the first look does."""
        if stored.payload.is_outside and not stored.is_expandable:
            self.stores.contents.retain(stored.uid, stored.payload)

    def _expire(self, uid: TaskId, payload: Content) -> None:
        if payload.is_outside:
            self.stores.contents.expire(uid, payload, after_record(self.runtime.now() + self.retention))


def _check_version(stored: StoredSchedule, version: int | None) -> None:
    if version not in (None, stored.version):
        raise ScheduleVersionMismatch(stored.name, stored.version)


def _field(written: Written) -> str:
    """The timing field that was given."""
    names = ("cron", "rate", "interval", "dates", "permanent")
    return next((name for name in names if getattr(written, name) is not None), names[0])


def _busy(name: str) -> Unavailable:
    return Unavailable(f"the schedule {name!r} was written by others again and again")
