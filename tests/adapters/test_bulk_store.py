from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.bulk import REQUEST, DynamoBulkStore
from duetime.domain.bulk import BulkKind, BulkOperation, BulkProgress, BulkState, Latest
from duetime.domain.ids import TaskId
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.times import DAY, SECOND
from tests.adapters.examples import HOME
from tests.metering import item_size

if TYPE_CHECKING:
    from tests.adapters.clouds import Cloud

TOPOLOGY = TaskId.of(HOME, 1, 2)
NEW = BulkOperation(TaskId.of(HOME, 3, 4), "me", BulkKind.CANCEL, HOME)
FULL = replace(
    NEW,
    kind=BulkKind.PAUSE,
    topology=TOPOLOGY,
    request=Content(ContentPlace.RECORD, REQUEST, b'{"filter":{}}'),
    progress=BulkProgress(TOPOLOGY, 3, 2, 1, {"MoveRefused": 1}, HOME + 1, after_name="nightly"),
    holder="request-1",
    epoch=7,
    leased_until=HOME + 2,
    not_complete_before=HOME + 3,
)
ENDED = replace(FULL.ended(BulkState.SUCCEEDED, HOME + 4, "why"), progress=replace(FULL.progress, is_complete=True))


@pytest.fixture
def store(moto_cloud: Cloud) -> DynamoBulkStore:
    """Return a store of bulk operations in a separate table."""
    return DynamoBulkStore(moto_cloud.dynamodb, moto_cloud.table())


def test_a_bulk_operation_is_read_back_unchanged(store: DynamoBulkStore) -> None:
    """A saved operation is read back with every field and the next version; an unknown id returns `None`."""
    assert store.read(NEW.id) is None
    for version, operation in enumerate((NEW, FULL, ENDED)):
        assert store.save(replace(operation, version=version), f"nonce {version}")
        assert store.read(NEW.id) == replace(operation, version=version + 1)


@pytest.mark.parametrize("kind", BulkKind)
def test_each_kind_of_bulk_operation_is_read_back(store: DynamoBulkStore, kind: BulkKind) -> None:
    """An operation of each kind is read back with its kind."""
    assert store.save(replace(NEW, kind=kind), "one")
    found = store.read(NEW.id)
    assert found is not None
    assert found.kind is kind


def test_the_second_write_of_a_bulk_operation_at_one_version_is_rejected(store: DynamoBulkStore) -> None:
    """If two different writes are based on one version, the second write is refused; a repeated write is accepted."""
    assert store.save(NEW, "one")
    assert store.save(NEW, "one")
    assert not store.save(FULL, "two")
    assert store.read(NEW.id) == replace(NEW, version=1)


def test_the_latest_bulk_operations_are_listed_first(store: DynamoBulkStore) -> None:
    """Only the given owner's operations are listed, latest first and up to the limit."""
    operations = [replace(NEW, id=TaskId.of(HOME + number * SECOND, number, 5)) for number in range(5)]
    for operation in [*operations, replace(NEW, id=TaskId.of(HOME, 9, 9), owner="you")]:
        assert store.save(operation, "one")
    assert [found.id for found in store.list("me", 3)] == [operation.id for operation in operations[:1:-1]]


def test_only_one_concurrent_operation_on_a_topology_is_accepted(store: DynamoBulkStore) -> None:
    """If two operations on a topology start at the same time, one operation is refused."""
    nothing = store.latest_of(TOPOLOGY)
    assert nothing == Latest(TOPOLOGY)
    assert store.set_latest(replace(nothing, operation_id=NEW.id), "one", HOME + DAY)
    assert not store.set_latest(replace(nothing, operation_id=TOPOLOGY), "two", HOME + DAY)
    assert store.latest_of(TOPOLOGY) == Latest(TOPOLOGY, NEW.id, 1)


def test_an_operation_costs_one_unit_and_expires_after_its_end(moto_cloud: Cloud) -> None:
    """An operation's item is smaller than a kilobyte, and gets an expiry only when the operation has ended."""
    table = moto_cloud.table()
    store = DynamoBulkStore(moto_cloud.dynamodb, table)
    for operation, expires in ((FULL, False), (replace(ENDED, version=1), True)):
        assert store.save(operation, f"nonce {expires}")
        (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
        assert (schema.TTL in item) is expires
        assert item_size(item) < 1024
