"""Tests the rate store's conditional updates, and whether a rate is never exceeded on an atomic engine."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from threading import local
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.rates import DynamoRateStore
from duetime.domain.rates import DISPLACED, FIELDS, LINES, STARTS, RateName, RateState, RateUpdate
from duetime.domain.tasks.task_options import Priority, Rate
from duetime.ports.runtime import Runtime
from duetime.services.rate_limiter import RateLimiter
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.adapters.clouds import EXECUTOR, Cloud
from tests.adapters.examples import numbered, task
from tests.clocks import NOW
from tests.domain.test_rates import most_in_a_window
from tests.metering import item_size

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime.ports.stores import RateStore

NAME = RateName("me", "crm")
LATER = NOW + 1_000


def test_an_update_of_a_rate_requires_its_conditions(rate_store: RateStore) -> None:
    """An update applies only if its conditions hold; an absent field counts as 0 in conditions and additions."""
    first = RateUpdate({STARTS: 7}, {LINES[2]: 3}, {}, {STARTS: 5, DISPLACED[1]: 1}, NOW)
    assert rate_store.apply(NAME, first, LATER) == (True, RateState({STARTS: 7, LINES[2]: 3}))
    assert rate_store.apply(NAME, first, LATER) == (False, RateState({STARTS: 7, LINES[2]: 3}))
    second = RateUpdate({}, {STARTS: 2, LINES[2]: 1}, {STARTS: 7}, {LINES[2]: 3}, NOW)
    assert rate_store.apply(NAME, second, LATER) == (True, RateState({STARTS: 9, LINES[2]: 4}))
    third = RateUpdate({}, {STARTS: 1}, {LINES[0]: 1}, {}, NOW)
    assert rate_store.apply(NAME, third, LATER) == (False, RateState({STARTS: 9, LINES[2]: 4}))
    assert rate_store.apply(RateName("me", "crm", 1), third, LATER) == (False, RateState())
    assert rate_store.apply(RateName("you", "crm"), first, LATER)[0]


def test_the_largest_rate_item_costs_one_write_unit(fake_cloud: Cloud) -> None:
    """Even the largest item of a rate is below a kilobyte, so each start costs one write unit."""
    table = fake_cloud.table()
    store = DynamoRateStore(fake_cloud.dynamodb, table, EXECUTOR)
    everything = dict.fromkeys(FIELDS, 10**18)
    name = RateName("o" * 256, "k" * 64, 39)
    assert store.apply(name, RateUpdate(everything, {}, {}, {STARTS: 0}, NOW), LATER)[0]
    (item,) = fake_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item[schema.PARTITION_KEY]["S"].startswith(schema.RATE_PREFIX)
    assert item_size(item) < 1_024


class _Clock(local):
    """A clock that keeps the last time that it returned to each thread, because this is the start of its attempt."""

    told: Millis = 0

    def now(self) -> Millis:
        self.told = time.time_ns() // 1_000_000
        return self.told

    def sleep_until(self, at: Millis) -> None:
        while (left := at - self.now()) > 0:
            time.sleep(left / 1_000)


class _Chance:
    def below(self, bound: int) -> int:
        return bound // 2


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("rate", [Rate("crm", 40, 1, 10), Rate("crm", 60), Rate("crm", 300, 1, 20)])
def test_concurrent_starts_never_exceed_the_rate(engine_cloud: Cloud, rate: Rate) -> None:
    """Twelve threads in three processes start attempts as fast as the rate allows, for five seconds of real time."""
    table, clock = engine_cloud.table(), _Clock()
    runtimes = [Runtime(clock, _Chance(), EXECUTOR, FakeTelemetry()) for _ in range(3)]  # type: ignore[arg-type]
    limiters = [RateLimiter(DynamoRateStore(engine_cloud.dynamodb, table, EXECUTOR), each) for each in runtimes]
    end = clock.now() + 5_000
    draw = Random(9)  # noqa: S311 - a seeded one
    priorities = [draw.choice(list(Priority)) for _ in range(5_000)]

    def work(number: int) -> list[Millis]:
        starts: list[Millis] = []
        for turn in range(number, 5_000, 12):
            one = replace(task(id=numbered(turn)), rate=rate, priority=priorities[turn])
            while held := limiters[number % 3].held(one, ()):
                if held.until >= end:
                    return starts
                one = replace(one, rate_places=held.rate_places or one.rate_places)
                clock.sleep_until(held.until)
            starts.append(clock.told)
            if starts[-1] >= end:
                break
        return starts

    with ThreadPoolExecutor(12) as pool:
        starts = sorted(at for each in pool.map(work, range(12)) for at in each)
    assert most_in_a_window(starts, 1_000) <= rate.limit + rate.burst
    assert starts
