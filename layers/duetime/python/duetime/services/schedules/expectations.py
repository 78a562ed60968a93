"""Looking into what schedules are expected to achieve, when a deadline has passed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import EXPECTATION_READS
from duetime.domain.schedules.expectations import OLDEST_WINDOWS, after_window, begun, next_window, succeeded_at
from duetime.domain.schedules.occurrences import preceding
from duetime.domain.times import DAY, MINUTE, to_iso

if TYPE_CHECKING:
    from duetime.domain.schedules.expectations import Window
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.times import Millis
    from duetime.ports.tasks import TaskStore

_BATCH = 100
"""Records that are read at once."""
_MOST_WINDOWS = 4
"""Windows that are looked into in one expansion; the next one goes on."""


def checked(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, now: Millis
) -> tuple[StoredSchedule, Millis | None]:
    """A schedule whose deadlines up to now were looked into, and its next one.

    Raises:
        Unavailable: the store did not answer.
    """
    state = begun(stored.expectation, stored.updated_at)
    for _ in range(_MOST_WINDOWS):
        window = next_window(stored.spec, state, now - OLDEST_WINDOWS)
        if window is None or window.deadline > now:
            break
        succeeded, is_planned = _looked_into(tasks, stored, schedule, window)
        after = after_window(state, window, succeeded, is_planned=is_planned)
        if after.misses > state.misses:
            deadline = to_iso(window.deadline)
            stored = stored.remarked(now, "", f"no run had succeeded by {deadline}, which was expected")
        state = after
    window = next_window(stored.spec, state, now - OLDEST_WINDOWS)
    if window is None:
        return stored, None
    return replace(stored, expectation=state), window.deadline


def check_time(deadline: Millis, look_ahead: Millis) -> Millis:
    """When a timer must be set so that the trigger, which reads ahead, meets it after a deadline."""
    return deadline + look_ahead + MINUTE


def _looked_into(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, window: Window
) -> tuple[Millis | None, bool]:
    """The latest success in a window, and whether anything was planned in it: the latest occurrences come first."""
    # What began before a period, or was caught up in it, may have ended in it.
    first = window.since - DAY if window.is_period else window.since
    found = takewhile(lambda each: each.nominal > first, preceding(schedule, window.deadline + 1, EXPECTATION_READS))
    runs = iter([each for each in found if each.runs])
    is_planned = False
    while batch := list(islice(runs, _BATCH)):
        is_planned = True
        records = tasks.read_many([stored.id_of(each) for each in batch], consistent=True)
        if (succeeded := succeeded_at(records.values(), window)) is not None:
            return succeeded, True
    return None, is_planned
