"""A schedule as it is stored: its definition, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_BACKFILLS, MAX_REMARK_LENGTH, MAX_REMARKS
from duetime.domain.operating_parameters import CALENDAR_NOTICE
from duetime.domain.schedules.definition import Overlap, changed_of
from duetime.domain.schedules.occurrences import may_mean, neighbours, unmoved_due_at
from duetime.domain.schedules.revisions import derived, is_of, revision_of
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
from duetime.domain.schedules.schedule import Schedule, ScheduleState
from duetime.domain.schedules.schedule_history import NO_SCHEDULE_ACTIONS, ScheduleActionRecord, ScheduleHistory
from duetime.domain.tasks.parent_references import Cause, ScheduleRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.revisions import RevisionEnd, StoppedOccurrence
    from duetime.domain.schedules.schedule_history import ScheduleAction
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.content import Content
    from duetime.domain.times import Millis


_WAITED_FOR = frozenset({Overlap.BUFFER_ONE, Overlap.BUFFER_ALL, Overlap.CANCEL_OTHER})
"""Policies by which an occurrence waits for the end of another."""
_MARK = 6
"""Letters of a schedule's `uid` that tell its occurrences from those of another one that had its name before."""


@dataclass(frozen=True, slots=True)
class RemovedSchedule:
    """A schedule that was removed lately, for whoever removed it may not have come to let its payloads expire.

    Attributes:
        uid: which schedule it was.
        outside_payloads: the payloads that it had outside of its definition.
    """

    uid: TaskId
    outside_payloads: tuple[Content, ...]


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """A schedule as it is stored.

    Attributes:
        uid: tells it from another one that had its name before; its shard is where its timers lie.
        shards: how many shards there were when it was made: the ids of its occurrences do not change with the number.
        spec: what its owner said; the payload apart.
        payload: of each occurrence.
        updated_at: when its owner last changed, paused or resumed it; its present revision begins there.
        revision: grows whenever what was placed and is still to come must be placed again; occurrences carry it.
        revision_ends: the ends of the revisions before it that had the same timing, the latest last: what stands for an
            instant up to an end belongs to that revision, and still runs. One that had no instant is left out.
        actions: what was done to it.
        stopped: occurrences that an earlier revision had placed ahead and that their user stopped, or ran early, and
            what was placed before a pause and is due after it.
        version: grows with all that its owner, or a failure, does to it: the ETag.
        incarnation: grows with every write.
        generation: grows with every expansion; timers carry it, and a stale one is dropped by it.
        done: the instant up to which its occurrences were placed, or why not was remarked.
        runs_limit: how many runs of its timing may have begun by its end, counted as `activity.begun` is; `None` for no
            limit.
        remaining_runs: how many may still be placed; what was placed and does not begin makes room for another.
        last_run: the latest occurrence that was placed, which may be to come.
        owed: an occurrence that was missed or is due after a pause, and is to run; it may not have been placed yet.
        log: the latest remarks, oldest first.
        runs_started: how many occurrences were placed, over its whole life, those to come included, but for backfills
            and for what a change took back.
        runs_skipped: how many were not.
        former_payload: that of before the last change of it, which must expire; `None` if there is none.
        expectation: how far what is expected of it was looked into; `None` if nothing is, or not yet.
        calendar_end: the latest `known_until` of one of its calendars that was reported; `None` if none was.
        traceparent: the trace in which it was created, which its runs link to; `None` if nobody named one.
        later_options: options of its task that later code has stored, which this code keeps as they are.
        latest_run: the latest run that had begun when that was last looked into, if its runs are not counted.
        runs_before: how many had begun before they were counted as they are now.
        activity: its runs that have begun, as they were when it was read; it is stored apart.
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
        """Its id among its owner's schedules."""
        return self.spec.name

    @property
    def mark(self) -> str:
        """What its occurrences know it by, besides its name."""
        return self.uid.text[-_MARK:]

    @property
    def is_permanent(self) -> bool:
        """Whether its next run comes after the last one's end, and no clock says when."""
        return self.spec.written.permanent is not None

    @property
    def runs_left(self) -> int | None:
        """How many runs of its timing may still begin; `None` for no limit."""
        return None if self.runs_limit is None else max(0, self.runs_limit - self.activity.begun)

    @property
    def counts_runs(self) -> bool:
        """Whether its runs are counted as they begin: those take turns, or their number is limited."""
        return self.is_permanent or self.spec.overlap is not Overlap.ALLOW_ALL or self.runs_limit is not None

    @property
    def has_placed_all(self) -> bool:
        """Whether as many runs are placed as may begin: should one of them never begin, another takes its place."""
        return self.remaining_runs == 0 and self.owed is None

    @property
    def open_backfills(self) -> tuple[BackfillRun, ...]:
        """Those on their way."""
        return tuple(each for each in self.backfills if each.finished_at is None)

    @property
    def is_expandable(self) -> bool:
        """Whether there is anything to place, now or later."""
        return self.state is ScheduleState.ACTIVE or bool(self.open_backfills)

    @property
    def hears_of_ends(self) -> bool:
        """Whether it wants to be told when an occurrence has ended."""
        return self.is_permanent or self.spec.pause_on_failure or self.spec.overlap in _WAITED_FOR

    def schedule(self, calendars: Sequence[Calendar] = ()) -> Schedule:
        """What the arithmetic of schedules works on; `remaining_runs` counts from `done`."""
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
        """The payloads that it has, or had before its last change, outside of it."""
        known = (self.payload, self.former_payload)
        return tuple(each for each in known if each is not None and each.is_outside)

    @property
    def stopped_instants(self) -> frozenset[Millis]:
        """The instants of the occurrences that their user stopped, or ran early."""
        return frozenset(each.nominal for each in self.stopped)

    def revision_of(self, nominal: Millis) -> int:
        """The revision that an occurrence belongs to, whoever places it, and whenever."""
        if (stopped := self._stopped_at(nominal)) is not None:
            return stopped.revision
        return revision_of(nominal, self.revision, self.revision_ends)

    def is_current(self, placed: LastRun | ScheduleRef) -> bool:
        """Whether an occurrence that was placed may still run."""
        if (stopped := self._stopped_at(placed.nominal)) is not None:
            return placed.revision == stopped.revision
        if not is_of(placed.revision, placed.nominal, self.revision, self.revision_ends):
            return False
        return placed.revision == self.revision or self.means(placed.nominal)

    def means(self, nominal: Millis) -> bool:
        """Whether its present timing has an occurrence at an instant, or would have with other calendars."""
        if self.is_permanent:
            return True
        is_changed = changed_of(self.spec.changed_occurrences, nominal) is not None
        return not is_changed and may_mean(self.schedule(), nominal)

    def _stopped_at(self, nominal: Millis) -> StoppedOccurrence | None:
        return next((each for each in self.stopped if each.nominal == nominal), None)

    def id_of(self, occurrence: Occurrence, purpose: str = "") -> TaskId:
        """The id of an occurrence's task: the same whoever asks, and whenever, whatever its calendars are by then."""
        if purpose:
            # What is made for a purpose of its own goes on whatever its schedule becomes.
            if occurrence.home is None:
                return derived(self.uid.text, 0, occurrence.key, purpose).task_id(occurrence.due_at, self.shards)
            # Its instant, whatever the zone is by now.
            return derived(self.uid.text, 0, str(occurrence.nominal), purpose).task_id(occurrence.home, self.shards)
        home = unmoved_due_at(self.schedule(), occurrence)
        return derived(self.uid.text, self.revision_of(occurrence.nominal), occurrence.key).task_id(home, self.shards)

    def schedule_ref(self, nominal: Millis, cause: Cause = Cause.SCHEDULE, by: Sequence[Calendar] = ()) -> ScheduleRef:
        """What an occurrence's task carries of it."""
        reports = self.hears_of_ends and cause is not Cause.BACKFILL
        before, after = neighbours(self.schedule(by), nominal)
        return ScheduleRef(self.name, self.revision_of(nominal), nominal, cause, self.mark, reports, before, after)

    def remarked(self, at: Millis, key: str, note: str) -> StoredSchedule:
        """With one more remark."""
        log = (*self.log, Remark(at, key, note[:MAX_REMARK_LENGTH]))
        return replace(self, log=log[-MAX_REMARKS:])

    def with_calendar_notice(self, calendars: Iterable[Calendar], now: Millis) -> StoredSchedule:
        """With a remark if the `known_until` of one of its calendars is near and not reported yet; else itself."""
        ends = [(each.known_until, each) for each in calendars if each.known_until is not None]
        until, calendar = min(ends, key=lambda end: end[0], default=(None, None))
        if until is None or calendar is None or until - now > CALENDAR_NOTICE:
            return self
        end = CalendarEnd(calendar.name, until)
        if end == self.calendar_end:
            return self
        return replace(self.remarked(now, "", f"{calendar.end_in_words}: put it again"), calendar_end=end)

    def after_action(
        self,
        action: ScheduleAction,
        by: Attribution,
        at: Millis,
        changed: Iterable[str] = (),
        subject: str = "",
    ) -> StoredSchedule:
        """With one more action, which made this version of it."""
        record = ScheduleActionRecord(action, at, by, self.version, tuple(changed), subject)
        return replace(self, actions=self.actions.plus(record))

    def limited_to(self, runs: int | None) -> StoredSchedule:
        """With another number of runs that may begin from now on; `None` for no limit."""
        limit = None if runs is None else self.activity.begun + runs
        return replace(self, runs_limit=limit, remaining_runs=runs)

    def recounted(self, before: StoredSchedule) -> StoredSchedule:
        """After a change by which its runs are counted from now on, or not any more: their number goes on."""
        if self.counts_runs is before.counts_runs:
            return self
        counted = self.activity.number_of_runs
        if self.counts_runs:
            return replace(self, runs_before=self.runs_started - counted)
        return replace(self, runs_started=self.runs_before + counted)

    def with_backfill(self, run: BackfillRun) -> StoredSchedule:
        """With a backfill as it is now; of those that have ended the latest are kept."""
        others = tuple(each for each in self.backfills if each.id != run.id)
        ended = [each for each in others if each.finished_at is not None]
        forgotten = ended[: max(0, len(others) + 1 - 2 * MAX_BACKFILLS)]
        kept = [each for each in self.backfills if each not in forgotten and each.id != run.id]
        place = next((at for at, each in enumerate(self.backfills) if each.id == run.id), len(kept))
        kept.insert(min(place, len(kept)), run)
        return replace(self, backfills=tuple(kept))
