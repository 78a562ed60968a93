"""Plans expansions, which means deciding and storing what a schedule needs before its occurrences are placed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import ScheduleTimer, first_unread
from duetime.domain.errors import ContentExpired, FaultCode, FieldInvalid
from duetime.domain.operating_parameters import EXPECTATION_READS, LONGEST_SLEEP, MISSED_AFTER, PERMANENT_CHECK_INTERVAL
from duetime.domain.schedules.expansion import (
    MAX_EXPANSION,
    count_missed,
    decide_missed,
    expand,
    expand_backfill,
    expand_timing,
    is_caught_up,
    with_runs_given_back,
)
from duetime.domain.schedules.expectations import (
    OLDEST_WINDOWS,
    after_window,
    begun,
    ends_of_successes,
    next_window,
    succeeded_in,
    with_runs,
)
from duetime.domain.schedules.occurrences import count_between, preceding
from duetime.domain.schedules.schedule import ScheduleState, StoppedOccurrence, is_stopped, is_to_begin, never_began
from duetime.domain.schedules.schedule_changes import (
    counted,
    delayed_occurrence,
    is_dropped,
    paused,
    perhaps_placed,
    with_new_rules,
    with_patience,
    with_placed,
    with_stopped,
)
from duetime.domain.schedules.successive_runs import continued, ended_at, first_run, run_after, run_of
from duetime.domain.schedules.time_zones import tzdata_version
from duetime.domain.tasks.states import LEASED
from duetime.domain.tasks.task import Cause
from duetime.domain.times import DAY, MINUTE, to_iso
from duetime.services.schedules.known_runs import MOST_IN_PASS, is_due, known_runs, latest_run
from duetime.services.schedules.occurrence_tasks import Due
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.backfill import KnownRuns
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.expectations import Window
    from duetime.domain.schedules.run_history import Activity, BackfillRun, CalendarEnd, ExpectationState
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import TaskStore
    from duetime.services.schedules.occurrence_tasks import OccurrenceTasks


_BATCH = 100
"""Number of records read in one request."""


class ConcurrentWrite(Exception):
    """A concurrent write changed the schedule, which must be checked again."""


@frozen
class ExpansionPlanner:
    """Decides which occurrences of a schedule to place now, and when to expand the schedule next.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
    """

    stores: Stores
    occurrence_tasks: OccurrenceTasks
    runtime: Runtime
    look_ahead: Millis

    @property
    def stopped_occurrences(self) -> StoppedOccurrences:
        """Finds occurrences that the schedule's user has stopped."""
        return StoppedOccurrences(self.stores.tasks, self.look_ahead)

    def calendars_of(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        """The calendars that a schedule names.

        Raises:
            FieldInvalid: a named calendar does not exist.
        """
        found = []
        for index, name in enumerate(stored.spec.calendars):
            calendar = self.stores.calendars.read(stored.owner, name)
            if calendar is None:
                raise FieldInvalid(f"calendars[{index}]", f"there is no calendar {name!r}", FaultCode.NOT_ALLOWED)
            found.append(calendar)
        return tuple(found)

    def known_calendars_of(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        """The calendars that a schedule names; empty if any of them is missing."""
        try:
            return self.calendars_of(stored)
        except FieldInvalid:
            return ()

    def plan(self, timer: ScheduleTimer, stored: StoredSchedule) -> ExpansionPass | None:
        """Plan the expansion of one schedule, and set its next timer.

        Returns:
            The pass to continue; `None` if the schedule was paused because its tasks cannot be created.

        Raises:
            ConcurrentWrite: a concurrent write changed the schedule.
            Unavailable: the store did not answer.
        """
        now = self.runtime.now()
        calendars: tuple[Calendar, ...] = ()
        try:
            calendars = self.calendars_of(stored)
            self.occurrence_tasks.check(stored)
            stored.schedule(calendars)
        except FieldInvalid as refusal:
            self._pause(stored, refusal, calendars)
            return None
        known_end = stored.calendar_end
        stored = with_new_rules(stored, tzdata_version(), now).with_calendar_notice(calendars, now)
        after = replace(stored, generation=timer.generation + 1, tzdata=tzdata_version())
        current = ExpansionPass(timer, stored, after)
        if stored.calendar_end != known_end:
            current.calendar_end = stored.calendar_end
        horizon = first_unread(now, self.look_ahead) - 1
        if stored.state is ScheduleState.ACTIVE:
            if stored.is_permanent:
                self._go_on(current, calendars, now)
            else:
                self._by_timing(current, calendars, now, horizon)
                self._look_into_expectations(current, calendars, now)
        self._fill_back(current, calendars, now, horizon)
        try:
            current.task = self.occurrence_tasks.task_for(stored, current.due)
        except (ContentExpired, FieldInvalid) as refusal:
            self._pause(current.before, refusal, calendars)
            return None
        self._write_timer(current, now)
        return current

    def save(self, stored: StoredSchedule) -> StoredSchedule:
        """Write the current state of a schedule.

        Raises:
            ConcurrentWrite: the schedule was changed since it was read.
        """
        if not self.stores.schedules.save(stored, self.runtime.nonce()):
            raise ConcurrentWrite
        return replace(stored, incarnation=stored.incarnation + 1)

    def _pause(self, stored: StoredSchedule, refusal: Exception, calendars: Sequence[Calendar]) -> None:
        """Pause a schedule whose tasks cannot be created, because nothing else can be done."""
        if stored.state is ScheduleState.ACTIVE:
            now = self.runtime.now()
            stopped = self.stopped_occurrences
            marked, still_due = stopped.marked(stored, now, calendars), stopped.still_due(stored, now, calendars)
            self.save(paused(marked, now, str(refusal), calendars, still_due=still_due))

    def _by_timing(self, current: ExpansionPass, calendars: Sequence[Calendar], now: Millis, horizon: Millis) -> None:
        """Find the occurrences of the timing up to the horizon; decisions about missed occurrences are stored first."""
        stored, until = current.before, horizon
        schedule = stored.schedule(calendars)
        has_open_runs = False
        if stored.has_placed_all:
            stored, has_open_runs = self._with_runs_given_back(stored, schedule, now)
            current.before, schedule = stored, stored.schedule(calendars)
        missed_by = now - MISSED_AFTER
        if count_missed(schedule, stored.done, missed_by):
            if stored.owed is not None:
                # An earlier pass decided about missed occurrences, but may never have placed them, so only these are
                # placed first.
                until = stored.done
            elif (placed := self._placed_before(stored, schedule, horizon)) is not None:
                until = placed
            else:
                stored = current.before = self._decided(stored, schedule, missed_by, now)
                schedule = stored.schedule(calendars)
        if is_due(stored, now):
            latest = latest_run(self.stores.tasks, stored, schedule, now, MOST_IN_PASS)
            stored = current.before = replace(stored, latest_run=latest or stored.latest_run)
        expansion = expand_timing(stored, schedule, until, horizon, now, self.look_ahead, has_open_runs=has_open_runs)
        caught_up = [each is stored.owed or is_caught_up(schedule, each, missed_by) for each in expansion.runs]
        causes = [Cause.CATCH_UP if each else Cause.SCHEDULE for each in caught_up]
        known = schedule.calendars
        current.due = [Due(each, cause, calendars=known) for each, cause in zip(expansion.runs, causes, strict=True)]
        current.next_at, current.more = expansion.next_at, expansion.more
        current.after = replace(expansion.after, generation=current.after.generation, tzdata=current.after.tzdata)

    def _look_into_expectations(self, current: ExpansionPass, calendars: Sequence[Calendar], now: Millis) -> None:
        """Check the schedule's expectations once a deadline has passed, and find the next deadline."""
        spec, before = current.before.spec, current.before
        is_expected = spec.expect_success_by is not None or spec.expect_every_seconds is not None
        if not is_expected or current.after.state is not ScheduleState.ACTIVE:
            return
        current.after, deadline = check_deadlines(self.stores.tasks, current.after, before.schedule(calendars), now)
        if deadline is not None:
            at = check_time(deadline, self.look_ahead)
            current.next_at = at if current.next_at is None else min(current.next_at, at)

    def _placed_before(self, stored: StoredSchedule, schedule: Schedule, horizon: Millis) -> Millis | None:
        """The time of the last occurrence that an expansion placed before it failed to save the schedule, if any.

        Occurrences up to this time were not missed. Occurrences are placed in parallel, so any task may be missing
        except the task of the first occurrence. Therefore, all occurrences up to the horizon are checked, and the last
        occurrence that has a task counts. An occurrence that was not checked would later count as missed.
        """
        intended = [each for each in expand(schedule, stored.done, horizon).occurrences if each.runs]
        if not intended or self.stores.tasks.read(stored.id_of(intended[0])) is None:
            return None
        ids = {stored.id_of(each): each.nominal for each in intended}
        return max(
            [intended[0].nominal, *map(ids.__getitem__, self.stores.tasks.read_many(list(ids), consistent=True))]
        )

    def _with_runs_given_back(
        self, stored: StoredSchedule, schedule: Schedule, now: Millis
    ) -> tuple[StoredSchedule, bool]:
        """Count runs that can no longer start as left again; also returns whether other runs may still start.

        A run may be prevented by an earlier run, the user, a pause or an expiry.
        """
        to_begin = self._placed_and_open(stored, schedule)
        # The activity is read after the placed runs, so that a run that starts in the meantime is not counted twice.
        known, found = self.stores.schedules.read(stored.owner, stored.name)
        if known is None or known.uid != stored.uid:
            raise ConcurrentWrite
        activity = self._without_those_that_never_began(stored, found.of(stored.uid))
        stored = replace(stored, activity=activity)
        left = (stored.runs_left or 0) - sum(not activity.has_counted(each.id) for each in to_begin)
        has_open_runs = any(not activity.has_counted(each.id) or each.state not in LEASED for each in to_begin)
        return with_runs_given_back(stored, schedule, left, now), has_open_runs

    def _placed_and_open(self, stored: StoredSchedule, schedule: Schedule) -> Sequence[Task]:
        """The placed runs that may still start; reads backwards in batches of 100 until a batch has no open run."""
        placed = preceding(schedule, stored.done + 1, MAX_EXPANSION)
        ids = [*(each.task_id for each in stored.stopped), *stored.activity.counted]
        open_runs: dict[TaskId, Task] = {}
        while batch := list(islice(placed, _BATCH)):
            ids += [stored.id_of(each) for each in batch if each.nominal not in schedule.stopped]
            found = self.stores.tasks.read_many(ids, consistent=True)
            open_here = {task_id: task for task_id, task in found.items() if is_to_begin(task)}
            if not open_here:
                # Even earlier runs are not read. If such a run starts after all, the limit prevents the last of the
                # later runs.
                break
            open_runs |= open_here
            ids = []
        return list(open_runs.values())

    def _without_those_that_never_began(self, stored: StoredSchedule, activity: Activity) -> Activity:
        """Stop counting runs that a lock or a rate delayed until they were cancelled or had expired."""
        known = [*activity.counted, *([] if activity.active is None else [activity.active])]
        unbegun = [task for task in self.stores.tasks.read_many(known, consistent=True).values() if never_began(task)]
        if not unbegun:
            return activity
        after = activity.without(unbegun)
        if not self.stores.schedules.save_activity(stored.owner, stored.name, after, self.runtime.nonce()):
            raise ConcurrentWrite
        return replace(after, version=after.version + 1)

    def _decided(self, stored: StoredSchedule, schedule: Schedule, missed_by: Millis, now: Millis) -> StoredSchedule:
        """Store the decision about missed occurrences, so that a repeat decides the same; returns the schedule."""
        decided, found = decide_missed(stored, with_patience(stored, schedule, tzdata_version()), missed_by, now)
        if not found.missed:
            # No occurrence is skipped, so this expansion places all of them as usual.
            return stored
        self.runtime.telemetry.count("occurrences_missed", found.missed)
        self.runtime.telemetry.note(
            "a schedule missed occurrences", schedule=stored.name, owner=stored.owner, missed=found.missed
        )
        return self.save(decided)

    def _go_on(self, current: ExpansionPass, calendars: Sequence[Calendar], now: Millis) -> None:
        """Repair the chain of a permanent schedule's runs if it is broken."""
        stored = current.before
        schedule, last = stored.schedule(calendars), stored.last_run
        if last is None or not stored.is_current(last):
            stored = self.save(continued(stored, first_run(schedule, stored.updated_at)))
            last = None if stored.state is ScheduleState.ENDED else stored.last_run
        elif (task := self.stores.tasks.read(last.task_id)) is not None:
            if task.finished_at is not None:
                # No other run is placed, whether or not the last run started.
                stored = replace(stored, remaining_runs=stored.runs_left)
                schedule = stored.schedule(calendars)
                stored = self.save(continued(stored, run_after(schedule, last, ended_at(task, now))))
            last = stored.last_run if stored.last_run != last else None
        current.before = stored
        current.after = replace(stored, generation=current.after.generation, tzdata=current.after.tzdata)
        if last is not None and stored.state is ScheduleState.ACTIVE:
            current.due = [Due(run_of(stored, last.nominal))]
        if stored.state is ScheduleState.ACTIVE:
            current.next_at = now + PERMANENT_CHECK_INTERVAL

    def _fill_back(self, current: ExpansionPass, calendars: Sequence[Calendar], now: Millis, horizon: Millis) -> None:
        """Place the next part of each backfill."""
        schedule = current.before.schedule(calendars)
        for run in current.before.open_backfills:
            known = self._known_runs(current, schedule, run, horizon) if run.backfill.only_missing else None
            expansion = expand_backfill(schedule, run, horizon, now, MAX_EXPANSION - len(current.due), known)
            buffered = run.backfill.is_buffered
            known_by = schedule.calendars
            dues = (Due(each, Cause.BACKFILL, run.id, None, buffered, known_by) for each in expansion.occurrences)
            current.due += dues
            current.more = current.more or expansion.more
            current.after = current.after.with_backfill(expansion.after)

    def _known_runs(self, current: ExpansionPass, schedule: Schedule, run: BackfillRun, horizon: Millis) -> KnownRuns:
        """Occurrences of a backfill that already have a run, or for which this pass places a run."""
        found = known_runs(self.stores.tasks, current.before, schedule, run, horizon)
        placed = {each.occurrence.nominal for each in current.due if each.cause is Cause.BACKFILL}
        return replace(found, instants=found.instants | placed)

    def _write_timer(self, current: ExpansionPass, now: Millis) -> None:
        """Set the schedule's next timer, in a minute that has not been read yet."""
        unread = first_unread(now, self.look_ahead)
        at = current.next_at
        if current.after.open_backfills or current.more:
            at = unread
        if at is not None:
            at = max(unread, min(at, now + LONGEST_SLEEP))
            before = current.before
            self.stores.tasks.add_schedule_timer(
                ScheduleTimer(before.uid, before.owner, before.name, current.after.generation, at)
            )


@dataclass(slots=True)
class ExpansionPass:
    """The state of one schedule during one pass of an expansion.

    Attributes:
        before: the schedule as read.
        after: the schedule to save.
        due: the occurrences to place, in order.
        task: specification of the tasks for the due occurrences.
        next_at: when the timing needs the next check.
        more: whether another pass must follow at once.
        tasks: the tasks that now exist.
        failed: whether the schedule must not be saved, because the store did not answer.
        calendar_end: end of a calendar's data, if this pass has found that it is near.
        broken: whether the pass failed because of a defect, so that a retry would also fail.
    """

    timer: ScheduleTimer
    before: StoredSchedule
    after: StoredSchedule
    due: list[Due] = field(default_factory=list)
    next_at: Millis | None = None
    more: bool = False
    task: TaskSpec | None = None
    tasks: list[Task] = field(default_factory=list)
    failed: bool = False
    broken: bool = False
    calendar_end: CalendarEnd | None = None

    @property
    def misses(self) -> int:
        """Number of missed deadlines of the schedule's expectations that this pass has found."""
        before, after = self.before.expectation, self.after.expectation
        return (after.misses if after else 0) - (before.misses if before else 0)

    @property
    def alone(self) -> int:
        """Number of due occurrences that are placed one by one first, including any owed occurrence."""
        return 1 + (self.before.owed is not None)


_TASKS_READ_AT_ONCE = 100
"""Number of records read in one request."""


def check_deadlines(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, now: Millis
) -> tuple[StoredSchedule, Millis | None]:
    """Check a schedule's deadlines up to now; returns the schedule, and its next deadline.

    Raises:
        Unavailable: the store did not answer.
    """
    state, oldest = begun(stored.expectation, stored.updated_at, stored.created_at), now - OLDEST_WINDOWS
    window = next_window(stored.spec, state, oldest)
    if window is None:
        return stored, None
    if window.deadline <= now or count_between(schedule, state.looked_at, now) >= EXPECTATION_READS // 2:
        runs = _runs_read(tasks, stored, schedule, state, window, now)
        known = [] if state.succeeded_at is None else [state.succeeded_at]
        ends, state = [*known, *ends_of_successes(runs)], with_runs(state, runs, now)
        while window is not None and window.deadline <= now:
            after = after_window(
                state, window, succeeded_in(ends, window), is_planned=window.is_period or _is_planned(schedule, window)
            )
            if after.misses > state.misses:
                deadline = to_iso(window.deadline)
                stored = stored.remarked(now, "", f"no run had succeeded by the deadline {deadline}")
            state = after
            window = next_window(stored.spec, state, oldest)
    return replace(stored, expectation=state), window.deadline if window is not None else None


def check_time(deadline: Millis, look_ahead: Millis) -> Millis:
    """The time for a timer that must not be read before a deadline, although the trigger reads ahead of the clock."""
    return deadline + look_ahead + MINUTE


def _runs_read(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, state: ExpectationState, window: Window, now: Millis
) -> Sequence[Task]:
    """The runs since the last check (only the latest if there are too many), and the runs that were open at that check.

    At a deadline, earlier runs are included, because a user may have retried a failed run.
    """
    first = state.looked_at
    if window.deadline <= now:
        # A run that was scheduled before a period may have ended in that period.
        first = min(first, window.since - DAY if window.is_period else window.since)
    found = takewhile(lambda each: each.nominal > first, preceding(schedule, now + 1, EXPECTATION_READS))
    ids = iter(dict.fromkeys([*state.open_runs, *(stored.id_of(each) for each in found if each.runs)]))
    runs: list[Task] = []
    while batch := list(islice(ids, _TASKS_READ_AT_ONCE)):
        runs += tasks.read_many(batch, consistent=True).values()
    return runs


def _is_planned(schedule: Schedule, window: Window) -> bool:
    """Whether an occurrence was scheduled in a window."""
    found = takewhile(
        lambda each: each.nominal > window.since, preceding(schedule, window.deadline + 1, EXPECTATION_READS)
    )
    return any(each.runs for each in found)


@frozen
class StoppedOccurrences:
    """Finds upcoming occurrences that a user has stopped or run early. Tasks are read only when a schedule changes.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
    """

    tasks: TaskStore
    look_ahead: Millis

    def marked(self, stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar]) -> StoredSchedule:
        """The schedule before a change, marked with the occurrences that its user has stopped, which remain stopped.

        Past occurrences are dropped, except those that the user has paused and may resume.
        """
        found, placed = self._found(stored, now, calendars)
        known = {each.task_id: each for each in stored.stopped}
        records = self.tasks.read_many(list(known), consistent=True) if known else {}
        kept = [each for each in known.values() if each.nominal > now or _is_open(records.get(each.task_id))]
        if kept or found or known:
            stored = with_stopped(counted(stored, found, now), [*kept, *found])
        if not stored.counts_runs:
            # The latest run is searched for now, because a new timing would have different latest times.
            latest = latest_run(self.tasks, stored, stored.schedule(calendars), now)
            stored = replace(stored, latest_run=latest or stored.latest_run)
        return with_placed(stored, placed, now, calendars)

    def stopped_meanwhile(
        self, before: StoredSchedule, after: StoredSchedule, calendars: Sequence[Calendar]
    ) -> Sequence[StoppedOccurrence]:
        """Occurrences that were stopped or began after `before` was read and before `after` was written."""
        return self._found(before, after.updated_at, calendars)[0]

    def still_due(
        self, stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar]
    ) -> Sequence[StoppedOccurrence]:
        """Placed occurrences that are delayed and not due yet; they still run if a pause ends before they are due."""
        found = delayed_occurrence(stored, now, calendars)
        if found is None or found.nominal > stored.done:
            return ()
        task_id = stored.id_of(found)
        task = self.tasks.read(task_id)
        if task is None or task.due_at <= now or not _is_open(task):
            return ()
        return (StoppedOccurrence(found.nominal, task_id, stored.revision_of(found.nominal)),)

    def dropped(self, stored: StoredSchedule, now: Millis) -> Sequence[StoppedOccurrence]:
        """Occurrences that were placed before a pause and came due during the pause."""
        known = {each.task_id: each for each in stored.stopped}
        records = self.tasks.read_many(list(known), consistent=True) if known else {}
        return [known[task_id] for task_id, task in records.items() if is_dropped(task, now)]

    def _found(
        self, stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar]
    ) -> tuple[Sequence[StoppedOccurrence], Sequence[Millis]]:
        """The stopped occurrences among the occurrences placed ahead, and the instants of the other occurrences."""
        # The horizon is a minute later, because clocks differ by less than a minute.
        horizon = first_unread(now, self.look_ahead) + MINUTE
        nominals = {stored.id_of(each): each.nominal for each in perhaps_placed(stored, now, horizon, calendars)}
        records = self.tasks.read_many(list(nominals), consistent=True) if nominals else {}
        stopped = [
            StoppedOccurrence(nominals[task_id], task_id, stored.revision)
            for task_id, task in records.items()
            if is_stopped(task)
        ]
        return stopped, [nominals[task_id] for task_id, task in records.items() if not is_stopped(task)]


def _is_open(task: Task | None) -> bool:
    return task is not None and task.finished_at is None
