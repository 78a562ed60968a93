"""What a schedule is expected to achieve, and whether it has: decisions as values.

A run counts by the end of its task's last attempt, if that succeeded. What an expectation asks for is looked for once,
when its deadline has passed; a change, a pause and a resumption of the schedule begin its windows anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.schedules.run_history import ExpectationState
from duetime.domain.schedules.wall_times import day_of, wall_of
from duetime.domain.tasks.states import State
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.tasks.task import Task

OLDEST_WINDOWS = 2 * DAY
"""After a longer outage, deadlines that are older than this are passed over: they say nothing of today."""


@dataclass(frozen=True, slots=True)
class Window:
    """A period in which a success is expected.

    Attributes:
        since: a success counts after it.
        deadline: and until then.
        is_period: whether it is one of `expect_every_seconds`, and not the time before an `expect_success_by`.
    """

    since: Millis
    deadline: Millis
    is_period: bool


def begun(state: ExpectationState | None, updated_at: Millis) -> ExpectationState:
    """The state of a schedule that was last changed, paused or resumed at that time."""
    if state is None:
        return ExpectationState(updated_at, updated_at)
    return replace(state, by_since=max(state.by_since, updated_at), every_since=max(state.every_since, updated_at))


def next_window(spec: ScheduleSpec, state: ExpectationState, oldest: Millis) -> Window | None:
    """The window whose deadline comes first; `None` if nothing is expected.

    Args:
        spec: of the schedule.
        state: how far it was looked into.
        oldest: deadlines before it are passed over.
    """
    windows = []
    if spec.expect_success_by is not None:
        since = max(state.by_since, oldest)
        windows.append(Window(since, _next_time(spec.clock.zone, spec.expect_success_by, since), is_period=False))
    if spec.expect_every_seconds is not None:
        since = max(state.every_since, oldest)
        windows.append(Window(since, since + spec.expect_every_seconds * SECOND, is_period=True))
    return min(windows, key=lambda window: window.deadline, default=None)


def succeeded_at(tasks: Iterable[Task], window: Window) -> Millis | None:
    """When the latest success in a window ended."""
    ends = [
        line.started_at + line.took
        for task in tasks
        if task.state is State.SUCCEEDED and task.attempt_history
        for line in task.attempt_history[-1:]
    ]
    return max((end for end in ends if window.since < end <= window.deadline), default=None)


def after_window(
    state: ExpectationState, window: Window, succeeded: Millis | None, *, is_planned: bool
) -> ExpectationState:
    """The state once a window has passed.

    Args:
        state: before.
        window: the one that has passed.
        succeeded: the latest success in it.
        is_planned: whether the schedule had an occurrence in it: a time of day without one expects nothing.
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
    """The minutes since midnight of a time of day, `06:00`.

    Raises:
        ValueError: it is none.
    """
    hours, colon, minutes = text.partition(":")
    is_written = colon and len(hours) == len(minutes) == 2 and (hours + minutes).isdecimal() and text.isascii()  # noqa: PLR2004 - digits
    if not is_written or int(hours) >= DAY // HOUR or int(minutes) >= HOUR // MINUTE:
        raise ValueError("should be a time of day such as 06:00")
    return int(hours) * (HOUR // MINUTE) + int(minutes)


def _next_time(zone: Zone, time_of_day: str, after: Millis) -> Millis:
    """The next instant at which a clock shows a time of day for the last time, or has jumped over it."""
    day = day_of(zone.wall_at(after))
    while True:
        wall = wall_of(day, minutes_of(time_of_day) * MINUTE)
        at = max(zone.instants_of(wall), default=None) or zone.instant_after_gap(wall)
        if at > after:
            return at
        day = type(day).fromordinal(day.toordinal() + 1)
