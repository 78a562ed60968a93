"""Computes a schedule's occurrences: their future and past times, and why an occurrence does not run."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.calendars import covering, next_working_moment
from duetime.domain.schedules.definition import OnExcluded, changed_of, moved_to
from duetime.domain.schedules.schedule import derived, revision_of, spread_offset
from duetime.domain.schedules.time_zones import LAST_WALL
from duetime.domain.schedules.timings import parse_excluded_dates
from duetime.domain.times import SECOND, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.schedules.calendars import Span
    from duetime.domain.schedules.recurrences import Lost
    from duetime.domain.schedules.schedule import Schedule

EXCLUDED = "in excluded_dates: skipped"
STOPPED = "its task was stopped or run early by a user"
"""Why an occurrence does not run whose task a user stopped or ran early before the schedule was changed."""


@frozen
class Occurrence:
    """One occurrence of a schedule.

    Attributes:
        nominal: the instant of the timing.
        at: when the occurrence would run without spread and jitter: `nominal`, or the working moment to which it is
            moved.
        due_at: when its task is due: `at` plus spread and jitter.
        key: the instant as local time with UTC offset, which is unique: `2026-11-21T02:33:00+00:00`.
        runs: whether it runs.
        note: text about the effects of clock changes or calendars, or why the occurrence does not run.
        home: for a backfill, the time in its task's id, which must stay the same if the schedule changes.
    """

    nominal: Millis
    at: Millis
    due_at: Millis
    key: str
    runs: bool = True
    note: str = ""
    home: Millis | None = None


def following(schedule: Schedule, after: Millis, limit: int) -> Sequence[Occurrence]:
    """The first occurrences after an instant, including occurrences that do not run.

    `remaining_runs` counts from this instant.
    """
    return list(islice(_forward(schedule, after, LAST_WALL), limit))


def between(schedule: Schedule, after: Millis, until: Millis, limit: int) -> Sequence[Occurrence]:
    """The first occurrences in (after, until], ignoring `remaining_runs`."""
    return list(islice(_forward(replace(schedule, remaining_runs=None), after, until), limit))


def preceding(schedule: Schedule, before: Millis, limit: int) -> Iterator[Occurrence]:
    """The occurrences before an instant, latest first, ignoring `remaining_runs`; computed lazily."""
    return islice(_backward(schedule, before), limit)


def count_between(schedule: Schedule, after: Millis, until: Millis) -> int:
    """Number of the timing's instants in (after, until], ignoring calendars; computed without enumerating them."""
    first, last = _bounds(schedule, after, until)
    return schedule.recurrence.count(first, last) if first < last else 0


def next_nominal(schedule: Schedule, after: Millis) -> Millis | None:
    """The timing's next instant after `after`; `None` if there is none."""
    first, last = _bounds(schedule, after, LAST_WALL)
    found = schedule.recurrence.after(first)
    return None if found is None or found > last else found


def may_mean(schedule: Schedule, nominal: Millis) -> bool:
    """Whether the schedule's timing includes an instant, or could include it with other calendars."""
    first, last = _bounds(schedule, nominal - 1, nominal)
    rolled, recurrence = schedule.rolled, schedule.recurrence
    return first < last and (
        recurrence.after(first) == nominal or (rolled is not None and nominal in rolled.possible(first, last))
    )


def previous_nominal(schedule: Schedule, before: Millis) -> Millis | None:
    """The timing's last instant before `before`."""
    first, last = _bounds(schedule, -1, before - 1)
    found = schedule.recurrence.before(last + 1)
    return None if found is None or found <= first else found


def neighbors(schedule: Schedule, nominal: Millis) -> tuple[Millis | None, Millis | None]:
    """The timing's previous and next instants, ignoring calendars."""
    return previous_nominal(schedule, nominal), next_nominal(schedule, nominal)


def forward(schedule: Schedule, after: Millis, until: Millis) -> Iterator[Occurrence]:
    """The occurrences in (after, until] in order, with at most the remaining number of runs."""
    return _forward(schedule, after, until)


def judged(schedule: Schedule, nominal: Millis) -> Occurrence:
    """The occurrence at an instant, with the decision on whether and when it runs, and why."""
    said = schedule.recurrence.note(nominal)
    key = schedule.spec.clock.zone.text_at(nominal)
    occurrence = Occurrence(nominal, nominal, nominal, key, note=said)
    if nominal in schedule.stopped:
        return replace(occurrence, runs=False, note=_joined(said, STOPPED))
    spec = schedule.spec
    if spec.changed_occurrences and (changed := _changed(schedule, occurrence)) is not None:
        return changed
    if spec.excluded_dates and parse_excluded_dates(spec.excluded_dates).covers(nominal, spec.clock.zone):
        return replace(occurrence, runs=False, note=_joined(said, EXCLUDED))
    if schedule.calendars:
        occurrence = _by_calendars(schedule, occurrence)
    if not occurrence.runs or not spec.is_delayed:
        return occurrence
    return replace(occurrence, due_at=occurrence.at + _delay(schedule, occurrence))


def withheld(schedule: Schedule, after: Millis, until: Millis) -> Sequence[Occurrence]:
    """The occurrences in (after, until] that their user stopped, skipped or moved to another time."""
    changes = schedule.spec.changed_occurrences
    instants = schedule.stopped | {each.nominal for each in changes if moved_to(changes, each.nominal) is None}
    within = sorted(each for each in instants if after < each <= until)
    return [judged(schedule, each) for each in within if next_nominal(schedule, each - 1) == each]


def _by_calendars(schedule: Schedule, occurrence: Occurrence) -> Occurrence:
    """The occurrence after its schedule's calendars have excluded or moved it, without spread and jitter."""
    nominal = occurrence.nominal
    if (span := covering(schedule.calendars, nominal)) is not None:
        occurrence = _excluded(schedule, occurrence, span)
    if (unknown := next((each for each in schedule.calendars if each.is_unknown_at(nominal)), None)) is not None:
        occurrence = replace(occurrence, note=_joined(occurrence.note, unknown.end_in_words))
    return replace(occurrence, due_at=occurrence.at)


def is_in_gap(schedule: Schedule, occurrence: Occurrence) -> bool:
    """Whether the clock skipped the local time of an occurrence, so that no instant has the occurrence's key."""
    return occurrence.key != schedule.spec.clock.zone.text_at(occurrence.nominal)


def unmoved_due_at(schedule: Schedule, occurrence: Occurrence) -> Millis:
    """The due time that an occurrence has without calendars, because calendars can be replaced at any time."""
    if moved_to(schedule.spec.changed_occurrences, occurrence.nominal) is not None or schedule.spec.on_excluded.step:
        return occurrence.nominal
    if occurrence.runs and occurrence.at == occurrence.nominal:
        return occurrence.due_at
    if not schedule.spec.is_delayed:
        return occurrence.nominal
    return occurrence.nominal + _delay(schedule, replace(occurrence, at=occurrence.nominal))


def _changed(schedule: Schedule, occurrence: Occurrence) -> Occurrence | None:
    """The effect of a user's change at an instant.

    An occurrence that was moved to this instant runs exactly then, regardless of calendars.
    """
    zone, changes = schedule.spec.clock.zone, schedule.spec.changed_occurrences
    if (moved := moved_to(changes, occurrence.nominal)) is not None:
        return replace(occurrence, note=f"moved here from {zone.text_at(moved.nominal)} by a user")
    if (change := changed_of(changes, occurrence.nominal)) is None:
        return None
    what = "skipped" if change.at is None else f"moved to {zone.text_at(change.at)}"
    return replace(occurrence, runs=False, note=_joined(occurrence.note, f"{what} by a user"))


def _excluded(schedule: Schedule, occurrence: Occurrence, span: Span) -> Occurrence:
    def skipped(why: str) -> Occurrence:
        return replace(occurrence, runs=False, note=_joined(occurrence.note, f"{span.reason}: skipped{why}"))

    if schedule.spec.on_excluded is OnExcluded.SKIP:
        return skipped("")
    if schedule.spec.on_excluded.step:
        return skipped(f" because no day within {MAX_ROLL_DAYS} days has that time free")
    moment = next_working_moment(schedule.calendars, span.end, schedule.searched)
    if moment is None:
        return skipped(" because there is no working moment in two years")
    if schedule.spec.end_at is not None and moment > schedule.spec.end_at:
        return skipped(" because the next working moment is after the schedule's end")
    text = schedule.spec.clock.zone.text_at(moment)
    if _is_replaced(schedule, occurrence.nominal, moment):
        return skipped(f" because a later occurrence runs by the next working moment, {text}")
    return replace(occurrence, at=moment, note=_joined(occurrence.note, f"{span.reason}: moved to {text}"))


def _is_replaced(schedule: Schedule, nominal: Millis, until: Millis) -> bool:
    """Whether an occurrence in (nominal, until] is neither in `excluded_dates` nor skipped or moved by its user."""
    spec, recurrence = schedule.spec, schedule.recurrence
    excluded, changes = parse_excluded_dates(spec.excluded_dates), spec.changed_occurrences
    later = recurrence.after(nominal)
    while later is not None and later <= until:
        if moved_to(changes, later) is not None:
            return True
        if changed_of(changes, later) is not None:
            later = recurrence.after(later)
        elif (span := excluded.span_around(later, spec.clock.zone)) is not None:
            later = recurrence.after(span.end - 1)
        else:
            return True
    return False


def _delay(schedule: Schedule, occurrence: Occurrence) -> Millis:
    """The occurrence's spread and jitter, limited by the next occurrence and by the schedule's end."""
    spread, jitter = schedule.spec.spread_seconds * SECOND, schedule.spec.jitter_seconds * SECOND
    room = spread + jitter
    later = schedule.recurrence.after(occurrence.at)
    if later is not None:
        room = min(room, later - occurrence.at - 1)
    if schedule.spec.end_at is not None:
        room = min(room, schedule.spec.end_at - occurrence.at)
    # If the next occurrence is sooner, the delays are scaled down, because truncation would make many schedules due at
    # the same time.
    offset = spread_offset(schedule.spec.name, schedule.spec.spread_seconds) * min(spread, room) // max(1, spread)
    if not jitter:
        return offset
    revision = revision_of(occurrence.nominal, schedule.revision, schedule.revision_ends)
    return offset + derived(schedule.id, revision, occurrence.key).delay % (min(jitter, room - offset) + 1)


def _forward(schedule: Schedule, after: Millis, until: Millis) -> Iterator[Occurrence]:
    recurrence, remaining = schedule.recurrence, schedule.remaining_runs
    at, last = _bounds(schedule, after, until)
    while at < last and remaining != 0:
        found = recurrence.after(at)
        end = last if found is None or found > last else found
        said = ""
        for lost in recurrence.lost(at, end):
            if lost.at == found:
                said = lost.note
            else:
                yield _of(lost)
        if found is None or found > last:
            return
        occurrence = judged(schedule, found)
        if remaining is not None:
            remaining -= occurrence.runs
        yield replace(occurrence, note=_joined(said, occurrence.note)) if said else occurrence
        at = found


def _backward(schedule: Schedule, before: Millis) -> Iterator[Occurrence]:
    recurrence = schedule.recurrence
    first, last = _bounds(schedule, -1, before - 1)
    while first < last:
        found = recurrence.before(last + 1)
        here = None if found is None or found <= first else found
        said = ""
        for lost in reversed(recurrence.lost(first if here is None else here - 1, last)):
            if lost.at == here:
                said = lost.note
            else:
                yield _of(lost)
        if here is None:
            return
        occurrence = judged(schedule, here)
        yield replace(occurrence, note=_joined(said, occurrence.note)) if said else occurrence
        last = here - 1


def _of(lost: Lost) -> Occurrence:
    return Occurrence(lost.at, lost.at, lost.at, lost.key, runs=False, note=lost.note)


def _bounds(schedule: Schedule, after: Millis, until: Millis) -> tuple[Millis, Millis]:
    """The part of (after, until] between the schedule's start and end."""
    start = -1 if schedule.spec.start_at is None else schedule.spec.start_at - 1
    end = LAST_WALL if schedule.spec.end_at is None else schedule.spec.end_at
    return max(after, start, -1), min(until, end, LAST_WALL)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
