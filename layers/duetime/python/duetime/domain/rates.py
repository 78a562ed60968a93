"""Rates: how often attempts of the tasks with one key may start. Decisions as values.

Starts are counted by the generic cell rate algorithm (GCRA; Source: ITU-T Recommendation I.371, annex A): one number
says when the next start would be due if all came evenly, and a start may be ahead of it by as much as the burst.
Beside that number each priority has a line: the time of its last place. A task that cannot start takes the next place,
and comes back at that time; whether it may start is decided by the count alone, whatever the lines say.

The line of a priority is shifted by each start and each place of a higher one. So that nobody has to rewrite places,
they are kept in the line's own time, which stands still while higher ones are served: `displaced` is how much it lags.

The interval by which the count goes is stored with it. A request at a shorter one, because the rate was raised, first
converts the count: as many starts stay counted, each for the shorter interval, so no window of the new rate has more
than it may. The lines begin anew, since their places are as far apart as the old rate wanted; whoever finds its place
beyond the end of its line takes another one.

All times here are in microseconds: at 250 starts a second, a millisecond would be a quarter of an interval.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from zlib import crc32

from duetime.domain.operating_parameters import (
    MAX_CLOCK_DIFFERENCE,
    MAX_STARTS_PER_RATE_PART,
    RATE_HOLD,
    RATE_LATE_COMER,
    RATE_SLACK,
)
from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis

MICROS = 1_000
"""In a millisecond."""
STARTS = "starts"
"""The field that counts starts: when the next one would be due if all came evenly."""
INTERVAL = "interval"
"""The field that says what one start adds to the count, at least: of several rates of a key, the fastest one's."""
_PRIORITIES = tuple(Priority)
LINES = tuple(f"line_{priority}" for priority in _PRIORITIES)
"""The fields that say where the line of each priority ends, the highest first; no line ends before a higher one."""
DISPLACED = tuple(f"displaced_{priority}" for priority in _PRIORITIES)
"""The fields that say how much higher priorities have shifted the line of each."""
FIELDS = (STARTS, INTERVAL, *LINES, *DISPLACED[1:])
"""All that is stored of a part; what is absent is 0, which is long ago."""
_HOLD = RATE_HOLD * MICROS
_SLACK_SHARE = 20
"""The slack is one in so many parts of a window, at most."""


@dataclass(frozen=True, slots=True)
class RateName:
    """One part of a rate: keys are an owner's own. A rate that is too fast for one item has several parts."""

    owner: str
    key: str
    part: int = 0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast attempts may start under one part of a rate.

    In any window of `per_seconds`, no more start than the part's limit and burst: the counted times of starts are
    `interval` apart at least, each attempt begins no more than `burst` intervals before its counted time and no more
    than `slack` after it, and so many intervals as the limit fill the window and the slack.

    Attributes:
        interval: between two starts that come evenly, in microseconds.
        burst: starts beyond that at once.
        slack: how long after its counted time an attempt may begin, in microseconds.
    """

    interval: int
    burst: int
    slack: int

    @property
    def lead(self) -> int:
        """How far the count may be ahead of a start."""
        return self.burst * self.interval


def parts_of(rate: Rate) -> int:
    """Among how many items a rate is divided, so that none is written more often than one can be."""
    return max(1, -(-rate.limit // (rate.per_seconds * MAX_STARTS_PER_RATE_PART)))


def part_of(rate: Rate, owner: str, task_id: TaskId) -> tuple[RateName, Pace]:
    """The part of a rate by which a task goes, always the same one, and its pace."""
    parts = parts_of(rate)
    part = crc32(task_id.text.encode()) % parts
    return RateName(owner, rate.key, part), pace_of(rate, part)


def pace_of(rate: Rate, part: int) -> Pace:
    """The pace of one part: the limits and the bursts of all parts sum to those of the rate."""
    parts = parts_of(rate)
    limit, burst = ((whole + parts - 1 - part) // parts for whole in (rate.limit, rate.burst))
    window = rate.per_seconds * 1_000 * MICROS
    slack = min(window // _SLACK_SHARE, RATE_SLACK * MICROS)
    return Pace(-(-(window + slack) // limit), burst, slack)


@dataclass(frozen=True, slots=True)
class RateState:
    """What is stored of one part of a rate."""

    values: Mapping[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        """The value of a field."""
        return self.values.get(name, 0)


@dataclass(frozen=True, slots=True)
class RateUpdate:
    """One conditional write: what it sets, adds and requires, by field.

    Attributes:
        at_most: an absent field is below any value.
        needed_until: the item may be forgotten some time after that.
    """

    sets: Mapping[str, int]
    adds: Mapping[str, int]
    at_least: Mapping[str, int]
    at_most: Mapping[str, int]
    needed_until: Millis


@dataclass(frozen=True, slots=True)
class Start:
    """The attempt may be granted its start: this update does it, if nothing has changed."""

    update: RateUpdate


@dataclass(frozen=True, slots=True)
class Convert:
    """The part is counted by a slower rate: this update converts it to the present one, if nothing has changed."""

    update: RateUpdate


@dataclass(frozen=True, slots=True)
class Join:
    """It must wait, and takes the next place in its line by this update, if nothing has changed."""

    update: RateUpdate


@dataclass(frozen=True, slots=True)
class Wait:
    """It has a place, whose time has not come: until then, in milliseconds."""

    until: Millis


@dataclass(frozen=True, slots=True)
class StartRequest:
    """An attempt that asks to start.

    Attributes:
        at: when it would start, in microseconds.
        place: the place that it has in its line, in the line's own time; `None` if it has none.
    """

    pace: Pace
    priority: Priority
    at: int
    place: int | None = None

    @property
    def _rank(self) -> int:
        return _PRIORITIES.index(self.priority)

    def next_step(self, state: RateState, *, is_fresh: bool) -> Start | Convert | Join | Wait:
        """What to do by this state.

        Args:
            state: what is known of the part.
            is_fresh: whether it was learnt for this request; else it may be old, and whoever has a place tries.
        """
        if state.of(INTERVAL) > self.pace.interval:
            return self._convert(state)
        if self.place is not None and not is_fresh:
            return self._start(state, is_in_step=True)
        rank, slot = self._rank, self._slot(state)
        if self.place is None:
            has_line = any(state.of(line) > self.at + self.pace.interval for line in LINES[: rank + 1])
            return self._start(state) if slot <= self.at + _HOLD and not has_line else self.join(state)
        own = self.place + state.of(DISPLACED[rank])
        if own > self.at + _HOLD:
            if own < state.of(LINES[rank]):
                return Wait(_millis(own))
            # Behind the end of its line it has no place: the line has begun anew since it took it.
            return replace(self, place=None).next_step(state, is_fresh=True)
        if slot <= self.at + _HOLD:
            return self._start(state)
        is_late = self.at - own > RATE_LATE_COMER * MICROS + 2 * self.pace.interval
        return self.join(state) if is_late else Wait(_millis(slot))

    def granted(self, after: RateState) -> tuple[int, int]:
        """From when and until when the attempt may begin, in microseconds, given the state after its `Start`."""
        counted = after.of(STARTS) - self.pace.interval
        return counted - self.pace.lead, counted + self.pace.slack

    def joined(self, after: RateState) -> tuple[Millis, int]:
        """When the attempt's turn comes, in milliseconds, and its place, given the state after its `Join`."""
        turn = after.of(LINES[self._rank]) - self.pace.interval
        return _millis(turn), turn - after.of(DISPLACED[self._rank])

    def given_back(self, after: RateState) -> RateUpdate:
        """The update that takes a `Start` back which is not used, given the state after it, if none has come since."""
        interval, counted = self.pace.interval, after.of(STARTS)
        adds = {STARTS: -interval} | {name: -shift for name, shift in self._shifts().items()}
        return RateUpdate({}, adds, {STARTS: counted}, {STARTS: counted}, self._needed(after, counted))

    def _shifts(self) -> dict[str, int]:
        """By how much a start shifts the lines of lower priorities; one that has a place did so when it took it."""
        if self.place is not None:
            return {}
        below = self._rank + 1
        return dict.fromkeys((*LINES[below:], *DISPLACED[below:]), self.pace.interval)

    def _convert(self, state: RateState) -> Convert:
        counted, interval = state.of(STARTS), state.of(INTERVAL)
        # By the clock that is the furthest ahead: no other may find that fewer starts are counted than are.
        now = min(counted, self.at + MAX_CLOCK_DIFFERENCE * MICROS)
        starts = now - (-(counted - now) * self.pace.interval // interval)
        sets = {STARTS: starts, INTERVAL: self.pace.interval, **dict.fromkeys(LINES, 0)}
        same = {STARTS: counted, INTERVAL: interval}
        return Convert(RateUpdate(sets, {}, same, same, self._needed(state, counted)))

    def _slot(self, state: RateState) -> int:
        """When the next start may be."""
        return max(self.at, state.of(STARTS) - self.pace.lead)

    def _start(self, state: RateState, *, is_in_step: bool = False) -> Start:
        """Count a start: one interval after the one before, if starts come in step, else from now on."""
        rank, interval = self._rank, self.pace.interval
        at_most: dict[str, int] = {INTERVAL: interval}
        shifts = self._shifts()
        if self.place is None:
            at_most[LINES[rank]] = self.at + interval
        elif rank:
            at_most[DISPLACED[rank]] = self.at + _HOLD - self.place
        latest = self.at + _HOLD + self.pace.lead
        needed = self._needed(state, latest + interval)
        # Half of the slack is for those who come a moment late: the next ones need not be late because of them.
        in_step = self.at - self.pace.slack // 2
        if is_in_step or state.of(STARTS) >= in_step:
            adds = {STARTS: interval, **shifts}
            return Start(RateUpdate({}, adds, {STARTS: in_step}, {**at_most, STARTS: latest}, needed))
        sets = {STARTS: self.at + interval, INTERVAL: interval}
        return Start(RateUpdate(sets, shifts, {}, {**at_most, STARTS: self.at}, needed))

    def join(self, state: RateState) -> Join:
        """Take the next place in its line, at the time of the request at the earliest."""
        rank, interval = self._rank, self.pace.interval
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
        # The count is not written, and must not be forgotten.
        at_most = {STARTS: needed} if has_line else {STARTS: needed, own: begins}
        return Join(RateUpdate(sets, adds, {own: begins} if has_line else {}, at_most, self._needed(state, needed)))

    def _needed(self, state: RateState, until: int) -> Millis:
        return _millis(max(until, *(state.of(line) for line in LINES)))


def _millis(micros: int) -> Millis:
    return -(-micros // MICROS)
