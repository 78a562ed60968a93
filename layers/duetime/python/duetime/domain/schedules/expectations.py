"""Decides whether a schedule's expectations were met. Decisions are returned as values.

A run counts at the end of its task's last attempt, if the attempt succeeded, or when it was approved. Runs are read
after each deadline, and for a frequent schedule also after every `EXPECTATION_READS / 2` instants, so that every
success since the last deadline is found, regardless of how many runs failed afterward. When a schedule is changed,
paused or resumed, its windows start again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.schedules.run_history import ExpectationState
from duetime.domain.schedules.time_zones import day_of, wall_of
from duetime.domain.tasks.states import State
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.tasks.task import Task

OLDEST_WINDOWS = 2 * DAY
"""After an outage, deadlines that are older than this are skipped, because they are no longer relevant."""
MAX_OPEN_RUNS = 20
"""Maximum number of open runs that are read again at the next check. If there are more open runs, only the latest of
them are read."""


@frozen
class Window:
    """A period in which a success is expected.

    Attributes:
        since: successes after this instant count.
        deadline: successes up to this instant count.
        is_period: whether the window results from `expect_every_seconds` and not from `expect_success_by`.
    """

    since: Millis
    deadline: Millis
    is_period: bool


def begun(state: ExpectationState | None, updated_at: Millis, created_at: Millis) -> ExpectationState:
    """The state when checking starts, or after the schedule was changed, paused or resumed at `updated_at`."""
    if state is None:
        # A run that started before the schedule was changed can end after the change.
        return ExpectationState(updated_at, updated_at, looked_at=max(updated_at - DAY, created_at - 1))
    return replace(state, by_since=max(state.by_since, updated_at), every_since=max(state.every_since, updated_at))


def next_window(spec: ScheduleSpec, state: ExpectationState, oldest: Millis) -> Window | None:
    """The window with the earliest deadline; `None` if nothing is expected.

    Args:
        spec: spec of the schedule.
        state: progress of the checks.
        oldest: earlier deadlines are skipped.
    """
    windows = []
    if spec.expect_success_by is not None:
        zone, by, since = spec.clock.zone, spec.expect_success_by, state.by_since
        deadline = _next_time(zone, by, since)
        if deadline < oldest:
            deadline = _next_time(zone, by, oldest - 2 * DAY)
        while deadline < oldest:
            since, deadline = deadline, _next_time(zone, by, deadline)
        windows.append(Window(since, deadline, is_period=False))
    if spec.expect_every_seconds is not None:
        length = spec.expect_every_seconds * SECOND
        passed_over = max(0, oldest - state.every_since) // length
        # A deadline that has not passed must not move, however long its period is.
        since = state.every_since + passed_over * length
        windows.append(Window(since, since + length, is_period=True))
    return min(windows, key=lambda window: window.deadline, default=None)


def ends_of_successes(tasks: Iterable[Task]) -> Sequence[Millis]:
    """The times at which the successful runs ended, or were approved."""
    return [task.outcome_at for task in tasks if task.state is State.SUCCEEDED and not task.erased]


def succeeded_in(ends: Iterable[Millis], window: Window) -> Millis | None:
    """The latest success within a window."""
    return max((end for end in ends if window.since < end <= window.deadline), default=None)


def with_runs(state: ExpectationState, tasks: Sequence[Task], now: Millis) -> ExpectationState:
    """The state after all runs since the last read, and the runs that were open at the last read, have been read."""
    ends = ends_of_successes(tasks)
    latest = max([*ends, *([] if state.succeeded_at is None else [state.succeeded_at])], default=None)
    still_open = sorted(task.id for task in tasks if not task.is_terminal)
    return replace(state, looked_at=now, succeeded_at=latest, open_runs=tuple(still_open[-MAX_OPEN_RUNS:]))


def after_window(
    state: ExpectationState, window: Window, succeeded: Millis | None, *, is_planned: bool
) -> ExpectationState:
    """The state after a window has passed.

    Args:
        state: the state before.
        window: the window that has passed.
        succeeded: the latest success in the window.
        is_planned: whether the window had an occurrence; without an occurrence, `expect_success_by` expects no success.
    """
    if window.is_period:
        after = replace(state, every_since=succeeded or window.deadline)
    else:
        after = replace(state, by_since=window.deadline)
    if succeeded is not None:
        return replace(after, met_at=max(succeeded, state.met_at or 0))
    if not window.is_period and not is_planned:
        return after
    return replace(after, missed_at=window.deadline, misses=state.misses + 1)


def minutes_of(text: str) -> int:
    """Parses a time of day such as `06:00`, as minutes since midnight.

    Raises:
        ValueError: the string is not a time of day.
    """
    hours, colon, minutes = text.partition(":")
    is_written = colon and len(hours) == len(minutes) == 2 and (hours + minutes).isdecimal() and text.isascii()  # noqa: PLR2004 - digits
    if not is_written or int(hours) >= DAY // HOUR or int(minutes) >= HOUR // MINUTE:
        raise ValueError("should be a time of day such as 06:00")
    return int(hours) * (HOUR // MINUTE) + int(minutes)


def _next_time(zone: Zone, time_of_day: str, after: Millis) -> Millis:
    """The next instant at which a clock shows or skips a time of day.

    If the clock repeats the time, the second time counts.
    """
    day = day_of(zone.wall_at(after))
    while True:
        wall = wall_of(day, minutes_of(time_of_day) * MINUTE)
        at = max(zone.instants_of(wall), default=None) or zone.instant_after_gap(wall)
        if at > after:
            return at
        day = type(day).fromordinal(day.toordinal() + 1)
