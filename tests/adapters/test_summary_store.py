from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.summary import DynamoSummaryStore
from duetime.domain.summary import CountedSteps, Group, Step, StepSet, Summary
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, SECOND
from tests.adapters.conftest import IMPLEMENTATIONS, cloud_of

if TYPE_CHECKING:
    from duetime.ports.stores import SummaryStore

SET = StepSet("ann#x", 3, 1_795_228_380_000)
SCHEDULED = Group("report", State.SCHEDULED, Priority.NORMAL)
WAITING = Group("report", State.WAITING, Priority.NORMAL)
MAILS = Group("mail#1", State.RUNNING, Priority.HIGH)


@pytest.fixture(params=IMPLEMENTATIONS)
def summary_store(request: pytest.FixtureRequest) -> SummaryStore:
    """Return an empty store of counts."""
    cloud = cloud_of(request)
    return DynamoSummaryStore(cloud.dynamodb, cloud.table())


def step(number: int, left: Group | None, entered: Group | None) -> Step:
    """Return a step with a unique mark."""
    return Step(number.to_bytes(8), left, entered, SET.begins_at + SECOND)


def test_steps_are_counted_and_remembered_in_one_write(summary_store: SummaryStore) -> None:
    """The steps are added to the counts and are remembered in the same write."""
    steps = [step(1, None, SCHEDULED), step(2, SCHEDULED, WAITING), step(3, None, MAILS)]
    assert summary_store.counted(SET) == CountedSteps()
    assert summary_store.count(SET, CountedSteps(), steps, str(uuid4()))
    counted = summary_store.counted(SET)
    assert counted == CountedSteps(frozenset(each.mark for each in steps), 1)
    assert counted.missing([*steps, step(4, None, MAILS), step(4, None, MAILS)]) == [step(4, None, MAILS)]
    found = summary_store.read("ann#x", 3)
    assert {group: number for group, number in found.counts.items() if number} == {WAITING: 1, MAILS: 1}
    assert (found.as_of, found.is_complete) == (SET.begins_at + SECOND, True)
    assert summary_store.read("ann#x", 2) == Summary()


def test_counts_of_earlier_generations_get_a_ttl(summary_store: SummaryStore) -> None:
    """Counts of earlier generations get a TTL once, and can be read until they are removed."""
    for number in range(3):
        of = replace(SET, generation=number, begins_at=SET.begins_at + number * MINUTE)
        assert summary_store.count(of, CountedSteps(), [step(number, None, MAILS)], str(uuid4()))
    summary_store.expire_counts("ann#x", 3, 2, SET.begins_at)
    summary_store.expire_counts("ann#x", 3, 2, SET.begins_at + SECOND)
    summary_store.expire_counts("ann#x", 2, 2, SET.begins_at)
    assert [summary_store.read("ann#x", 3, number).counts for number in range(3)] == [{MAILS: 1}] * 3
    private: Any = summary_store
    items = private._client.scan(TableName=private._table)["Items"]
    ttls = {each["s"]["S"]: each.get(schema.TTL) for each in items if each["s"]["S"].startswith("c")}
    expiry = {"N": str(SET.begins_at // SECOND)}
    assert ttls == {"c0#mail#1": expiry, "c1#mail#1": expiry, "c2#mail#1": None}


def test_a_write_based_on_an_older_version_counts_nothing(summary_store: SummaryStore) -> None:
    """A write that is based on an older version changes neither the counts nor the remembered steps."""
    assert summary_store.count(SET, CountedSteps(), [step(1, None, MAILS)], str(uuid4()))
    assert not summary_store.count(SET, CountedSteps(), [step(2, None, MAILS)], str(uuid4()))
    stale = summary_store.counted(SET)
    assert summary_store.count(SET, stale, [step(3, None, MAILS)], str(uuid4()))
    assert not summary_store.count(SET, stale, [step(4, None, MAILS)], str(uuid4()))
    assert summary_store.read("ann#x", 3).counts == {MAILS: 2}
    assert summary_store.counted(SET).marks == {(1).to_bytes(8), (3).to_bytes(8)}
