"""Rates keep every window to its limit, serve tasks by priority and age, and lose little throughput."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE
from duetime.domain.rates import (
    INTERVAL,
    MICROS,
    STARTS,
    Convert,
    Join,
    RateState,
    Start,
    StartRequest,
    Wait,
    pace_of,
    part_of,
    parts_of,
)
from duetime.domain.tasks.task_options import Priority, Rate

if TYPE_CHECKING:
    from duetime.domain.rates import Pace, RateUpdate

TRIES = 6


def applied(state: RateState, update: RateUpdate) -> RateState | None:
    """The state after an update, or `None` if the update is rejected."""
    is_allowed = all(state.of(name) >= value for name, value in update.at_least.items()) and all(
        state.of(name) <= value for name, value in update.at_most.items()
    )
    added = {name: state.of(name) + value for name, value in update.adds.items()}
    return RateState({**state.values, **update.sets, **added}) if is_allowed else None


@dataclass(order=True)
class Asker:
    """A task that requests a start until it gets one.

    Attributes:
        began: the time of the first request.
    """

    began: int
    number: int
    priority: Priority = field(compare=False, default=Priority.NORMAL)
    place: int | None = field(compare=False, default=None)
    checks: int = field(compare=False, default=0)


class Askers:
    """Tasks and workers that use one part of a rate, in virtual milliseconds, with random response times."""

    def __init__(self, pace: Pace, random: Random, slowest: int) -> None:
        self.pace, self.random, self.slowest = pace, random, slowest
        self.state = RateState()
        self.known = [RateState() for _ in range(3)]
        self.starts: list[tuple[int, Asker]] = []
        self.writes = 0

    def run(self, askers: list[Asker], until: int = 10**13) -> None:
        """Have all tasks request a start, and come back when the rate says."""
        events = [(asker.began, asker) for asker in askers]
        heapq.heapify(events)
        pending: list[tuple[int, int, Asker, int, int, int]] = []
        order = 0
        while events or pending:
            # Either a new task arrives, or the request of a known task arrives at the store.
            if pending and (not events or pending[0][0] <= events[0][0]):
                at, _, asker, asked, took, left = heapq.heappop(pending)
                again = self._arrived(at, asker, asked, took, left)
            else:
                at, asker = heapq.heappop(events)
                asker.checks += 1
                again = (at, 0, TRIES)
            if at > until or again is None:
                continue
            came, took, left = again
            if not left:
                heapq.heappush(events, (came, asker))
            else:
                order += 1
                latency = self.random.randint(0, self.slowest)
                heapq.heappush(pending, (came + latency, order, asker, came, took, left))

    def _arrived(self, at: int, asker: Asker, asked: int, took: int, left: int) -> tuple[int, int, int] | None:
        """Handle a request; return when the task comes back, the store's time, and the tries left (0 if it waits)."""
        process = asker.number % len(self.known)
        request = StartRequest(self.pace, asker.priority, (asked + took) * MICROS, asker.place)
        step = request.next_step(self.known[process], is_fresh=left < TRIES)
        if isinstance(step, Wait):
            return max(at, step.until), 0, 0
        self.writes += 1
        after = applied(self.state, step.update)
        self.known[process] = self.state = after or self.state
        if after is None:
            return at, took, max(1, left - 1)
        answered = at + self.random.randint(0, self.slowest)
        if not isinstance(step, Start):
            until, asker.place = request.joined(after)
            return max(until, answered), 0, 0
        earliest, latest = request.granted(after)
        begins = max(answered, -(-earliest // MICROS))
        if begins * MICROS <= latest:
            self.starts.append((begins, asker))
            return None
        return answered, answered - asked, max(1, left - 1)


def most_in_a_window(starts: list[int], window: int) -> int:
    """The largest number of starts in any window, which includes its first instant but not its last."""
    ordered = sorted(starts)
    most = first = 0
    for last, at in enumerate(ordered):
        while ordered[first] <= at - window:
            first += 1
        most = max(most, last - first + 1)
    return most


rates = st.builds(Rate, st.just("crm"), st.integers(1, 60), st.sampled_from([1, 2, 10, 60]), st.integers(0, 12))
NOON = 10**12


@settings(max_examples=60, deadline=None)
@given(rates, st.randoms(use_true_random=False), st.integers(0, 30), st.integers(1, 120))
def test_no_window_has_more_starts_than_the_limit_and_the_burst(
    rate: Rate, random: Random, slowest: int, count: int
) -> None:
    """Whatever the arrivals, priorities and delays are, no window has more starts than its limit plus the burst."""
    spread = random.choice([1, 1_000, 20_000])
    priorities = list(Priority)
    askers = [Asker(NOON + random.randrange(spread), number, random.choice(priorities)) for number in range(count)]
    world = Askers(pace_of(rate, 0), random, slowest)
    world.run(askers)
    assert len(world.starts) == count
    assert most_in_a_window([at for at, _ in world.starts], rate.per_seconds * 1_000) <= rate.limit + rate.burst


@pytest.mark.parametrize(("limit", "seconds", "burst"), [(50, 1, 10), (20, 1, 0), (5, 10, 2)])
def test_a_backlog_is_served_at_the_rate(limit: int, seconds: int, burst: int) -> None:
    """A backlog starts at 90% of the limit or more, with about one wait and two writes per task."""
    world = Askers(pace_of(Rate("crm", limit, seconds, burst), 0), Random(7), 8)  # noqa: S311 - seeded
    count = 12 * limit
    world.run([Asker(NOON + number, number) for number in range(count)])
    assert max(at for at, _ in world.starts) - NOON <= 12 * seconds * 1_000 / 0.9
    assert world.writes <= 2.1 * count
    assert sum(asker.checks for _, asker in world.starts) <= 2.1 * count


def test_a_backlog_takes_new_places_after_an_outage_longer_than_all_turns() -> None:
    """After an outage that is longer than all turns, no task is put back again and again."""
    world = Askers(pace_of(Rate("crm", 20), 0), Random(5), 8)  # noqa: S311 - seeded
    waiting = [Asker(NOON + number, number) for number in range(300)]
    world.run(waiting, NOON + 1_000)
    rest = [asker for asker in waiting if all(asker is not started for _, started in world.starts)]
    for asker in rest:
        asker.began = NOON + 3_600_000
    world.run(rest)
    assert len(world.starts) == len(waiting)
    assert max(asker.checks for asker in rest) <= 4


def test_tasks_in_line_start_by_priority_and_then_by_age() -> None:
    """High-priority tasks start first even if they arrive last; tasks with the same priority start as they arrived."""
    world = Askers(pace_of(Rate("crm", 10), 0), Random(3), 2)  # noqa: S311 - seeded
    came = {Priority.LOW: 0, Priority.NORMAL: 1_000, Priority.HIGH: 2_000}
    world.run(
        [Asker(NOON + at + number * 5, at + number, priority) for priority, at in came.items() for number in range(40)]
    )
    started = sorted(world.starts, key=lambda start: start[0])
    waited = [(at, asker) for at, asker in started if asker.checks > 1]
    order = list(Priority)
    assert [asker.number for _, asker in waited] == sorted(
        (asker.number for _, asker in waited),
        key=lambda number: (order.index(next(a.priority for _, a in waited if a.number == number)), number),
    )
    assert {asker.priority for _, asker in waited} == set(Priority)


@given(st.builds(Rate, st.just("crm"), st.integers(1, 10_000), st.integers(1, 60), st.integers(0, 10_000)))
def test_the_parts_of_a_rate_sum_to_the_complete_rate(rate: Rate) -> None:
    """A rate that is too fast for one item is split into slower parts, which add up to the complete rate."""
    paces = [pace_of(rate, part) for part in range(parts_of(rate))]
    window = rate.per_seconds * 1_000_000
    limits = [(window + pace.slack) // pace.interval for pace in paces]
    assert sum(pace.burst for pace in paces) == rate.burst
    assert sum(limits) <= rate.limit
    assert max(limits) <= 250 * rate.per_seconds


def test_tasks_spread_over_the_parts_of_a_rate() -> None:
    """Each task always has the same part, and all parts get about the same number of tasks."""
    rate, number = Rate("crm", 2_000), 4_000
    ids = [TaskId.of(NOON, index % 16, index) for index in range(number)]
    found = Counter(part_of(rate, "me", each)[0].part for each in ids)
    assert len(found) == parts_of(rate) == 8
    assert max(found.values()) <= 1.2 * number / 8


def started(state: RateState, pace: Pace, now: int) -> tuple[RateState, int | None]:
    """The state of a part after a request without a place, and the start, or `None` if the request has to wait."""
    for _ in range(TRIES):
        step = StartRequest(pace, Priority.NORMAL, now * MICROS).next_step(state, is_fresh=True)
        if isinstance(step, Wait | Join):
            return state, None
        after = applied(state, step.update)
        assert after is not None
        state = after
        if isinstance(step, Start):
            earliest, _ = StartRequest(pace, Priority.NORMAL, now * MICROS).granted(state)
            return state, max(now, -(-earliest // MICROS))
    raise AssertionError("it is asked for ever")


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=0), st.integers(1, 4), st.integers(0, 3), st.integers(2, 12), st.integers(0, 3))
def test_starts_at_the_old_rate_count_against_a_raised_rate(
    seed: int, slow: int, slow_burst: int, faster: int, burst: int
) -> None:
    """Starts that were counted at the old rate still count at the new rate."""
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    before, after = (Rate("k", limit, 60, each) for limit, each in ((slow, slow_burst), (slow * faster, burst)))
    state, now, starts = RateState(), 10**9, []
    for number in range(200):
        now += random.choice([0, 50, 500, 5_000, 60_000 // after.limit])
        is_old = number < 80 or (not slow_burst and random.random() < 0.1)
        rate = before if is_old else after
        state, began = started(state, pace_of(rate, 0), now)
        starts += [] if began is None else [began]
    assert most_in_a_window(starts, 60_000) <= after.limit + max(before.burst, after.burst)


def test_the_first_start_after_raising_a_rate_follows_the_new_interval() -> None:
    """After the rate is raised, the next start comes one new interval later, and the lines are reset."""
    slow, fast = pace_of(Rate("k", 1, 600), 0), pace_of(Rate("k", 60, 60), 0)
    state, _ = started(RateState(), slow, 10**9)
    waiting = StartRequest(slow, Priority.NORMAL, 10**9 * MICROS)
    join = waiting.next_step(state, is_fresh=True)
    assert isinstance(join, Join)
    held = applied(state, join.update)
    assert held is not None
    _, place = waiting.joined(held)
    now = 10**9 + 2_000
    convert = StartRequest(fast, Priority.NORMAL, now * MICROS).next_step(held, is_fresh=True)
    assert isinstance(convert, Convert)
    converted = applied(held, convert.update)
    assert converted is not None
    assert converted.of(INTERVAL) == fast.interval
    # Clocks may differ.
    assert converted.of(STARTS) <= (now + MAX_CLOCK_DIFFERENCE) * MICROS + fast.interval
    later = (now + MAX_CLOCK_DIFFERENCE) * MICROS
    again = StartRequest(fast, Priority.NORMAL, later, place).next_step(converted, is_fresh=True)
    assert isinstance(again, Start)


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=0), st.integers(1, 4), st.integers(0, 3), st.integers(2, 12), st.integers(0, 3))
def test_tasks_of_two_rates_start_no_more_often_than_the_faster_allows(
    seed: int, slow: int, slow_burst: int, faster: int, burst: int
) -> None:
    """If tasks with two rates alternate, no window has more starts than the larger limit and the burst allow."""
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    rates = Rate("k", slow, 60, slow_burst), Rate("k", slow * faster, 60, burst)
    state, now, starts = RateState(), 10**9, []
    for _ in range(200):
        now += random.choice([0, 50, 500, 5_000, 60_000 // rates[1].limit])
        state, began = started(state, pace_of(random.choice(rates), 0), now)
        starts += [] if began is None else [began]
    assert most_in_a_window(starts, 60_000) <= rates[1].limit + max(slow_burst, burst)


def test_tasks_of_two_rates_start_as_often_as_the_faster_allows() -> None:
    """One task starts each second, even if every other task asks for only one start per hour."""
    rates = pace_of(Rate("k", 1, 3_600), 0), pace_of(Rate("k", 60, 60), 0)
    state, now, starts = RateState(), 10**9, 0
    for number in range(100):
        state, began = started(state, rates[number % 2], now + number * 1_010)
        starts += began is not None
    assert starts == 100


def test_returning_a_slower_start_restores_the_count_and_interval() -> None:
    """When a slower start is returned, the count and interval are restored, and starts in a burst stay counted."""
    slow, fast = pace_of(Rate("k", 1, 3_600, 5), 0), pace_of(Rate("k", 60, 60, 5), 0)
    state, now = RateState(), 10**9
    for _ in range(4):
        state, _ = started(state, fast, now)
    request = StartRequest(slow, Priority.NORMAL, now * MICROS)
    step = request.next_step(state, is_fresh=True)
    assert isinstance(step, Start)
    after = applied(state, step.update)
    assert after is not None
    assert after.of(INTERVAL) == slow.interval
    back = applied(after, request.given_back(state, after))
    assert back is not None
    assert (back.of(STARTS), back.of(INTERVAL)) == (state.of(STARTS), fast.interval)


def test_a_slower_tasks_place_does_not_delay_faster_tasks_behind() -> None:
    """The place of a slower task takes only as much time as a place at the fastest rate in use."""
    slow, fast = pace_of(Rate("k", 1, 3_600), 0), pace_of(Rate("k", 6, 60), 0)
    state, _ = started(RateState(), fast, 10**9)
    for pace in (slow, fast):
        request = StartRequest(pace, Priority.NORMAL, 10**9 * MICROS)
        join = request.next_step(state, is_fresh=True)
        assert isinstance(join, Join)
        after = applied(state, join.update)
        assert after is not None
        state = after
    turn, _ = request.joined(state)
    assert turn - 10**9 <= 2 * fast.interval // MICROS + 1


def test_a_returned_start_can_be_granted_again() -> None:
    """A returned start can be granted again, unless a later start has been granted since."""
    pace = pace_of(Rate("k", 1, 60), 0)
    request = StartRequest(pace, Priority.NORMAL, 10**9 * MICROS)
    state, _ = started(RateState(), pace, 10**9)
    back = applied(state, request.given_back(RateState(), state))
    assert back is not None
    assert started(back, pace, 10**9)[1] == 10**9
    burst = pace_of(Rate("k", 1, 60, 1), 0)
    first, _ = started(RateState(), burst, 10**9)
    second, _ = started(first, burst, 10**9)
    assert applied(second, StartRequest(burst, Priority.NORMAL, 10**9 * MICROS).given_back(RateState(), first)) is None
