"""Computes changes to a schedule and the resulting revision.

Decisions are returned as values; the current time is a parameter.

Occurrences that are due during a pause are dropped; occurrences that are due later run. With a calendar or jitter, an
occurrence can run long after its instant, but never after the next instant, unless its user or `excluded_dates`
excludes that instant. Therefore, only the latest other occurrence with a past instant can still run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_NOTE_LENGTH, MAX_REMARKS, MAX_STOPPED_OCCURRENCES
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE, RULE_CHANGE_PATIENCE
from duetime.domain.schedules.definition import CatchUpMode
from duetime.domain.schedules.expansion import count_missed, decide_missed, expand, latest_occurrence
from duetime.domain.schedules.occurrences import Occurrence, previous_nominal
from duetime.domain.schedules.run_history import RUN_BY_HAND, LastRun
from duetime.domain.schedules.schedule import NO_REVISION, ScheduleState, is_stopped, with_end
from duetime.domain.schedules.schedule_history import BY_OWNER, ScheduleAction
from duetime.domain.schedules.time_zones import UTC_ZONE
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.schedule import Schedule, StoppedOccurrence
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def retimed(stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar] = ()) -> StoredSchedule:
    """The next revision, in which placed future occurrences no longer run and count as remaining runs again."""
    now = max((now, *(end.until for end in stored.revision_ends)))
    remaining, taken_back = stored.remaining_runs, len(coming(stored, now, calendars))
    return replace(
        stored,
        updated_at=now,
        revision=stored.revision + 1,
        version=stored.version + 1,
        done=now,
        owed=None,
        remaining_runs=None if remaining is None else remaining + taken_back,
        runs_started=max(0, stored.runs_started - taken_back),
        revision_ends=(),
        stopped=tuple(each for each in stored.stopped if each.nominal > now or stored.state is ScheduleState.PAUSED),
    )


def edited(stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar] = ()) -> StoredSchedule:
    """The next revision with the same timing. Future occurrences are placed again; due occurrences still run.

    Due occurrences that have not been placed or caught up yet also keep their revision, and therefore their ids.
    """
    after = retimed(stored, now, calendars)
    ends = stored.revision_ends
    if _has_instants(stored, after.updated_at, calendars):
        ends = with_end(ends, after.updated_at, stored.revision)
    done = min(stored.done, after.done)
    after = replace(after, revision_ends=ends, done=done, owed=stored.owed, stopped=stored.stopped)
    last = stored.last_run
    if not stored.is_permanent or last is None or not coming(stored, after.updated_at):
        return after
    # The next run in a permanent schedule's chain keeps its time.
    return replace(
        after,
        last_run=LastRun(_chain_id(after, last.nominal), last.nominal, after.revision),
        remaining_runs=stored.remaining_runs,
        runs_started=stored.runs_started,
    )


def rescheduled(stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar] = ()) -> StoredSchedule:
    """The next revision if the timing will be changed. Due occurrences still run if the new timing includes them.

    The decision about overdue occurrences without tasks is made now, because they are computed from the old timing.
    """
    if stored.owed is None and count_missed(stored.schedule(calendars), stored.done, now):
        schedule = stored.schedule(calendars)
        latest = replace(schedule, spec=replace(schedule.spec, catch_up_mode=CatchUpMode.LATEST))
        stored, _ = decide_missed(stored, latest, now, now)
    after = edited(stored, now, calendars)
    return replace(after, done=after.updated_at)


def coming(stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar] = ()) -> Sequence[Occurrence]:
    """The future occurrences that have been placed under the current revision, except stopped occurrences."""
    last = stored.last_run
    if last is None or last.revision != stored.revision or last.nominal <= now:
        return ()
    if stored.is_permanent:
        at = last.nominal
        key = stored.spec.clock.zone.text_at(at)
        return () if at in stored.stopped_instants else (Occurrence(at, at, at, key),)
    unlimited = replace(stored.schedule(calendars), remaining_runs=None)
    return tuple(each for each in expand(unlimited, now, last.nominal).occurrences if each.runs)


def perhaps_placed(
    stored: StoredSchedule, now: Millis, horizon: Millis, calendars: Sequence[Calendar] = ()
) -> Sequence[Occurrence]:
    """The future occurrences that may have been placed, even by an expansion that did not store the schedule."""
    if stored.is_permanent:
        return coming(stored, now, calendars)
    schedule, saved_to = stored.schedule(calendars), _saved_to(stored, now)
    # Excluded occurrences are included, because a calendar may have been replaced since then.
    found = expand(replace(schedule, remaining_runs=None), now, saved_to).occurrences if saved_to > now else ()
    if stored.state is ScheduleState.ACTIVE:
        found = (*found, *expand(schedule, saved_to, horizon).occurrences)
    if (rolled := schedule.rolled) is not None:
        times, zone = {each.nominal for each in found}, stored.spec.clock.zone
        possible = (at for at in rolled.possible(now, max(saved_to, horizon)) if at not in times)
        found = (*found, *(Occurrence(at, at, at, zone.text_at(at), runs=False) for at in possible))
    known = stored.stopped_instants
    return tuple(each for each in found if each.nominal not in known)


def with_placed(
    stored: StoredSchedule, placed: Sequence[Millis], now: Millis, calendars: Sequence[Calendar]
) -> StoredSchedule:
    """Corrects the schedule's counts if calendars were replaced, before a change withdraws placed occurrences.

    Args:
        stored: the schedule, including stopped occurrences.
        placed: future instants with a task that was not stopped.
        now: the time.
        calendars: in their current form.
    """
    if stored.is_permanent or not stored.spec.calendars:
        return stored
    saved = sum(each <= _saved_to(stored, now) for each in placed)
    more, remaining = saved - len(coming(stored, now, calendars)), stored.remaining_runs
    return replace(
        stored,
        remaining_runs=None if remaining is None else max(0, remaining + more),
        runs_started=max(0, stored.runs_started - more),
    )


def counted(stored: StoredSchedule, stopped: Sequence[StoppedOccurrence], now: Millis) -> StoredSchedule:
    """Counts stopped occurrences as placed if the expansion that placed them did not store the count."""
    more, remaining = sum(each.nominal > _saved_to(stored, now) for each in stopped), stored.remaining_runs
    if stored.is_permanent or not more:
        return stored
    return replace(
        stored,
        remaining_runs=None if remaining is None else max(0, remaining - more),
        runs_started=stored.runs_started + more,
    )


def with_stopped(stored: StoredSchedule, stopped: Sequence[StoppedOccurrence]) -> StoredSchedule:
    """A copy in which exactly the given occurrences are recorded as stopped or run early by a user.

    If there are too many occurrences, only the latest are kept.
    """
    return replace(stored, stopped=tuple(sorted(stopped, key=lambda each: each.nominal))[-MAX_STOPPED_OCCURRENCES:])


def stopped_since(stored: StoredSchedule, found: Sequence[StoppedOccurrence]) -> StoredSchedule:
    """Adds occurrences that a user stopped while the schedule was being changed, so the change does not affect them."""
    known = stored.stopped_instants
    more = [each for each in found if each.nominal not in known]
    if not more:
        return stored
    after, remaining = with_stopped(stored, (*stored.stopped, *more)), stored.remaining_runs
    if stored.is_permanent and stored.last_run is not None:
        # The schedule's next occurrence is the stopped run, whatever the state of the run.
        same = [each for each in more if each.nominal == stored.last_run.nominal]
        last = [LastRun(each.task_id, each.nominal, each.revision) for each in same]
        return replace(after, last_run=last[0]) if last else after
    return replace(
        after,
        remaining_runs=None if remaining is None else max(0, remaining - len(more)),
        runs_started=stored.runs_started + len(more),
    )


def with_manual_run(stored: StoredSchedule, task: Task, now: Millis, by: Attribution = BY_OWNER) -> StoredSchedule:
    """Counts a requested run and adds a remark about it, unless the run has already been counted."""
    if task.schedule_ref is None or _is_counted(stored, task):
        return stored
    key = stored.spec.clock.zone.text_at(task.schedule_ref.nominal)
    counted = replace(stored, runs_started=stored.runs_started + 1)
    counted = counted.after_action(ScheduleAction.RUN_REQUESTED, by, now, subject=task.id.text)
    return counted.remarked(now, key, f"{RUN_BY_HAND}{task.id}")


def _is_counted(stored: StoredSchedule, task: Task) -> bool:
    """Whether a requested run was counted: it has a remark, or later remarks may have replaced its remark."""
    if any(remark.note == f"{RUN_BY_HAND}{task.id}" for remark in stored.log):
        return True
    return len(stored.log) == MAX_REMARKS and stored.log[0].at + MAX_CLOCK_DIFFERENCE > task.created_at


def with_new_timing(stored: StoredSchedule) -> StoredSchedule:
    """Adapts the owed and stopped occurrences to the new timing.

    If the new timing no longer includes the owed occurrence, that occurrence is dropped. Stopped occurrences that the
    new timing no longer includes are marked with `NO_REVISION`.
    """
    means = stored.means
    apart = [each if means(each.nominal) else replace(each, revision=NO_REVISION) for each in stored.stopped]
    owed = stored.owed if stored.owed is not None and means(stored.owed.nominal) else None
    return replace(stored, stopped=tuple(apart), owed=owed)


def _saved_to(stored: StoredSchedule, now: Millis) -> Millis:
    """The last placed occurrence's instant, as stored under the current revision; `now` if the instant has passed."""
    last = stored.last_run
    return max(now, last.nominal) if last is not None and last.revision == stored.revision else now


def _has_instants(stored: StoredSchedule, until: Millis, calendars: Sequence[Calendar]) -> bool:
    """Whether any instant up to `until` belongs to the current revision, so that the revision's end must be stored."""
    since = stored.revision_ends[-1].until if stored.revision_ends else -1
    if stored.is_permanent:
        return stored.last_run is not None and since < stored.last_run.nominal <= until
    latest = previous_nominal(stored.schedule(calendars), until + 1)
    return latest is not None and latest > since


def _chain_id(stored: StoredSchedule, nominal: Millis) -> TaskId:
    return stored.id_of(Occurrence(nominal, nominal, nominal, stored.spec.clock.zone.text_at(nominal)))


def with_new_rules(stored: StoredSchedule, version: str, now: Millis) -> StoredSchedule:
    """Adds a remark if the schedule was last computed with time zone rules of a version other than `version`."""
    if not _has_other_rules(stored, version):
        return stored
    zone = stored.spec.clock.zone.name
    return stored.remarked(
        now, "", f"the time zone rules of {zone} have changed from version {stored.tzdata} to {version}"
    )


def with_patience(stored: StoredSchedule, schedule: Schedule, version: str) -> Schedule:
    """The schedule with a longer catch-up window if newer time zone rules may have moved an occurrence to the past.

    The catch-up window that the user chose is not meant for an occurrence that is late only because the rules changed.
    """
    if not _has_other_rules(stored, version):
        return schedule
    longest = max(schedule.spec.catch_up_seconds, RULE_CHANGE_PATIENCE // SECOND)
    return replace(schedule, spec=replace(schedule.spec, catch_up_seconds=longest))


def _has_other_rules(stored: StoredSchedule, version: str) -> bool:
    return stored.tzdata not in ("", version) and stored.spec.clock.zone != UTC_ZONE


def delayed_occurrence(stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar] = ()) -> Occurrence | None:
    """The latest occurrence that may still be due; `None` if occurrences cannot be due after their instants."""
    if stored.is_permanent or not (stored.spec.is_delayed or stored.spec.calendars):
        return None
    return latest_occurrence(stored.schedule(calendars), now)


def paused(
    stored: StoredSchedule,
    now: Millis,
    reason: str,
    calendars: Sequence[Calendar] = (),
    by: Attribution = BY_SYSTEM,
    still_due: Sequence[StoppedOccurrence] = (),
) -> StoredSchedule:
    """A paused copy that stores the reason.

    Args:
        stored: the schedule, including occurrences that its user stopped.
        now: the time.
        reason: human-readable reason.
        calendars: the known calendars.
        by: who requested the change.
        still_due: placed occurrences with a past instant that are due after `now`.
    """
    held = retimed(stored, now, calendars)
    held = replace(
        held,
        state=ScheduleState.PAUSED,
        paused_reason=reason[:MAX_NOTE_LENGTH],
        # Occurrences that the trigger placed late can still become due after the start of the pause.
        done=min(stored.done, held.done),
    )
    held = with_stopped(held, [*still_due, *held.stopped]) if still_due else held
    held = held.after_action(ScheduleAction.PAUSED, replace(by, reason=held.paused_reason), now)
    return held.remarked(now, "", f"paused: {reason}" if reason else "paused")


def is_dropped(task: Task, now: Millis) -> bool:
    """Whether resuming drops an occurrence that was placed before the pause, was due by now and has not started."""
    return not is_stopped(task) and (task.finished_at is not None or task.due_at <= now)


def resumed(
    stored: StoredSchedule,
    now: Millis,
    calendars: Sequence[Calendar],
    dropped: Sequence[StoppedOccurrence],
    by: Attribution,
) -> StoredSchedule:
    """An active copy that does not catch up occurrences that were due during the pause.

    Args:
        stored: the schedule.
        now: the time.
        calendars: its calendars.
        dropped: occurrences that were placed before the pause and due during the pause.
        by: who requested the change.
    """
    found = delayed_occurrence(stored, now, calendars)
    remaining = None if stored.remaining_runs is None else stored.remaining_runs + len(dropped)
    owed = None
    if found is not None and found.nominal > stored.done and found.runs and found.due_at > now and remaining != 0:
        owed, remaining = found, None if remaining is None else remaining - 1
    after = replace(
        stored,
        state=ScheduleState.ACTIVE,
        paused_reason="",
        done=now,
        updated_at=now,
        version=stored.version + 1,
        owed=owed,
        remaining_runs=remaining,
        runs_started=max(0, stored.runs_started - len(dropped)),
        stopped=tuple(each for each in stored.stopped if each not in dropped),
    )
    return after.after_action(ScheduleAction.RESUMED, by, now)
