"""Rates limit how often attempts of tasks with the same key may start. Decisions are returned as values.

Starts are counted by the generic cell rate algorithm (GCRA; Source: ITU-T Recommendation I.371, annex A). The count is
one number: the time of the next start if all starts were evenly spaced. A start may be earlier than that time by as
many intervals as the burst allows. In addition, each priority has a line, stored as the time of its last place. A task
that cannot start takes the next place, and is checked again at that time; only the count decides whether the task may
start.

Each start and each place of a higher priority shifts the lines of lower priorities. So that places need not be
rewritten, they are stored as times on the line's own clock, which stops while higher priorities are served and lags
behind real time by `displaced`.

The count is stored with its interval. If the rate is raised, the first request with a shorter interval converts the
count: the same number of starts stays counted, each for the shorter interval, so no window of the new rate exceeds the
new limit. The lines are reset, because their places are spaced by the old interval; a task whose place is beyond the
end of its line takes a new place. While tasks name different rates, all of them start as often as the fastest rate in
use allows. A start at a slower rate converts the count back, so that it does not delay starts at a faster rate.

Owners pause and pin rates (`RateControl`): each part stores a copy of the owner's settings, with a number that grows
with each action. The first part decides which of several concurrent actions wins; the other parts copy the action with
the greatest number. A start or place is taken only if the number is unchanged, so pausing and pinning need no separate
read.

All times here are in microseconds, because a millisecond is a quarter of an interval at 250 starts a second.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING
from zlib import crc32

from duetime.domain.limits import MAX_RATE_LIMIT
from duetime.domain.operating_parameters import (
    MAX_CLOCK_DIFFERENCE,
    MAX_STARTS_PER_RATE_PART,
    RATE_HOLD,
    RATE_LATE_COMER,
    RATE_SLACK,
)
from duetime.domain.tasks.task_options import Priority, Rate
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis

MICROS = 1_000
"""Microseconds per millisecond."""
STARTS = "starts"
"""Field that counts starts, as the time of the next start if all starts were evenly spaced."""
INTERVAL = "interval"
"""Field for the interval at which starts are counted, which is the interval of the fastest rate in use."""
_PRIORITIES = tuple(Priority)
LINES = tuple(f"line_{priority}" for priority in _PRIORITIES)
"""Fields for the end of each priority's line, highest priority first; no line ends before a higher priority's line."""
DISPLACED = tuple(f"displaced_{priority}" for priority in _PRIORITIES)
"""Fields for how far each line has been shifted by higher priorities."""
ASKED = ("asked_limit", "asked_seconds", "asked_burst")
"""Fields for the rate that the latest task requested."""
CONTROL = "control"
"""Field for the number of the owner's latest action, the same in all parts; 0 if there was no action."""
PAUSED = "paused"
"""Field for the time at which the owner paused the rate, in milliseconds; 0 if the rate is not paused."""
PINNED = ("pinned_limit", "pinned_seconds", "pinned_burst")
"""Fields for the rate that the owner has set to replace the tasks' rates; 0 if not set."""
FIELDS = (STARTS, INTERVAL, *LINES, *DISPLACED[1:], *ASKED, CONTROL, PAUSED, *PINNED)
"""All stored fields of a part; an absent field means 0, which is a time in the distant past."""
_HOLD = RATE_HOLD * MICROS
_SLACK_SHARE = 20
"""The slack is at most the rate's window divided by this number."""
MOST_PARTS = -(-MAX_RATE_LIMIT // MAX_STARTS_PER_RATE_PART)
"""Number of parts of the fastest rate. An action is written to all parts, because tasks may use any part next."""


@frozen
class RateName:
    """Name of a rate's part; keys are unique per owner. A rate that is too fast for one item has several parts."""

    owner: str
    key: str
    part: int = 0


@frozen
class Pace:
    """How fast attempts may start under one part of a rate.

    No window of `per_seconds` has more starts than the part's limit plus burst: the counted times of starts are at
    least `interval` apart, each attempt starts at most `burst` intervals before and at most `slack` after its counted
    time, and there are as many intervals in the window plus the slack as the limit allows starts.

    Attributes:
        interval: time between evenly spaced starts, in microseconds.
        burst: additional starts allowed at once.
        slack: how long after its counted time an attempt may start, in microseconds.
    """

    interval: int
    burst: int
    slack: int

    @property
    def lead(self) -> int:
        """How far the count may be ahead of the current time when an attempt starts, in microseconds."""
        return self.burst * self.interval


def parts_of(rate: Rate) -> int:
    """Number of parts of a rate, each stored as one item, so that no item exceeds its maximum write rate."""
    return max(1, -(-rate.limit // (rate.per_seconds * MAX_STARTS_PER_RATE_PART)))


def part_of(rate: Rate, owner: str, task_id: TaskId) -> tuple[RateName, Pace]:
    """The part of a rate that a task uses for all its starts, and the part's pace."""
    parts = parts_of(rate)
    part = crc32(task_id.text.encode()) % parts
    return RateName(owner, rate.key, part), pace_of(rate, part)


def pace_of(rate: Rate, part: int) -> Pace:
    """The pace of one part. The limits and bursts of all parts add up to the limit and burst of the rate."""
    parts = parts_of(rate)
    limit, burst = ((whole + parts - 1 - part) // parts for whole in (rate.limit, rate.burst))
    window = rate.per_seconds * 1_000 * MICROS
    slack = min(window // _SLACK_SHARE, RATE_SLACK * MICROS)
    return Pace(-(-(window + slack) // limit), burst, slack)


@frozen
class RateState:
    """The stored state of one part of a rate."""

    values: Mapping[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        """The value of a stored field; 0 if the field is absent."""
        return self.values.get(name, 0)

    @property
    def is_paused(self) -> bool:
        """Whether no attempt may start."""
        return bool(self.of(PAUSED))

    @property
    def is_controlled(self) -> bool:
        """Whether the owner has paused or pinned the rate, which must therefore not expire."""
        return self.is_paused or bool(self.of(PINNED[0]))

    def pin(self, key: str) -> Rate | None:
        """The rate that its owner has set; `None` if each task's own rate applies."""
        return self._rate(key, PINNED)

    def asked(self, key: str) -> Rate | None:
        """The rate that the latest task requested; `None` if no task has requested a rate."""
        return self._rate(key, ASKED)

    def _rate(self, key: str, fields: tuple[str, str, str]) -> Rate | None:
        limit, per_seconds, burst = map(self.of, fields)
        return Rate(key, limit, per_seconds, burst) if limit else None


@frozen
class RateUpdate:
    """One conditional write, with fields to set, fields to add to, and conditions.

    Attributes:
        at_most: upper bounds of fields; absent fields are below any bound.
        needed_until: the item can be removed some time after this time.
        is_listed: whether the write adds the rate to its owner's list.
    """

    sets: Mapping[str, int]
    adds: Mapping[str, int]
    at_least: Mapping[str, int]
    at_most: Mapping[str, int]
    needed_until: Millis
    is_listed: bool = False

    def asked_for(self, rate: Rate, *, is_listed: bool) -> RateUpdate:
        """The update, which also stores the rate that the task requested."""
        asked = dict(zip(ASKED, (rate.limit, rate.per_seconds, rate.burst), strict=True))
        return replace(self, sets={**self.sets, **asked}, is_listed=is_listed)

    def under(self, state: RateState) -> RateUpdate:
        """The update, on the condition that the owner has not acted since the state was read."""
        control = state.of(CONTROL)
        at_least = {**self.at_least, CONTROL: control} if control else self.at_least
        return replace(self, at_least=at_least, at_most={**self.at_most, CONTROL: control})


@frozen
class Start:
    """The attempt may start if this update succeeds, which grants the start unless the state has changed."""

    update: RateUpdate


@frozen
class Convert:
    """The part's count is for a slower rate.

    This update converts the count to the current rate, unless the state has changed.
    """

    update: RateUpdate


@frozen
class Join:
    """The attempt must wait. This update takes the next place in line, unless the state has changed."""

    update: RateUpdate


@frozen
class Wait:
    """The attempt has a place in line, and must wait until this time, in milliseconds."""

    until: Millis


@frozen
class StartRequest:
    """An attempt's request to start.

    Attributes:
        at: the time of the start, in microseconds.
        place: the task's place in the line, as a time on the line's own clock; `None` if the task has no place.
    """

    pace: Pace
    priority: Priority
    at: int
    place: int | None = None

    @property
    def _rank(self) -> int:
        return _PRIORITIES.index(self.priority)

    def next_step(self, state: RateState, *, is_fresh: bool) -> Start | Convert | Join | Wait:
        """Decides the next step from the state.

        Args:
            state: the known state of the part.
            is_fresh: whether the state was read for this request; if the state is older, only tasks that have a place
                may try to start.
        """
        if state.of(INTERVAL) > self.pace.interval:
            return self._convert(state)
        if self.place is not None and not is_fresh:
            return self._start(state, is_in_step=True)
        rank, slot, interval = self._rank, self._slot(state), self._interval(state)
        if self.place is None:
            has_line = any(state.of(line) > self.at + interval for line in LINES[: rank + 1])
            return self._start(state) if slot <= self.at + _HOLD and not has_line else self.join(state)
        own = self.place + state.of(DISPLACED[rank])
        if own > self.at + _HOLD:
            if own < state.of(LINES[rank]):
                return Wait(_millis(own))
            # A place beyond the end of the line is invalid, because the line has been reset.
            return replace(self, place=None).next_step(state, is_fresh=True)
        if slot <= self.at + _HOLD:
            return self._start(state)
        is_late = self.at - own > RATE_LATE_COMER * MICROS + 2 * interval
        return self.join(state) if is_late else Wait(_millis(slot))

    def granted(self, after: RateState) -> tuple[int, int]:
        """The earliest and latest start of the attempt, in microseconds, given the state after its `Start`."""
        counted = after.of(STARTS) - self.pace.interval
        return counted - self.pace.lead, counted + self.pace.slack

    def joined(self, after: RateState) -> tuple[Millis, int]:
        """The time of the attempt's turn, in milliseconds, and its place, given the state after its `Join`."""
        turn = after.of(LINES[self._rank]) - self._interval(after)
        return _millis(turn), turn - after.of(DISPLACED[self._rank])

    def converted(self, state: RateState) -> RateState:
        """The state converted to the current rate, as if by the first request after a rate change."""
        if state.of(INTERVAL) <= self.pace.interval:
            return state
        return RateState({**state.values, **self._convert(state).update.sets})

    def turn(self, state: RateState) -> int:
        """When a task without a place could start, in microseconds: now, or after all tasks ahead in line."""
        ahead = [state.of(line) for line in LINES[: self._rank + 1]]
        return max(self._slot(state), *(end for end in ahead if end > self.at + self._interval(state)), 0)

    def line_length(self, state: RateState) -> int:
        """Number of places, over all priorities, whose time has not come yet."""
        last = max(state.of(line) for line in LINES)
        return max(0, -(-(last - self._slot(state)) // self._interval(state))) if last > self.at else 0

    def given_back(self, before: RateState, after: RateState) -> RateUpdate:
        """The update that undoes an unused `Start`, if no other start has followed.

        Args:
            before: the state on which the decision to start was based.
            after: the state after the start.
        """
        counted, interval = after.of(STARTS), self._interval(before)
        adds = {name: -shift for name, shift in self._shifts(interval).items()}
        needed = self._needed(after, counted)
        if interval < self.pace.interval:
            sets = {STARTS: before.of(STARTS), INTERVAL: interval}
            return RateUpdate(sets, adds, {STARTS: counted}, {STARTS: counted}, needed)
        return RateUpdate({}, {STARTS: -interval, **adds}, {STARTS: counted}, {STARTS: counted}, needed)

    def _interval(self, state: RateState) -> int:
        """The interval of the fastest rate in use."""
        return min(self.pace.interval, state.of(INTERVAL) or self.pace.interval)

    def _shifts(self, interval: int) -> dict[str, int]:
        """How far a start shifts the lines of lower priorities; empty for a task whose place already shifted them."""
        if self.place is not None:
            return {}
        below = self._rank + 1
        return dict.fromkeys((*LINES[below:], *DISPLACED[below:]), interval)

    def _convert(self, state: RateState) -> Convert:
        counted, interval = state.of(STARTS), state.of(INTERVAL)
        # No start happened before its counted time. The latest possible time by any clock is used, so that every start
        # is included.
        now = min(counted - interval, self.at + MAX_CLOCK_DIFFERENCE * MICROS)
        starts = now - (-(counted - now) * self.pace.interval // interval)
        sets = {STARTS: starts, INTERVAL: self.pace.interval, **dict.fromkeys(LINES, 0)}
        same = {STARTS: counted, INTERVAL: interval}
        return Convert(RateUpdate(sets, {}, same, same, self._needed(state, counted)))

    def _slot(self, state: RateState) -> int:
        """The time of the next possible start."""
        return max(self.at, state.of(STARTS) - self.pace.burst * self._interval(state))

    def _start(self, state: RateState, *, is_in_step: bool = False) -> Start:
        """Counts a start from the previous start's counted time, or from now if that time is too far in the past."""
        interval = self.pace.interval
        if self._interval(state) < interval:
            return self._slower_start(state)
        at_most = self._bounds(interval) | {INTERVAL: interval}
        shifts = self._shifts(interval)
        latest = self.at + _HOLD + self.pace.lead
        needed = self._needed(state, latest + interval)
        # Half of the slack absorbs slightly late starts, so that they do not delay the next starts.
        in_step = self.at - self.pace.slack // 2
        if is_in_step or state.of(STARTS) >= in_step:
            adds = {STARTS: interval, **shifts}
            at_least = {STARTS: in_step, INTERVAL: interval}
            return Start(RateUpdate({}, adds, at_least, {**at_most, STARTS: latest}, needed))
        sets = {STARTS: self.at + interval, INTERVAL: interval}
        return Start(RateUpdate(sets, shifts, {}, {**at_most, STARTS: self.at}, needed))

    def _slower_start(self, state: RateState) -> Start:
        """Counts a start at a slower rate than the count's rate, after converting the count.

        The next request at the faster rate converts the count back. This start then counts like a start at the faster
        rate.
        """
        counted, faster, interval = state.of(STARTS), self._interval(state), self.pace.interval
        begins = self._slot(state)
        starts = begins - (-max(0, counted - begins) * interval // faster)
        same = {STARTS: counted, INTERVAL: faster}
        sets = {STARTS: starts + interval, INTERVAL: interval}
        needed = self._needed(state, starts + interval)
        return Start(RateUpdate(sets, self._shifts(faster), same, {**self._bounds(faster), **same}, needed))

    def _bounds(self, interval: int) -> dict[str, int]:
        """Conditions that fail if another task has started or joined the line ahead of this task in the meantime."""
        if self.place is None:
            return {LINES[self._rank]: self.at + interval}
        return {DISPLACED[self._rank]: self.at + _HOLD - self.place} if self._rank else {}

    def join(self, state: RateState) -> Join:
        """Takes the next place in the line; the place is never before the time of the request."""
        rank, interval = self._rank, self._interval(state)
        begins = max(self._slot(state), *(state.of(line) for line in LINES[:rank]), 0)
        sets: dict[str, int] = {}
        adds = dict.fromkeys(DISPLACED[rank + 1 :], interval)
        for line in LINES[rank:]:
            if state.of(line) > begins:
                adds[line] = interval
            else:
                sets[line] = begins + interval
        own = LINES[rank]
        has_line = own in adds
        needed = max(state.of(STARTS), begins, state.of(own)) + interval
        counted_by = state.of(INTERVAL)
        # The count is not written, but must not expire. The conditions also compare the interval, because the place's
        # time depends on the rate.
        at_most = {STARTS: needed, INTERVAL: counted_by} | ({} if has_line else {own: begins})
        at_least = ({INTERVAL: counted_by} if counted_by else {}) | ({own: begins} if has_line else {})
        return Join(RateUpdate(sets, adds, at_least, at_most, self._needed(state, needed)))

    def _needed(self, state: RateState, until: int) -> Millis:
        return _millis(max(until, *(state.of(line) for line in LINES)))


def _millis(micros: int) -> Millis:
    return -(-micros // MICROS)


def parts(owner: str, key: str) -> Sequence[RateName]:
    """The names of all parts that a rate may have, in order."""
    return [RateName(owner, key, part) for part in range(MOST_PARTS)]


@frozen
class RateControl:
    """An owner's settings for a rate.

    Attributes:
        number: the number of the action that set these values.
        paused_at: when the rate was paused; `None` if it is not paused.
        pin: the rate that replaces the tasks' rates; `None` if not pinned.
        resets: whether this action also resets both the count of starts and the waiting lines.
    """

    number: int = 0
    paused_at: Millis | None = None
    pin: Rate | None = None
    resets: bool = False

    @classmethod
    def of(cls, key: str, state: RateState) -> RateControl:
        """Returns the settings that are stored in a part."""
        return cls(state.of(CONTROL), state.of(PAUSED) or None, state.pin(key))

    @property
    def is_set(self) -> bool:
        """Whether the parts must be kept, because the rate is paused or pinned."""
        return self.paused_at is not None or self.pin is not None

    def paused(self, now: Millis) -> RateControl:
        """The settings with the rate paused; if it was already paused, the earlier pause time is kept."""
        return replace(self, paused_at=self.paused_at or now)

    def numbered(self, at: int) -> RateControl:
        """The settings with the number of a new action at the given time, in microseconds."""
        return replace(self, number=max(at, self.number + 1))

    def update(self, state: RateState, at_least: int, at_most: int) -> RateUpdate:
        """The write of this action to a part.

        Args:
            state: state of the part as read.
            at_least: lower bound of the previous action's number.
            at_most: upper bound of that number.
        """
        pin = (self.pin.limit, self.pin.per_seconds, self.pin.burst) if self.pin else (0, 0, 0)
        sets = {CONTROL: self.number, PAUSED: self.paused_at or 0, **dict(zip(PINNED, pin, strict=True))}
        if self.resets:
            sets |= dict.fromkeys((STARTS, *LINES), 0)
        required = {CONTROL: at_least} if at_least else {}
        needed_until = -(-max(state.of(name) for name in (STARTS, *LINES)) // MICROS)
        return RateUpdate(sets, {}, required, {CONTROL: at_most}, needed_until, is_listed=True)


@frozen
class RateStatus:
    """The current state of a rate.

    Attributes:
        rate: the rate in force, which is pinned or was requested by the latest task; `None` if no task has used the
            rate yet.
        asked: the rate that the latest task requested.
        used: number of starts that still count and reduce how many starts are possible at once.
        available: number of starts that are possible at once.
        waiting: number of places in line that are still to come, including the places of tasks that have been cancelled
            since; `None` while the rate is paused, because tasks get no places then.
        next_free_at: when a task of normal priority could start if requested now; `None` while the rate is paused.
    """

    key: str
    control: RateControl
    rate: Rate | None
    asked: Rate | None
    used: int = 0
    available: int = 0
    waiting: int | None = 0
    next_free_at: Millis | None = None

    @classmethod
    def of(cls, key: str, states: Mapping[int, RateState], now: Millis) -> RateStatus:
        """Returns the current state of a rate.

        Args:
            key: key of the rate.
            states: states of its parts by number.
            now: the time.
        """
        first = states.get(0) or next(iter(states.values()), RateState())
        control, asked = RateControl.of(key, first), first.asked(key)
        rate = control.pin or asked
        if rate is None:
            return cls(key, control, None, None, waiting=None if control.paused_at else 0)
        used = available = waiting = 0
        turns = []
        for part in range(parts_of(rate)):
            pace = pace_of(rate, part)
            request, state = StartRequest(pace, Priority.NORMAL, now * MICROS), states.get(part, RateState())
            state = request.converted(state)
            ahead = min(pace.burst + 1, max(0, -(-(state.of(STARTS) - request.at) // pace.interval)))
            used, available = used + ahead, available + pace.burst + 1 - ahead
            waiting += request.line_length(state)
            turns.append(request.turn(state))
        if control.paused_at is not None:
            return cls(key, control, rate, asked, used, 0, None, None)
        return cls(key, control, rate, asked, used, available, waiting, -(-min(turns) // MICROS))


@frozen
class RateWaiter:
    """A task that waits for a rate.

    Attributes:
        next_at: when it is the task's turn, or, while the rate is paused, when the task is checked again.
    """

    task_id: TaskId
    due_at: Millis
    next_at: Millis
