from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime.adapters.dynamodb.summary import DynamoSummaryRecounts
from duetime.adapters.dynamodb.task_items import item_of
from duetime.domain.operating_parameters import SUMMARY_RECOUNT_KEPT
from duetime.domain.summary import Generation, Group, Recount, Summary
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND
from tests.adapters.conftest import IMPLEMENTATIONS, cloud_of
from tests.adapters.examples import fresh, task
from tests.clocks import NOW, StandingClock

if TYPE_CHECKING:
    from tests.adapters.clouds import Cloud

MAILS = Group("mail#1", State.RUNNING, Priority.HIGH)
WAITING = Group("mail#1", State.WAITING, Priority.NORMAL)
RECOUNT = Recount(3, NOW, part=1)
GENERATION = Generation(2, NOW, NOW, recounting=RECOUNT)


@pytest.fixture(params=IMPLEMENTATIONS)
def cloud(request: pytest.FixtureRequest) -> Cloud:
    """Return an AWS implementation with DynamoDB."""
    return cloud_of(request)


def test_a_recount_generation_requires_the_latest_version(cloud: Cloud) -> None:
    """A recount's generation is stored only by a process that has read the latest version; a repeat changes nothing."""
    store = DynamoSummaryRecounts(cloud.dynamodb, cloud.table(), StandingClock())
    assert store.generation() is None
    nonce = str(uuid4())
    assert store.save(GENERATION, nonce)
    assert store.save(GENERATION, nonce), "resent"
    assert store.generation() == replace(GENERATION, version=1)
    assert not store.save(GENERATION, str(uuid4()))
    done = replace(GENERATION, recounting=None, recounted=RECOUNT, version=1)
    assert store.save(done, str(uuid4()))
    assert store.generation() == replace(done, version=2)


def test_repeated_counts_of_a_part_are_added_once(cloud: Cloud) -> None:
    """A repeated addition counts once, and the numbers of recounts and owners are separate."""
    store = DynamoSummaryRecounts(cloud.dynamodb, cloud.table(), StandingClock())
    for _ in range(2):
        store.add_older(GENERATION, RECOUNT, "ann", "mail#1", {MAILS: 2, WAITING: 1})
    store.add_older(GENERATION, replace(RECOUNT, part=2), "ann", "mail#1", {MAILS: 3})
    assert store.read_older(GENERATION, RECOUNT, "ann") == Summary({MAILS: 5, WAITING: 1})
    assert store.read_older(GENERATION, replace(RECOUNT, number=4), "ann") == Summary()
    assert store.read_older(GENERATION, RECOUNT, "bob") == Summary()


def test_a_recount_is_stored_longer_than_it_is_used(cloud: Cloud) -> None:
    """A recount is used for 60 days after its start and stored for longer."""
    table = cloud.table()
    DynamoSummaryRecounts(cloud.dynamodb, table, StandingClock()).add_older(GENERATION, RECOUNT, "a", "t", {MAILS: 1})
    (item,) = cloud.dynamodb.scan(TableName=table)["Items"]
    assert int(item["x"]["N"]) * SECOND > RECOUNT.started_at + SUMMARY_RECOUNT_KEPT


def test_owners_are_listed_once_and_in_order(cloud: Cloud) -> None:
    """Owners are listed once each, in pages that continue after the last owner on the previous page."""
    store = DynamoSummaryRecounts(cloud.dynamodb, cloud.table(), StandingClock())
    for owner in ("bob", "ann#1", "carl", "ann#1"):
        store.list_owner(owner)
    assert store.owners("", 2) == ["ann#1", "bob"]
    assert store.owners("bob", 2) == ["carl"]


def test_only_older_tasks_are_found(cloud: Cloud) -> None:
    """Only older tasks are found; later, erased and unreadable tasks are left out, and so are other items."""
    table = cloud.table()
    store = DynamoSummaryRecounts(cloud.dynamodb, table, StandingClock())
    assert store.is_fresh(NOW)
    items: list[Any] = [item_of(fresh(task(created_at=at))) for at in (NOW - 1, NOW)]
    items.append(item_of(fresh(task(created_at=NOW - 1, erased=True))))
    items.append({**item_of(fresh(task(created_at=NOW - 1))), "v": {"N": "99"}})
    items.append({"p": {"S": "l#x"}, "s": {"S": "x"}, "c": {"N": "1"}})
    for item in items:
        cloud.dynamodb.put_item(TableName=table, Item=item)
    found = store.older_tasks("", NOW, pages=2)
    assert sum(found.counts.values()) == 1
    assert found.cursor == ""
    ((owner, group),) = found.counts
    assert (owner, group.state) == (task().owner, task().state)
    assert not store.is_fresh(NOW)
    assert store.is_fresh(NOW - 1)
