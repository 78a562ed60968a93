"""A schedule as stored, with its definition and its progress."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_BACKFILLS, MAX_REMARK_LENGTH, MAX_REMARKS
from duetime.domain.operating_parameters import CALENDAR_NOTICE
from duetime.domain.schedules.definition import Overlap, changed_of
from duetime.domain.schedules.occurrences import may_mean, neighbors, unmoved_due_at
from duetime.domain.schedules.run_history import (
    NO_ACTIVITY,
    Activity,
    BackfillRun,
    BegunRun,
    CalendarEnd,
    ExpectationState,
    LastRun,
    Remark,
)
from duetime.domain.schedules.schedule import Schedule, ScheduleState, derived, is_of, revision_of
from duetime.domain.schedules.schedule_history import (
    NO_SCHEDULE_ACTIONS,
    NewValue,
    ScheduleActionRecord,
    ScheduleHistory,
)
from duetime.domain.tasks.task import Cause, ScheduleRef
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule import RevisionEnd, StoppedOccurrence
    from duetime.domain.schedules.schedule_history import ScheduleAction
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Content
    from duetime.domain.times import Millis


_WAITED_FOR = frozenset({Overlap.BUFFER_ONE, Overlap.BUFFER_ALL, Overlap.CANCEL_OTHER})
"""Policies under which an occurrence waits for another run."""
_MARK = 6
"""Length of the part of `uid` that distinguishes occurrences of successive schedules with the same name."""


@frozen
class ScheduleFilter:
    """Selects the schedules to list; a filter without conditions matches all schedules.

    Attributes:
        states: states of the schedules; empty for any state.
        type: type of their tasks; empty for any type.
        tags: tags of their tasks, all of which they must have.
        name_prefix: beginning of their names.
    """

    states: tuple[ScheduleState, ...] = ()
    type: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    name_prefix: str = ""

    @property
    def reads_more(self) -> bool:
        """Whether non-matching schedules must also be read in order to apply the filter."""
        return bool(self.states or self.type or self.tags)

    @property
    def before_first(self) -> str:
        """A string that sorts before the first name with the prefix, and after all earlier names."""
        if not self.name_prefix:
            return ""
        # Names are in ASCII, and this is the last ASCII character.
        return f"{self.name_prefix[:-1]}{chr(ord(self.name_prefix[-1]) - 1)}\x7f"

    def matches(self, stored: StoredSchedule) -> bool:
        """Whether a schedule meets all conditions."""
        task = stored.spec.task
        return (
            (not self.states or stored.state in self.states)
            and self.type in ("", task.type)
            and self.tags.items() <= task.tags.items()
            and stored.name.startswith(self.name_prefix)
        )


@frozen
class RemovedSchedule:
    """A recently removed schedule, which is stored because its payloads may not have been given an expiry yet.

    Attributes:
        uid: the id of the removed schedule.
        outside_payloads: its payloads that are stored outside the definition.
    """

    uid: TaskId
    outside_payloads: tuple[Content, ...]


@frozen
class StoredSchedule:
    """A schedule as stored.

    Attributes:
        uid: distinguishes it from an earlier schedule with the same name; determines the shard of its timers.
        shards: number of shards at its creation, so that the ids of its occurrences do not depend on later changes.
        spec: the owner's definition, without the payload.
        payload: payload of each occurrence.
        updated_at: when its owner last changed, paused or resumed it, which is the start of the current revision.
        revision: incremented when future occurrences must be placed again; occurrences carry the revision.
        revision_ends: ends of the earlier revisions with the same timing, latest last. Occurrences up to a revision's
            end belong to that revision and still run. Revisions without instants are left out.
        actions: history of actions on it.
        stopped: occurrences of earlier revisions that their user stopped, or ran early, and occurrences that were
            placed before a pause and are due after it.
        version: the ETag; incremented by each of its owner's actions, and when a failure pauses it.
        incarnation: incremented by every write.
        generation: incremented by every expansion; timers with an older generation are dropped.
        done: the instant up to which every occurrence has been placed, or has a remark that says why it was not placed.
        runs_limit: how many of the timing's runs may start in total (`activity.begun`); `None` for no limit.
        remaining_runs: number of runs that may still be placed; a placed run that does not start makes room for another
            run.
        last_run: the latest placed occurrence, which may be in the future.
        owed: an occurrence that should still run because it was missed or is due after a pause; it may not have been
            placed yet.
        log: the latest remarks, oldest first.
        runs_started: total number of placed occurrences, including future occurrences, but not backfills and
            occurrences that a change withdrew.
        runs_skipped: number of occurrences that were not placed.
        former_payload: the payload before its last change, which must expire; `None` if there is none.
        expectation: progress of checking its expectations; `None` without expectations, or before the first check.
        calendar_end: the last reported `known_until` of a calendar; `None` if none was reported.
        traceparent: trace of its creation, to which its runs link; `None` if the request had no trace.
        later_options: task options stored by newer code, which this code keeps unchanged.
        latest_run: if runs are not counted, the latest started run as last read.
        runs_before: number of runs that had started before the current way of counting.
        activity: the schedule's started runs, as read; they are stored separately.
    """

    owner: str
    uid: TaskId
    shards: int
    spec: ScheduleSpec
    payload: Content
    created_at: Millis
    updated_at: Millis
    done: Millis
    state: ScheduleState = ScheduleState.ACTIVE
    paused_reason: str = ""
    revision: int = 1
    version: int = 1
    incarnation: int = 0
    generation: int = 0
    tzdata: str = ""
    remaining_runs: int | None = None
    last_run: LastRun | None = None
    owed: Occurrence | None = None
    backfills: tuple[BackfillRun, ...] = ()
    log: tuple[Remark, ...] = ()
    runs_started: int = 0
    runs_skipped: int = 0
    revision_ends: tuple[RevisionEnd, ...] = ()
    expectation: ExpectationState | None = None
    stopped: tuple[StoppedOccurrence, ...] = ()
    actions: ScheduleHistory = NO_SCHEDULE_ACTIONS
    former_payload: Content | None = None
    traceparent: str | None = None
    calendar_end: CalendarEnd | None = None
    later_options: tuple[tuple[str, object], ...] = ()
    runs_limit: int | None = None
    latest_run: BegunRun | None = None
    runs_before: int = 0
    activity: Activity = field(default=NO_ACTIVITY, compare=False)

    @property
    def name(self) -> str:
        """The schedule's name, which is unique among its owner's schedules."""
        return self.spec.name

    @property
    def mark(self) -> str:
        """Identifies the schedule in its occurrences, together with its name."""
        return self.uid.text[-_MARK:]

    @property
    def is_permanent(self) -> bool:
        """Whether each run is scheduled when the previous run ends."""
        return self.spec.written.permanent is not None

    @property
    def runs_left(self) -> int | None:
        """Number of the timing's runs that may still start; `None` for no limit."""
        return None if self.runs_limit is None else max(0, self.runs_limit - self.activity.begun)

    @property
    def counts_runs(self) -> bool:
        """Whether runs are counted when they start, because they must not overlap or their number is limited."""
        return self.is_permanent or self.spec.overlap is not Overlap.ALLOW_ALL or self.runs_limit is not None

    @property
    def has_placed_all(self) -> bool:
        """Whether all remaining runs have been placed; if a placed run never starts, another run can be placed."""
        return self.remaining_runs == 0 and self.owed is None

    @property
    def open_backfills(self) -> tuple[BackfillRun, ...]:
        """The schedule's backfills in progress."""
        return tuple(each for each in self.backfills if each.finished_at is None)

    @property
    def is_expandable(self) -> bool:
        """Whether the schedule has occurrences to place, now or later."""
        return self.state is ScheduleState.ACTIVE or bool(self.open_backfills)

    @property
    def hears_of_ends(self) -> bool:
        """Whether the schedule must be notified when an occurrence has ended."""
        return self.is_permanent or self.spec.pause_on_failure or self.spec.overlap in _WAITED_FOR

    def schedule(self, calendars: Sequence[Calendar] = ()) -> Schedule:
        """The schedule in computable form; its `remaining_runs` counts occurrences after `done`."""
        return Schedule(
            id=self.uid.text,
            spec=self.spec,
            timing=self.spec.written.timing,
            created_at=self.created_at,
            calendars=tuple(calendars),
            remaining_runs=self.remaining_runs,
            revision=self.revision,
            revision_ends=self.revision_ends,
            stopped=self.stopped_instants,
        )

    @property
    def outside_payloads(self) -> tuple[Content, ...]:
        """The schedule's current and former payloads that are stored outside its definition."""
        known = (self.payload, self.former_payload)
        return tuple(each for each in known if each is not None and each.is_outside)

    @property
    def stopped_instants(self) -> frozenset[Millis]:
        """The instants of occurrences that their user stopped, or ran early."""
        return frozenset(each.nominal for each in self.stopped)

    def revision_of(self, nominal: Millis) -> int:
        """The revision that an occurrence has, no matter when the occurrence is placed."""
        if (stopped := self._stopped_at(nominal)) is not None:
            return stopped.revision
        return revision_of(nominal, self.revision, self.revision_ends)

    def is_current(self, placed: LastRun | ScheduleRef) -> bool:
        """Whether a placed occurrence may still run."""
        if (stopped := self._stopped_at(placed.nominal)) is not None:
            return placed.revision == stopped.revision
        if not is_of(placed.revision, placed.nominal, self.revision, self.revision_ends):
            return False
        return placed.revision == self.revision or self.means(placed.nominal)

    def means(self, nominal: Millis) -> bool:
        """Whether the schedule's current timing includes an instant, or could include it with other calendars."""
        if self.is_permanent:
            return True
        is_changed = changed_of(self.spec.changed_occurrences, nominal) is not None
        return not is_changed and may_mean(self.schedule(), nominal)

    def _stopped_at(self, nominal: Millis) -> StoppedOccurrence | None:
        return next((each for each in self.stopped if each.nominal == nominal), None)

    def id_of(self, occurrence: Occurrence, purpose: str = "") -> TaskId:
        """The id of an occurrence's task, which does not change even if calendars change."""
        if purpose:
            # Additional tasks, which have a purpose such as a backfill, stay valid when the schedule is changed.
            if occurrence.home is None:
                return derived(self.uid.text, 0, occurrence.key, purpose).task_id(occurrence.due_at, self.shards)
            # The instant is used because it does not depend on later changes to the time zone.
            return derived(self.uid.text, 0, str(occurrence.nominal), purpose).task_id(occurrence.home, self.shards)
        home = unmoved_due_at(self.schedule(), occurrence)
        return derived(self.uid.text, self.revision_of(occurrence.nominal), occurrence.key).task_id(home, self.shards)

    def schedule_ref(self, nominal: Millis, cause: Cause = Cause.SCHEDULE, by: Sequence[Calendar] = ()) -> ScheduleRef:
        """The reference to the schedule that an occurrence's task carries."""
        reports = self.hears_of_ends and cause is not Cause.BACKFILL
        before, after = neighbors(self.schedule(by), nominal)
        return ScheduleRef(self.name, self.revision_of(nominal), nominal, cause, self.mark, reports, before, after)

    def remarked(self, at: Millis, key: str, note: str) -> StoredSchedule:
        """A copy with another remark."""
        log = (*self.log, Remark(at, key, note[:MAX_REMARK_LENGTH]))
        return replace(self, log=log[-MAX_REMARKS:])

    def with_calendar_notice(self, calendars: Iterable[Calendar], now: Millis) -> StoredSchedule:
        """A copy with a remark if a calendar's `known_until` is near and not yet reported; otherwise this schedule.

        If several calendars end, each call reports one of them, in the order of their ends.
        """
        ends = {
            CalendarEnd(each.name, each.known_until): each
            for each in calendars
            if each.known_until is not None and each.known_until - now <= CALENDAR_NOTICE
        }
        order = sorted(ends, key=lambda end: (end.known_until, end.name))
        # If the last reported end has changed, the others are reported again.
        reported = order.index(self.calendar_end) + 1 if self.calendar_end in ends else 0
        if reported == len(order):
            return self
        end = order[reported]
        return replace(self.remarked(now, "", f"{ends[end].end_in_words}: replace it"), calendar_end=end)

    def after_action(
        self,
        action: ScheduleAction,
        by: Attribution,
        at: Millis,
        changed: Iterable[str] = (),
        subject: str = "",
        values: tuple[NewValue, ...] = (),
    ) -> StoredSchedule:
        """A copy whose history also contains the action that led to this version."""
        record = ScheduleActionRecord(action, at, by, self.version, tuple(changed), subject, values)
        return replace(self, actions=self.actions.plus(record))

    def limited_to(self, runs: int | None) -> StoredSchedule:
        """A copy with a new limit for the number of runs that may start from now on; `None` for no limit."""
        limit = None if runs is None else self.activity.begun + runs
        return replace(self, runs_limit=limit, remaining_runs=runs)

    def recounted(self, before: StoredSchedule) -> StoredSchedule:
        """A copy that carries over the number of runs if an update changed whether runs are counted."""
        if self.counts_runs is before.counts_runs:
            return self
        counted = self.activity.number_of_runs
        if self.counts_runs:
            return replace(self, runs_before=self.runs_started - counted)
        return replace(self, runs_started=self.runs_before + counted)

    def with_backfill(self, run: BackfillRun) -> StoredSchedule:
        """A copy with a backfill's new state; of the backfills that have ended, only the most recent are kept."""
        others = tuple(each for each in self.backfills if each.id != run.id)
        ended = [each for each in others if each.finished_at is not None]
        forgotten = ended[: max(0, len(others) + 1 - 2 * MAX_BACKFILLS)]
        kept = [each for each in self.backfills if each not in forgotten and each.id != run.id]
        place = next((at for at, each in enumerate(self.backfills) if each.id == run.id), len(kept))
        kept.insert(min(place, len(kept)), run)
        return replace(self, backfills=tuple(kept))
