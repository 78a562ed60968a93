"""Explains why a schedule did or did not run at a given time, from the occurrence at that time and its outcome."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.explanations.gate import span
from duetime.domain.limits import MAX_OCCURRENCES
from duetime.domain.schedules.calendars import covering
from duetime.domain.schedules.definition import changed_of
from duetime.domain.schedules.expansion import latest_occurrence
from duetime.domain.schedules.occurrences import (
    Occurrence,
    between,
    count_between,
    is_in_gap,
    next_nominal,
    preceding,
)
from duetime.domain.schedules.overlap import skipped
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_history import TIMING_FIELDS, ScheduleAction
from duetime.domain.tasks.states import STARTABLE
from duetime.domain.tasks.task import Cause
from duetime.domain.times import HOUR, MINUTE, SECOND, from_datetime, to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.run_history import Remark
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.attempt_results import Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


_OWN = {
    Cause.SCHEDULE: "Its task",
    Cause.CATCH_UP: "It was missed and caught up later: its task",
    Cause.MANUAL: "It was run on request: the task",
    Cause.BACKFILL: "A backfill ran it: the task",
}
"""Phrases that introduce an occurrence's task in the text, by the reason why the task was created."""
_MOST_OTHERS = 3
"""Maximum number of additional tasks for the same time that the text mentions."""
_ENDS = {"succeeded": "succeeded", "failed": "failed", "cancelled": "was cancelled"}


@frozen
class OccurrenceFacts:
    """The stored data about a schedule at one time.

    Attributes:
        tasks: tasks that the schedule created for that time, in any of its revisions.
        former: tasks of an earlier schedule with the same name.
        now: the time.
        kept_since: tasks due before this time may have expired.
        is_complete: whether all tasks that may match were examined.
    """

    tasks: Sequence[Task]
    former: Sequence[Task]
    now: Millis
    kept_since: Millis
    is_complete: bool = True


@frozen
class ScheduleExplanation:
    """Explains why a schedule did or did not run at a time.

    Attributes:
        at: the time in question.
        text: the answer for people.
        occurrence: the occurrence at that time, under the current or a former timing; `None` if there is none.
        task: the occurrence's task, if any.
        previous: the last occurrence before that time; `None` if there is none.
        following: the first occurrence after that time.
    """

    schedule: str
    at: Millis
    outcome: OccurrenceOutcome
    text: str
    occurrence: Occurrence | None = None
    task: Task | None = None
    previous: Millis | None = None
    following: Millis | None = None


def explain_occurrence(
    stored: StoredSchedule, schedule: Schedule, at: Millis, facts: OccurrenceFacts
) -> ScheduleExplanation:
    """Explains a time for a schedule that runs at clock times.

    Args:
        stored: the schedule.
        schedule: the schedule in computable form, with its calendars.
        at: the time in question.
        facts: the stored data about that time.
    """
    unlimited = replace(schedule, remaining_runs=None)
    occurrence = occurrence_at(unlimited, at)
    kept = [task for task in facts.tasks if not task.erased]
    task = _chosen(stored, kept, at)
    if task is not None and (_has_a_say(stored, task) or occurrence is None or occurrence.runs):
        occurrence = _occurrence_of(stored, task)
        outcome, text = _of_task(stored, task, kept, facts.now)
    else:
        task = None
        outcome, text = _of_none(stored, unlimited, at, occurrence, facts)
    anchor = at if occurrence is None else occurrence.nominal
    return ScheduleExplanation(
        stored.name,
        at,
        outcome,
        text,
        occurrence,
        task,
        previous=next((each.nominal for each in preceding(unlimited, anchor, 1)), None),
        following=next_nominal(unlimited, anchor),
    )


def explain_permanent(stored: StoredSchedule, at: Millis, facts: OccurrenceFacts) -> ScheduleExplanation:
    """Explains a time for a permanent schedule, whose next run is scheduled when its last run has ended.

    Args:
        stored: the schedule.
        at: the time in question.
        facts: the stored data about that time.
    """
    kept = [task for task in facts.tasks if not task.erased]
    if (task := _chosen(stored, kept, at)) is not None:
        outcome, text = _of_task(stored, task, kept, facts.now)
        return ScheduleExplanation(stored.name, at, outcome, text, _occurrence_of(stored, task), task)
    last = stored.last_run
    latest = "" if last is None else f" Its latest run is that of {to_iso(last.nominal)}, the task {last.task_id}."
    if stored.state is not ScheduleState.ACTIVE:
        latest = f" It {_standing(stored)}.{latest}"
    text = f"It runs again after its last run has ended: its times are not known in advance.{latest}"
    if at <= facts.now:
        text = f"No run of that time is stored.{_limits(facts)} {text}"
    return ScheduleExplanation(stored.name, at, OccurrenceOutcome.NOT_RECORDED, text)


def explain_none(stored: StoredSchedule, schedule: Schedule, now: Millis) -> ScheduleExplanation:
    """Explains a schedule whose first occurrence is in the future."""
    following = None if stored.is_permanent else next_nominal(schedule, now)
    first = "" if following is None else f" The next one is {to_iso(following)}."
    text = f"No occurrence has been due since it was created at {to_iso(stored.created_at)}.{first}"
    return ScheduleExplanation(stored.name, now, OccurrenceOutcome.NOT_SCHEDULED, text, following=following)


def _chosen(stored: StoredSchedule, tasks: Sequence[Task], at: Millis) -> Task | None:
    """The most informative task for a time, preferably the earliest task that ran because of the timing itself."""
    first, length = time_meant(at)

    def rank(task: Task) -> tuple[bool, bool, bool, Millis, str]:
        nominal, cause = _stands_for(task), _cause_of(task)
        is_extra = cause in {Cause.MANUAL, Cause.BACKFILL}
        return not first <= nominal < first + length, not _has_a_say(stored, task), is_extra, nominal, task.id.text

    return min(tasks, key=rank, default=None)


def _has_a_say(stored: StoredSchedule, task: Task) -> bool:
    """Whether the schedule lets a task run: it has not dropped the task and will not skip it."""
    return not task.was_dropped and _skip_of(stored, task) is None


def _skip_of(stored: StoredSchedule, task: Task) -> Skipped | None:
    """Why the schedule will skip a placed task when it is due; `None` if the schedule will not skip it."""
    if task.schedule_ref is None or task.state not in STARTABLE or task.attempt_history:
        return None
    return skipped(stored, task.schedule_ref)


def _stands_for(task: Task) -> Millis:
    return task.due_at if task.schedule_ref is None else task.schedule_ref.nominal


def _cause_of(task: Task) -> Cause:
    return Cause.SCHEDULE if task.schedule_ref is None else task.schedule_ref.cause


def _occurrence_of(stored: StoredSchedule, task: Task) -> Occurrence:
    """The occurrence of a task, even if the current timing does not include it."""
    nominal = _stands_for(task)
    return Occurrence(nominal, nominal, task.due_at, stored.spec.clock.zone.text_at(nominal))


def _of_none(
    stored: StoredSchedule, schedule: Schedule, at: Millis, occurrence: Occurrence | None, facts: OccurrenceFacts
) -> tuple[OccurrenceOutcome, str]:
    """The explanation of a time without a relevant task."""
    if any(task.erased for task in facts.tasks):
        return OccurrenceOutcome.NOT_RECORDED, "Its task was deleted."
    if occurrence is None and (rolled := rolled_at(schedule, at)):
        return OccurrenceOutcome.EXCLUDED, rolled
    if occurrence is None:
        return _of_no_occurrence(stored, schedule, at, facts)
    if not occurrence.runs:
        return _of_excluded(schedule, occurrence)
    if occurrence.nominal > facts.now:
        return _of_coming(stored, occurrence, facts.now)
    return _of_past(stored, occurrence, facts)


def _of_task(stored: StoredSchedule, task: Task, found: Sequence[Task], now: Millis) -> tuple[OccurrenceOutcome, str]:
    """The explanation of a task, which also mentions other tasks for the same time."""
    others = [
        each
        for each in found
        if each is not task and _has_a_say(stored, each) and _stands_for(each) == _stands_for(task)
    ]
    more = "".join(f" {_OWN[_cause_of(each)]} {each.id} {_now(each)}." for each in others[:_MOST_OTHERS])
    own = _OWN[_cause_of(task)]
    if task.was_dropped:
        return OccurrenceOutcome.SKIPPED, f"It did not run: {_message(task)}.{more}"
    if (skip := _skip_of(stored, task)) is not None:
        outcome, text = _of_skip(stored, skip, task.due_at, now)
        return outcome, f"{text}{more}"
    if task.finished_at is None:
        return OccurrenceOutcome.OPEN, f"{own} {task.id} is {task.state.replace('_', ' ')}, and has not ended.{more}"
    late = "" if not task.lateness else f", {span(task.lateness)} after it was due"
    began = "never started" if task.started_at is None else f"started at {to_iso(task.started_at)}{late}"
    why = _why(task)
    text = f"{own} {task.id} {began}, and {_ended(task)} at {to_iso(task.finished_at)}{why}.{more}"
    return OccurrenceOutcome.RAN, text


def _of_skip(stored: StoredSchedule, skip: Skipped, due_at: Millis, now: Millis) -> tuple[OccurrenceOutcome, str]:
    """The explanation of why the schedule will skip an occurrence's task."""
    if stored.state is ScheduleState.PAUSED:
        return OccurrenceOutcome.PAUSED, _paused_text(stored, due_at, now)
    return OccurrenceOutcome.SKIPPED, f"It will not run: {skip.reason}."


def _paused_text(stored: StoredSchedule, due_at: Millis, now: Millis) -> str:
    """The effect that a pause, if it continues, will have on an occurrence."""
    text = f"It will not run: the schedule {_standing(stored)}."
    return text if due_at <= now else f"{text} If the schedule is resumed before {to_iso(due_at)}, it runs."


def _now(task: Task) -> str:
    return f"is {task.state.replace('_', ' ')}" if task.finished_at is None else _ended(task)


def _ended(task: Task) -> str:
    return _ENDS.get(task.state, "was rolled back")


def _message(task: Task) -> str:
    return "" if task.error is None else task.error.message


def _why(task: Task) -> str:
    """The error of a failed task, or the reason why a task was cancelled."""
    if task.error is not None:
        return f": {task.error.type}: {task.error.message}".rstrip(":. ")
    reason = "" if task.cancellation is None else task.cancellation.by.reason
    return f": {reason}" if reason else ""


def _of_no_occurrence(
    stored: StoredSchedule, schedule: Schedule, at: Millis, facts: OccurrenceFacts
) -> tuple[OccurrenceOutcome, str]:
    """Why the timing does not include a time."""
    spec = stored.spec
    if at < stored.created_at:
        return _of_before_creation(stored, facts)
    first, length = time_meant(at)
    for changed in (each for each in spec.changed_occurrences if first <= each.nominal < first + length):
        what = "skipped" if changed.at is None else f"moved to {spec.clock.zone.text_at(changed.at)}"
        return OccurrenceOutcome.SKIPPED, f"It did not run at that time: {what} by a user."
    if at < (since := _same_timing_since(stored)):
        if (pause := _pause_at(stored, at)) is not None:
            return OccurrenceOutcome.PAUSED, pause
        text = f"It had, or may have had, another timing until {to_iso(since)}, and no run of that time is stored."
        return OccurrenceOutcome.NOT_RECORDED, f"{text}{_limits(facts, at)}"
    if spec.start_at is not None and at < spec.start_at:
        return OccurrenceOutcome.BEFORE_START, f"Its start is at {to_iso(spec.start_at)}."
    if spec.end_at is not None and at > spec.end_at:
        return OccurrenceOutcome.AFTER_END, f"Its end is at {to_iso(spec.end_at)}."
    previous = next((each.nominal for each in preceding(schedule, at, 1)), None)
    near = [
        f"{to_iso(found)} ({stored.spec.clock.zone.text_at(found)}) {word}"
        for word, found in (("before it", previous), ("after it", next_nominal(schedule, at)))
        if found is not None
    ]
    text = f"Its timing does not include that time. The nearest: {' and '.join(near)}." if near else "It has no times."
    return OccurrenceOutcome.NOT_SCHEDULED, text


def _of_before_creation(stored: StoredSchedule, facts: OccurrenceFacts) -> tuple[OccurrenceOutcome, str]:
    text = f"The schedule was created at {to_iso(stored.created_at)}, after that time."
    if facts.former:
        named = ", ".join(f"{task.id} ({task.state})" for task in facts.former[:_MOST_OTHERS])
        text += f" An earlier schedule of this name had a task then: {named}."
    return OccurrenceOutcome.BEFORE_CREATION, text


def _of_excluded(schedule: Schedule, occurrence: Occurrence) -> tuple[OccurrenceOutcome, str]:
    """Why an occurrence does not run: because of its user, a calendar, or a clock change."""
    is_changed = changed_of(schedule.spec.changed_occurrences, occurrence.nominal) is not None
    if occurrence.nominal in schedule.stopped or is_changed:
        return OccurrenceOutcome.SKIPPED, f"It does not run at that time: {occurrence.note}."
    is_lost = is_in_gap(schedule, occurrence)
    return OccurrenceOutcome.CLOCK_CHANGE if is_lost else OccurrenceOutcome.EXCLUDED, f"{occurrence.note}."


def _of_coming(stored: StoredSchedule, occurrence: Occurrence, now: Millis) -> tuple[OccurrenceOutcome, str]:
    """The explanation of a future occurrence."""
    if stored.state is ScheduleState.ENDED:
        return OccurrenceOutcome.ENDED, "It will not run: the schedule has ended."
    if stored.remaining_runs == 0:
        return (
            OccurrenceOutcome.NO_RUNS_LEFT,
            "It will not run: no runs remain.",
        )
    if stored.state is ScheduleState.PAUSED:
        return OccurrenceOutcome.PAUSED, _paused_text(stored, occurrence.due_at, now)
    note = f" ({occurrence.note})" if occurrence.note else ""
    return (
        OccurrenceOutcome.PLANNED,
        f"It will run at {to_iso(occurrence.due_at)}, in {span(occurrence.due_at - now)}{note}.",
    )


def _of_past(stored: StoredSchedule, occurrence: Occurrence, facts: OccurrenceFacts) -> tuple[OccurrenceOutcome, str]:
    """Why a past occurrence has no task."""
    if occurrence.nominal < stored.created_at:
        return _of_before_creation(stored, facts)
    if (remark := _remark_on(stored.log, occurrence, facts.kept_since)) is not None:
        outcome = OccurrenceOutcome.MISSED if remark.is_about_missed else OccurrenceOutcome.SKIPPED
        return outcome, f"It did not run: {remark.note} (found at {to_iso(remark.at)})."
    if (pause := _pause_at(stored, occurrence.nominal)) is not None:
        return OccurrenceOutcome.PAUSED, pause
    if occurrence.nominal < facts.kept_since:
        return OccurrenceOutcome.NOT_RECORDED, f"No reason was recorded.{_limits(facts, occurrence.nominal)}"
    if occurrence.nominal >= stored.updated_at:
        return _of_present_revision(stored, occurrence)
    if occurrence.nominal < (since := _same_timing_since(stored)):
        text = f"No run of that time is stored. Until {to_iso(since)} it had, or may have had, another timing."
    else:
        text = f"Neither a run of that time nor a reason is stored. It was last changed at {to_iso(stored.updated_at)}."
    return OccurrenceOutcome.NOT_RECORDED, f"{text}{_limits(facts)}"


def _limits(facts: OccurrenceFacts, at: Millis | None = None) -> str:
    """Text about data that was not read or may have expired, so that users draw no conclusions from its absence."""
    expired = "" if at is None or at >= facts.kept_since else " The tasks of that time have expired."
    return expired if facts.is_complete else f"{expired} Not all tasks of that time were examined: there are too many."


def _same_timing_since(stored: StoredSchedule) -> Millis:
    """The time since which the current timing is known to apply; earlier timings are not stored."""
    records = stored.actions.records
    known = records[0].at if stored.actions.dropped and records else stored.created_at
    changes = [each.at for each in records if each.action is ScheduleAction.UPDATED and TIMING_FIELDS & {*each.fields}]
    return max(known, *changes, stored.created_at)


def _of_present_revision(stored: StoredSchedule, occurrence: Occurrence) -> tuple[OccurrenceOutcome, str]:
    """Why an occurrence has no task although the current schedule should have created one."""
    if stored.state is ScheduleState.PAUSED:
        return OccurrenceOutcome.PAUSED, f"It did not run, because the schedule {_standing(stored)}."
    if stored.state is ScheduleState.ENDED:
        return OccurrenceOutcome.ENDED, "It did not run: the schedule had ended."
    if stored.remaining_runs == 0:
        return OccurrenceOutcome.NO_RUNS_LEFT, "It did not run: no runs remained."
    if occurrence.nominal > stored.done:
        text = "It has no task yet: the trigger, which runs every minute, has not reached it."
        return OccurrenceOutcome.LATE, text
    return OccurrenceOutcome.NOT_RECORDED, "Its task is no longer kept."


def _remark_on(log: Sequence[Remark], occurrence: Occurrence, kept_since: Millis) -> Remark | None:
    """The schedule's remark about an occurrence, or about several missed occurrences including this occurrence."""
    by_key = next((each for each in reversed(log) if each.key == occurrence.key), None)
    if by_key is not None or occurrence.nominal < kept_since:
        return by_key
    # The remark mentions an occurrence that is caught up, which is not explained by the remark.
    about_missed = (each for each in log if each.is_about_missed and occurrence.key not in each.note)
    return next((each for each in about_missed if each.nominal <= occurrence.nominal <= each.at), None)


def _pause_at(stored: StoredSchedule, at: Millis) -> str | None:
    """Text saying that the schedule was paused at a time before its last change; `None` if no pause is recorded."""
    if at >= stored.updated_at:
        return None
    turns = [each for each in stored.actions.records if each.action in {ScheduleAction.PAUSED, ScheduleAction.RESUMED}]
    before = [each for each in turns if each.at <= at]
    until = to_iso(next((each.at for each in turns if each.at > at), stored.updated_at))
    if before and before[-1].action is ScheduleAction.RESUMED:
        return None
    if before:
        since, note = before[-1].at, f"paused: {before[-1].by.reason}".removesuffix(": ")
    elif found := [each for each in stored.log if each.at <= at and not each.key and each.note.startswith("paused")]:
        # Later records may have replaced the record of the action itself.
        since, note = found[-1].at, found[-1].note
    else:
        return None
    return f"It did not run: the schedule was {note}, at {to_iso(since)}, and was not resumed before {until}."


def _standing(stored: StoredSchedule) -> str:
    """Text saying since when and why a schedule is paused or has ended."""
    if stored.state is ScheduleState.ENDED:
        return "has ended"
    why = f": {stored.paused_reason}" if stored.paused_reason else ""
    return f"has been paused since {to_iso(stored.updated_at)}{why}"


_GAP = 3 * HOUR
"""Upper bound for the size of a clock change."""


def occurrence_at(schedule: Schedule, at: Millis) -> Occurrence | None:
    """The occurrence at the time that a user asks about.

    A time in whole minutes is matched to the minute, any other time to the second. A local time that the clock skipped
    is found with the UTC offset before the change, and an occurrence with jitter is found by its due time.
    """
    first, unit = time_meant(at)
    for found in between(schedule, first - 1, first + unit - 1, MAX_OCCURRENCES):
        if not is_in_gap(schedule, found):
            return found
    if (lost := _lost_at(schedule, first, unit)) is not None:
        return lost
    moved = latest_occurrence(schedule, first - 1)
    return moved if moved is not None and moved.runs and first <= moved.due_at < first + unit else None


def rolled_at(schedule: Schedule, at: Millis) -> str:
    """Explains an excluded time whose run was moved to another day; empty for any other time."""
    first, unit = time_meant(at)
    if (rolled := schedule.rolled) is None or (origin := rolled.inner.after(first - 1)) is None:
        return ""
    landing, zone = rolled.rule.roll(origin).at, schedule.spec.clock.zone
    span = covering(schedule.calendars, origin)
    if origin >= first + unit or landing == origin or span is None:
        return ""
    return f"{span.reason}: it runs at {zone.text_at(landing)} instead of {zone.text_at(origin)}."


def time_meant(at: Millis) -> tuple[Millis, Millis]:
    """The start and length of the minute or second that a user's time refers to."""
    unit = MINUTE if at % MINUTE == 0 else SECOND
    return at - at % unit, unit


def _lost_at(schedule: Schedule, first: Millis, unit: Millis) -> Occurrence | None:
    """The occurrence at a local time that the clock skipped."""
    if count_between(schedule, first - _GAP, first + _GAP) >= MAX_OCCURRENCES:
        return None
    for found in between(schedule, first - _GAP, first + _GAP, MAX_OCCURRENCES):
        if is_in_gap(schedule, found) and first <= from_datetime(datetime.fromisoformat(found.key)) < first + unit:
            return found
    return None


class OccurrenceOutcome(StrEnum):
    """What happened to a schedule at a time.

    Attributes:
        RAN: the occurrence's task has ended.
        OPEN: the occurrence's task has not ended; the task's explanation has the reason for the wait.
        PLANNED: the occurrence will run.
        LATE: the occurrence is due but has no task yet.
        SKIPPED: the schedule, an earlier run or a user prevented the occurrence, or a user moved it.
        EXCLUDED: a calendar or `excluded_dates` excludes the occurrence.
        CLOCK_CHANGE: the clock was set forward past the occurrence.
        MISSED: the occurrence was detected too late.
        PAUSED: the schedule was or is paused.
        NO_RUNS_LEFT: no runs were or are left.
        ENDED: the schedule had or has ended.
        NOT_SCHEDULED: the timing does not include that time.
        BEFORE_START: the time is before the start of the schedule.
        AFTER_END: the time is after the end of the schedule.
        BEFORE_CREATION: the schedule did not exist yet.
        NOT_RECORDED: the stored data does not show what happened.
    """

    RAN = "ran"
    OPEN = "open"
    PLANNED = "planned"
    LATE = "late"
    SKIPPED = "skipped"
    EXCLUDED = "excluded"
    CLOCK_CHANGE = "clock_change"
    MISSED = "missed"
    PAUSED = "paused"
    NO_RUNS_LEFT = "no_runs_left"
    ENDED = "ended"
    NOT_SCHEDULED = "not_scheduled"
    BEFORE_START = "before_start"
    AFTER_END = "after_end"
    BEFORE_CREATION = "before_creation"
    NOT_RECORDED = "not_recorded"
