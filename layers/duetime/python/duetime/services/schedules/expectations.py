"""Looking into what schedules are expected to achieve, when a deadline has passed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import EXPECTATION_READS
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
from duetime.domain.times import DAY, MINUTE, to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.expectations import Window
    from duetime.domain.schedules.run_history import ExpectationState
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.tasks import TaskStore

_BATCH = 100
"""Records that are read at once."""


def checked(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, now: Millis
) -> tuple[StoredSchedule, Millis | None]:
    """A schedule whose deadlines up to now were looked into, and its next one.

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
                stored = stored.remarked(now, "", f"no run had succeeded by {deadline}, which was expected")
            state = after
            window = next_window(stored.spec, state, oldest)
    return replace(stored, expectation=state), window.deadline if window is not None else None


def check_time(deadline: Millis, look_ahead: Millis) -> Millis:
    """When a timer must be set so that the trigger, which reads ahead, meets it after a deadline."""
    return deadline + look_ahead + MINUTE


def _runs_read(
    tasks: TaskStore, stored: StoredSchedule, schedule: Schedule, state: ExpectationState, window: Window, now: Millis
) -> Sequence[Task]:
    """The runs since the last look, the latest if there are too many, and those that had not ended then.

    At a deadline also those before: what had failed may have been tried again by its user.
    """
    first = state.looked_at
    if window.deadline <= now:
        # What began before a period, or was caught up in it, may have ended in it.
        first = min(first, window.since - DAY if window.is_period else window.since)
    found = takewhile(lambda each: each.nominal > first, preceding(schedule, now + 1, EXPECTATION_READS))
    ids = iter(dict.fromkeys([*state.open_runs, *(stored.id_of(each) for each in found if each.runs)]))
    runs: list[Task] = []
    while batch := list(islice(ids, _BATCH)):
        runs += tasks.read_many(batch, consistent=True).values()
    return runs


def _is_planned(schedule: Schedule, window: Window) -> bool:
    """Whether an occurrence was to run in a window."""
    found = takewhile(
        lambda each: each.nominal > window.since, preceding(schedule, window.deadline + 1, EXPECTATION_READS)
    )
    return any(each.runs for each in found)
