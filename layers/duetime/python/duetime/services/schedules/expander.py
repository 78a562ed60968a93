"""Expanding schedules: what the trigger does when it meets a schedule's timer.

The order of the writes is what makes it safe. The next timer comes first, in a minute that nobody has read; then the
occurrences, whose ids follow from the schedule; then the schedule, conditionally, which makes this timer a stale one. A
crash anywhere leaves this timer in a minute that is read again: the same occurrences are put again, and refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from duetime.domain.dispatch.timers import ScheduleTimer, first_unread
from duetime.domain.errors import ContentExpired, FieldInvalid, Unavailable
from duetime.domain.limits import LONGEST_SLEEP, MISSED_AFTER, PERMANENT_CHECK_INTERVAL
from duetime.domain.schedules.expansion import MAX_EXPANSION, count_missed, expand
from duetime.domain.schedules.permanent import continued, ended_at, first_run, run_after, run_of
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.stored_expansion import decide_missed, expand_backfill, expand_timing
from duetime.domain.schedules.time_zones import tzdata_version
from duetime.domain.tasks.references import Cause
from duetime.services.schedules.occurrence_tasks import Due

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.stored_schedule import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.schedules.occurrence_tasks import OccurrenceTasks

T = TypeVar("T")
_PASSES = 40
"""Passes over one schedule in one expansion: for what is too much for one, and for others' writes in between."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """What an expansion came to.

    Attributes:
        tasks: the occurrences that now exist; messages must be sent for those that are due.
        done: whether every schedule was dealt with; if not, the timers must be met again.
    """

    tasks: list[Task]
    done: bool


@dataclass(slots=True)
class _Pass:
    """One schedule on its way through one pass.

    Attributes:
        before: as it was read.
        after: as it is to be saved.
        due: the occurrences to place, in order.
        next_at: when its timing wants it looked at next.
        more: whether another pass must follow at once.
        tasks: those that now exist.
        failed: whether it must not be saved, for the store did not answer.
        broken: whether it failed by a defect, which another try would only repeat.
    """

    timer: ScheduleTimer
    before: StoredSchedule
    after: StoredSchedule
    due: list[Due] = field(default_factory=list)
    next_at: Millis | None = None
    more: bool = False
    payload: bytes = b""
    tasks: list[Task] = field(default_factory=list)
    failed: bool = False
    broken: bool = False

    @property
    def alone(self) -> int:
        """How many of the due are placed one by one, before the others: the first, and a missed one in front of it."""
        return 1 + (self.before.owed is not None)


class _Retry(Exception):
    """Somebody else's write came between: look at the schedule anew."""


@dataclass(frozen=True, slots=True)
class ScheduleExpander:
    """Expands schedules up to the horizon, many at once.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
    """

    stores: Stores
    occurrence_tasks: OccurrenceTasks
    runtime: Runtime
    look_ahead: Millis

    def expand(self, timers: Sequence[ScheduleTimer], until: Millis | None = None) -> Expanded:
        """Expand the schedules of these timers; a timer that is stale is dropped. Never raises `Unavailable`.

        Args:
            timers: of the schedules.
            until: when to leave the rest to the trigger, which meets the next timers; `None` to do all of it.
        """
        tasks: list[Task] = []
        todo, done = list(timers), True
        for number_of_pass in range(_PASSES):
            if not todo:
                return Expanded(tasks, done)
            if number_of_pass and until is not None and self.runtime.now() >= until:
                break
            ends = self.runtime.executor.map(self._begun, todo)
            passes = [end for end in ends if isinstance(end, _Pass)]
            again = [end for end in ends if isinstance(end, ScheduleTimer)]
            # The first alone: if it does not exist, no expansion has ever come so far.
            for number in range(2):
                self._produce([(each, due) for each in passes for due in each.due[: each.alone][number : number + 1]])
            self._produce([(each, due) for each in passes for due in each.due[each.alone :]])
            more = self.runtime.executor.map(self._ended, passes)
            tasks += [task for each in passes for task in each.tasks]
            done = done and not any(each.failed and not each.broken for each in passes) and None not in ends
            todo = again + [timer for timer in more if timer is not None]
        return Expanded(tasks, done=False)

    def calendars_of(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        """The calendars that a schedule names.

        Raises:
            FieldInvalid: there is none of a name.
        """
        found = []
        for index, name in enumerate(stored.spec.calendars):
            calendar = self.stores.calendars.read(stored.owner, name)
            if calendar is None:
                raise FieldInvalid(f"calendars[{index}]", f"there is no calendar {name!r}")
            found.append(calendar)
        return tuple(found)

    def known_calendars_of(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        """The calendars that a schedule names; none if one of them is missing."""
        try:
            return self.calendars_of(stored)
        except FieldInvalid:
            return ()

    def _begun(self, timer: ScheduleTimer) -> _Pass | ScheduleTimer | bool | None:
        """Look at one schedule, and place its next timer.

        Returns:
            The pass to go on with; the timer itself if somebody's write came between; `True` if there is nothing to
            do, `None` if the store did not answer.
        """
        try:
            stored, _ = self.stores.schedules.read(timer.owner, timer.name)
            if stored is None or stored.uid != timer.uid or stored.generation != timer.generation:
                return True
            return self._looked_at(timer, stored) if stored.is_expandable else True
        except _Retry:
            return timer
        except Unavailable as error:
            self.runtime.telemetry.note("a schedule could not be expanded", schedule=timer.name, error=str(error))
            return None
        except Exception as error:  # noqa: BLE001 - one schedule's defect must not stop the trigger
            self._defect(timer, error)
            return True

    def _looked_at(self, timer: ScheduleTimer, stored: StoredSchedule) -> _Pass | bool:
        now = self.runtime.now()
        calendars: tuple[Calendar, ...] = ()
        try:
            calendars = self.calendars_of(stored)
            self.occurrence_tasks.check(stored)
            stored.schedule(calendars)
        except FieldInvalid as refusal:
            return self._paused(stored, refusal, calendars)
        after = replace(stored, generation=timer.generation + 1, tzdata=tzdata_version())
        at_work = _Pass(timer, stored, after)
        horizon = first_unread(now, self.look_ahead) - 1
        if stored.state is ScheduleState.ACTIVE:
            if stored.is_permanent:
                self._go_on(at_work, calendars, now)
            else:
                self._by_timing(at_work, calendars, now, horizon)
        self._fill_back(at_work, calendars, now, horizon)
        try:
            at_work.payload = self.occurrence_tasks.payload_for(stored, at_work.due)
        except ContentExpired as refusal:
            return self._paused(at_work.before, refusal, calendars)
        self._write_timer(at_work, now)
        return at_work

    def _paused(self, stored: StoredSchedule, refusal: Exception, calendars: Sequence[Calendar]) -> bool:
        """Pause a schedule whose tasks cannot be made; there is nothing more to do."""
        if stored.state is ScheduleState.ACTIVE:
            self._save(stored.paused(self.runtime.now(), str(refusal), calendars))
        return True

    def _by_timing(self, at_work: _Pass, calendars: Sequence[Calendar], now: Millis, horizon: Millis) -> None:
        """What the timing wants up to the horizon; what was missed is decided upon first, and that is written down."""
        stored, until = at_work.before, horizon
        schedule = stored.schedule(calendars)
        if count_missed(schedule, stored.done, now - MISSED_AFTER):
            if stored.owed is not None:
                # Decided before, and perhaps never placed: that alone, then what was missed since.
                until = stored.done
            elif (placed := self._placed_before(stored, schedule, horizon)) is not None:
                until = placed
            else:
                stored = at_work.before = self._decided(stored, schedule, now)
                schedule = stored.schedule(calendars)
        expansion = expand_timing(stored, schedule, until, horizon, now, self.look_ahead)
        at_work.due = [Due(each) for each in expansion.runs]
        at_work.next_at, at_work.more = expansion.next_at, expansion.more
        at_work.after = replace(expansion.after, generation=at_work.after.generation, tzdata=at_work.after.tzdata)

    def _placed_before(self, stored: StoredSchedule, schedule: Schedule, horizon: Millis) -> Millis | None:
        """Up to where an expansion placed occurrences that never came to save the schedule; they were not missed.

        Any but the first may be absent: they are placed at once. So the last that is there counts, up to the horizon;
        one that was not looked at would be met as a missed one later.
        """
        intended = [each for each in expand(schedule, stored.done, horizon).occurrences if each.runs]
        if not intended or self.stores.tasks.read(stored.id_of(intended[0])) is None:
            return None
        ids = {stored.id_of(each): each.nominal for each in intended}
        return max(
            [intended[0].nominal, *map(ids.__getitem__, self.stores.tasks.read_many(list(ids), consistent=True))]
        )

    def _decided(self, stored: StoredSchedule, schedule: Schedule, now: Millis) -> StoredSchedule:
        """With the decision about what was missed written down, so that nobody decides otherwise at another time."""
        decided, found = decide_missed(stored, schedule, now - MISSED_AFTER, now)
        self.runtime.telemetry.count("occurrences_missed", found.missed)
        return self._save(decided)

    def _go_on(self, at_work: _Pass, calendars: Sequence[Calendar], now: Millis) -> None:
        """The chain of a permanent schedule: mended if it has broken."""
        stored = at_work.before
        schedule, last = stored.schedule(calendars), stored.last
        if last is None or not stored.is_current(last):
            stored = self._save(continued(stored, first_run(schedule, stored.changed_at)))
            last = None if stored.state is ScheduleState.ENDED else stored.last
        elif (task := self.stores.tasks.read(last.task_id)) is not None:
            if task.finished_at is not None:
                stored = self._save(continued(stored, run_after(schedule, last, ended_at(task, now))))
            last = stored.last if stored.last != last else None
        at_work.before = stored
        at_work.after = replace(stored, generation=at_work.after.generation, tzdata=at_work.after.tzdata)
        if last is not None and stored.state is ScheduleState.ACTIVE:
            at_work.due = [Due(run_of(stored, last.nominal))]
        if stored.state is ScheduleState.ACTIVE:
            at_work.next_at = now + PERMANENT_CHECK_INTERVAL

    def _fill_back(self, at_work: _Pass, calendars: Sequence[Calendar], now: Millis, horizon: Millis) -> None:
        """The next part of each backfill."""
        schedule = at_work.before.schedule(calendars)
        for run in at_work.before.open_backfills:
            expansion = expand_backfill(schedule, run, horizon, now, MAX_EXPANSION - len(at_work.due))
            at_work.due += [Due(each, Cause.BACKFILL, run.id) for each in expansion.occurrences]
            at_work.more = at_work.more or expansion.more
            placed = at_work.after.placed + len(expansion.occurrences)
            at_work.after = replace(at_work.after.with_backfill(expansion.after), placed=placed)

    def _write_timer(self, at_work: _Pass, now: Millis) -> None:
        """Have the schedule met again, in a minute that nobody has read yet."""
        unread = first_unread(now, self.look_ahead)
        at = at_work.next_at
        if at_work.after.open_backfills or at_work.more:
            at = unread
        if at is not None:
            at = max(unread, min(at, now + LONGEST_SLEEP))
            before = at_work.before
            self.stores.tasks.add_schedule_timer(
                ScheduleTimer(before.uid, before.owner, before.name, at_work.after.generation, at)
            )

    def _produce(self, dues: Sequence[tuple[_Pass, Due]]) -> None:
        self.runtime.executor.map(self._produced, [(at_work, due) for at_work, due in dues if not at_work.failed])

    def _produced(self, pair: tuple[_Pass, Due]) -> None:
        at_work, due = pair
        work = partial(self.occurrence_tasks.produce, at_work.after, due, at_work.payload)
        task = self._guarded(at_work, work)
        if task is not None:
            at_work.tasks.append(task)

    def _ended(self, at_work: _Pass) -> ScheduleTimer | None:
        """Save the schedule; the timer to go on with, if there is more to do or somebody's write came between."""
        if at_work.failed:
            return None
        timer = at_work.timer
        try:
            self._guarded(at_work, partial(self._save, at_work.after))
        except _Retry:
            # Whoever wrote has not moved its turn on, or the next look finds this timer stale.
            return timer
        return replace(timer, generation=at_work.after.generation) if at_work.more and not at_work.failed else None

    def _save(self, stored: StoredSchedule) -> StoredSchedule:
        if not self.stores.schedules.save(stored, self.runtime.nonce()):
            raise _Retry
        return replace(stored, incarnation=stored.incarnation + 1)

    def _guarded(self, at_work: _Pass, work: Callable[[], T]) -> T | None:
        """Do something for a schedule; if that fails, its timer must be met again."""
        try:
            return work()
        except (Unavailable, FieldInvalid) as error:
            # A target that was just taken from the settings: the next look pauses the schedule.
            self.runtime.telemetry.note(
                "a schedule could not be expanded", schedule=at_work.timer.name, error=str(error)
            )
        except _Retry:
            raise
        except Exception as error:  # noqa: BLE001 - one schedule's defect must not stop the trigger
            self._defect(at_work.timer, error)
            at_work.broken = True
        at_work.failed = True
        return None

    def _defect(self, timer: ScheduleTimer, error: Exception) -> None:
        self.runtime.telemetry.count("expansions_failed")
        self.runtime.telemetry.note("a schedule could not be expanded", schedule=timer.name, error=repr(error))
