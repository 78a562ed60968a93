from __future__ import annotations

from dataclasses import replace
from typing import Any

from duetime.adapters.dynamodb.quotas import DynamoQuotaStore, DynamoQuotaUse
from duetime.domain.ids import TaskId
from duetime.domain.quotas import Quotas
from duetime.domain.times import MINUTE
from duetime.ports.runtime import Runtime
from duetime.services.quotas.at_once import AttemptQuota
from duetime.services.quotas.book import QuotaBook
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom, VirtualTime
from tests.adapters.examples import task
from tests.clocks import NOW, StandingClock


def test_a_process_forgets_owners_that_had_no_place_a_moment_ago() -> None:
    """A worker remembers only owners whose quota is currently used up."""
    clock = StandingClock()
    database: Any = FakeDynamoDB()
    table = new_table(database)
    runtime = Runtime(clock, SeededRandom(), VirtualTime(NOW), FakeTelemetry())
    book = QuotaBook(DynamoQuotaStore(database, table), runtime, Quotas(concurrent_attempts=1))
    quota = AttemptQuota(book, DynamoQuotaUse(database, table), runtime)
    for number in range(50):
        one = task(owner=f"owner-{number}", id=TaskId.of(NOW, 1, 2 * number))
        other = replace(one, id=TaskId.of(NOW, 1, 2 * number + 1))
        assert quota.held(one, clock.at + MINUTE) is None
        assert quota.held(other, clock.at + MINUTE) is not None
        clock.at += 50
    assert len(quota._full_until) <= 5
