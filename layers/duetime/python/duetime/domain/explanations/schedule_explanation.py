"""Why a schedule did, or did not, run at a time: its occurrence there, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.explanations.durations import span
from duetime.domain.explanations.occurrence_lookup import occurrence_at, rolled_at
from duetime.domain.explanations.occurrence_outcome import OccurrenceOutcome
from duetime.domain.schedules.occurrences import is_in_gap, next_nominal, preceding
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_results import SKIPPED
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.run_history import Remark
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class ScheduleExplanation:
    """Why a schedule did, or did not, run at a time.

    Attributes:
        at: the time in question.
        text: the answer in words.
        occurrence: what its timing means there; `None` for nothing.
        task: of that occurrence, if there is one.
        previous: the last time before it that its timing means; `None` if there is none.
        following: the first one after it.
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
    stored: StoredSchedule, schedule: Schedule, at: Millis, task: Task | None, now: Millis, kept_since: Millis
) -> ScheduleExplanation:
    """Explain a time of a schedule that a clock moves on.

    Args:
        stored: the schedule.
        schedule: the same, for the arithmetic, with its calendars.
        at: the time in question.
        task: of the occurrence there, if there is one.
        now: the time.
        kept_since: tasks that were due before may be kept no more.
    """
    unlimited = replace(schedule, remaining_runs=None)
    occurrence = occurrence_at(unlimited, at)
    anchor = at if occurrence is None else occurrence.nominal
    around = {
        "previous": next((each.nominal for each in preceding(unlimited, anchor, 1)), None),
        "following": next_nominal(unlimited, anchor),
    }
    if task is not None and occurrence is not None:
        outcome, text = _of_task(task)
    elif occurrence is None and (rolled := rolled_at(schedule, at)):
        outcome, text = OccurrenceOutcome.EXCLUDED, rolled
    elif occurrence is None:
        outcome, text = _of_no_occurrence(stored, at, now, **around)
    elif not occurrence.runs:
        outcome, text = _of_excluded(schedule, occurrence)
    elif occurrence.nominal > now:
        outcome, text = _of_coming(stored, occurrence, now)
    else:
        outcome, text = _of_past(stored, occurrence, kept_since)
    return ScheduleExplanation(stored.name, at, outcome, text, occurrence, task, **around)


def explain_permanent(stored: StoredSchedule, at: Millis, task: Task | None) -> ScheduleExplanation:
    """Explain a time of a schedule that runs again after its last run has ended.

    Args:
        stored: the schedule.
        at: the time in question.
        task: of its latest run, if that was at about this time.
    """
    if task is not None:
        outcome, text = _of_task(task)
        return ScheduleExplanation(stored.name, at, outcome, text, task=task)
    last = stored.last_run
    latest = "" if last is None else f" Its latest run is that of {to_iso(last.nominal)}, the task {last.task_id}."
    if stored.state is not ScheduleState.ACTIVE:
        latest = f" It {_standing(stored)}.{latest}"
    text = f"It runs again after its last run has ended: its times are not known beforehand.{latest}"
    return ScheduleExplanation(stored.name, at, OccurrenceOutcome.NOT_RECORDED, text)


def _of_task(task: Task) -> tuple[OccurrenceOutcome, str]:
    if task.error is not None and task.error.type == SKIPPED:
        return OccurrenceOutcome.SKIPPED, f"It did not run: {task.error.message}."
    if task.finished_at is not None:
        late = "" if not task.lateness else f", {span(task.lateness)} after it was due"
        began = "never started" if task.started_at is None else f"started at {to_iso(task.started_at)}{late}"
        return OccurrenceOutcome.RAN, f"Its task {task.id} {began}, and {_ended(task)} at {to_iso(task.finished_at)}."
    return OccurrenceOutcome.OPEN, f"Its task {task.id} is {task.state.replace('_', ' ')}, and has not ended."


def _ended(task: Task) -> str:
    return {"succeeded": "succeeded", "failed": "failed", "cancelled": "was cancelled"}.get(
        task.state, "was rolled back"
    )


def _of_no_occurrence(
    stored: StoredSchedule, at: Millis, now: Millis, previous: Millis | None, following: Millis | None
) -> tuple[OccurrenceOutcome, str]:
    """Why the timing does not mean a time."""
    spec = stored.spec
    if spec.start_at is not None and at < spec.start_at:
        return OccurrenceOutcome.BEFORE_START, f"Its start is at {to_iso(spec.start_at)}."
    if spec.end_at is not None and at > spec.end_at:
        return OccurrenceOutcome.AFTER_END, f"Its end is at {to_iso(spec.end_at)}."
    if at < stored.created_at:
        return OccurrenceOutcome.BEFORE_CREATION, f"It was created at {to_iso(stored.created_at)}, after that time."
    near = [
        f"{to_iso(found)} ({stored.spec.clock.zone.text_at(found)}) {word}"
        for word, found in (("before it", previous), ("after it", following))
        if found is not None
    ]
    text = f"Its timing does not mean that time. The nearest: {' and '.join(near)}." if near else "It has no times."
    if at < stored.updated_at <= now:
        text += f" It was last changed, paused or resumed at {to_iso(stored.updated_at)}: it may have had others then."
    return OccurrenceOutcome.NOT_SCHEDULED, text


def _of_excluded(schedule: Schedule, occurrence: Occurrence) -> tuple[OccurrenceOutcome, str]:
    """Why an occurrence does not run: its user, a calendar, or a change of the clock."""
    if occurrence.nominal in schedule.stopped:
        return OccurrenceOutcome.SKIPPED, f"It does not run at that time: {occurrence.note}."
    is_lost = is_in_gap(schedule, occurrence)
    return OccurrenceOutcome.CLOCK_CHANGE if is_lost else OccurrenceOutcome.EXCLUDED, f"{occurrence.note}."


def _of_coming(stored: StoredSchedule, occurrence: Occurrence, now: Millis) -> tuple[OccurrenceOutcome, str]:
    """What is to be expected of an occurrence that is still to come."""
    if stored.state is ScheduleState.PAUSED:
        return OccurrenceOutcome.PAUSED, f"It will not run as long as the schedule {_standing(stored)}."
    if stored.state is ScheduleState.ENDED:
        return OccurrenceOutcome.ENDED, "It will not run: the schedule has ended."
    if stored.remaining_runs == 0:
        return (
            OccurrenceOutcome.NO_RUNS_LEFT,
            "It will not run: no runs remain.",
        )
    note = f" ({occurrence.note})" if occurrence.note else ""
    return (
        OccurrenceOutcome.PLANNED,
        f"It will run at {to_iso(occurrence.due_at)}, in {span(occurrence.due_at - now)}{note}.",
    )


def _of_past(stored: StoredSchedule, occurrence: Occurrence, kept_since: Millis) -> tuple[OccurrenceOutcome, str]:
    """Why an occurrence of the past has no task."""
    if occurrence.nominal < stored.created_at:
        text = f"The schedule was created at {to_iso(stored.created_at)}, after that time."
        return OccurrenceOutcome.BEFORE_CREATION, text
    if (remark := _remark_on(stored.log, occurrence, kept_since)) is not None:
        outcome = OccurrenceOutcome.MISSED if "missed" in remark.note else OccurrenceOutcome.SKIPPED
        return outcome, f"It did not run: {remark.note} (found at {to_iso(remark.at)})."
    if occurrence.nominal < kept_since:
        return OccurrenceOutcome.NOT_RECORDED, "The tasks of that time have expired, and no reason was recorded."
    if occurrence.nominal < stored.updated_at:
        return _of_before_the_change(stored, occurrence)
    return _of_present_revision(stored, occurrence)


def _of_before_the_change(stored: StoredSchedule, occurrence: Occurrence) -> tuple[OccurrenceOutcome, str]:
    """What is known of an occurrence before the last change of the schedule."""
    changed = to_iso(stored.updated_at)
    if (pause := _pause_before(stored.log, occurrence.nominal)) is not None:
        why = f"the schedule was {pause.note}, at {to_iso(pause.at)}"
        return OccurrenceOutcome.PAUSED, f"It did not run: {why}, and was not resumed before {changed}."
    text = f"The schedule was last changed, paused or resumed at {changed}: what it was before is not stored."
    return OccurrenceOutcome.NOT_RECORDED, text


def _of_present_revision(stored: StoredSchedule, occurrence: Occurrence) -> tuple[OccurrenceOutcome, str]:
    """Why an occurrence has no task that the schedule, as it is now, should have placed."""
    if stored.state is ScheduleState.PAUSED:
        return OccurrenceOutcome.PAUSED, f"It did not run, for the schedule {_standing(stored)}."
    if stored.state is ScheduleState.ENDED:
        return OccurrenceOutcome.ENDED, "It did not run: the schedule had ended."
    if stored.remaining_runs == 0:
        return OccurrenceOutcome.NO_RUNS_LEFT, "It did not run: no runs remained."
    if occurrence.nominal > stored.done:
        text = "It has no task yet: the trigger, which runs every minute, has not come to it."
        return OccurrenceOutcome.LATE, text
    return OccurrenceOutcome.NOT_RECORDED, "It had a task, which is not kept any more."


def _remark_on(log: Sequence[Remark], occurrence: Occurrence, kept_since: Millis) -> Remark | None:
    """What the schedule remembers of an occurrence: by its time, or with others that were missed."""
    by_key = next((each for each in reversed(log) if each.key == occurrence.key), None)
    if by_key is not None or occurrence.nominal < kept_since:
        return by_key
    return next((each for each in log if each.at >= occurrence.nominal and "missed" in each.note), None)


def _pause_before(log: Sequence[Remark], at: Millis) -> Remark | None:
    """The pause that a time fell into, as far as the schedule remembers it."""
    before = [each for each in log if each.at <= at and not each.key and each.note.startswith("paused")]
    return before[-1] if before else None


def _standing(stored: StoredSchedule) -> str:
    """That a schedule is paused or has ended, since when and why."""
    if stored.state is ScheduleState.ENDED:
        return "has ended"
    why = f": {stored.paused_reason}" if stored.paused_reason else ""
    return f"is paused since {to_iso(stored.updated_at)}{why}"
