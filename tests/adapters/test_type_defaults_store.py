"""Tests that an owner's defaults for task types are stored in one DynamoDB item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.trigger_cursors import DynamoShardStore
from duetime.adapters.dynamodb.type_defaults import DynamoTypeDefaultsStore
from duetime.domain.limits import MAX_TYPE_LENGTH, MAX_TYPES_WITH_DEFAULTS
from duetime.domain.tasks.type_defaults import OwnDefaults, OwnerTypes
from tests.adapters.examples import HOME
from tests.metering import item_size, read_units

if TYPE_CHECKING:
    from tests.adapters.clouds import Cloud

OPTIONS: dict[str, Any] = {"timeout_seconds": 30, "lock": {"key": "smtp", "max_holders": 2}, "rate": None}
TYPES = {"mail.send": OwnDefaults(OPTIONS, HOME, "ann"), "a/b": OwnDefaults({})}


def test_type_defaults_are_read_back_unchanged(moto_cloud: Cloud) -> None:
    """Defaults are read back, including nulls, with the next version; a change based on an older version is refused."""
    store = DynamoTypeDefaultsStore(moto_cloud.dynamodb, moto_cloud.table())
    assert store.read("ann", consistent=True) == OwnerTypes()
    assert store.save("ann", OwnerTypes(TYPES), "one")
    assert store.read("ann", consistent=False) == OwnerTypes(TYPES, 1)
    assert store.read("bob", consistent=True) == OwnerTypes()
    assert not store.save("ann", OwnerTypes({}), "two")
    assert store.save("ann", OwnerTypes({}, 1), "three")
    assert store.read("ann", consistent=True) == OwnerTypes({}, 2)


def test_the_mark_for_type_defaults_is_kept_when_shards_grow(moto_cloud: Cloud) -> None:
    """When the number of shards grows, the stored mark that defaults exist is kept."""
    store = DynamoShardStore(moto_cloud.dynamodb, moto_cloud.table())
    assert not store.announce(4, HOME).has_type_defaults
    store.announce_type_defaults()
    store.announce_type_defaults()
    assert store.read().has_type_defaults
    assert store.announce(16, HOME + 1).has_type_defaults
    assert store.read().number == 16


def test_the_largest_number_of_types_is_cheap_to_read(moto_cloud: Cloud) -> None:
    """A hundred types with the longest names and usual options cost at most five read units every five seconds."""
    table = moto_cloud.table()
    store = DynamoTypeDefaultsStore(moto_cloud.dynamodb, table)
    names = [f"{number:0{MAX_TYPE_LENGTH}}" for number in range(MAX_TYPES_WITH_DEFAULTS)]
    assert store.save("ann", OwnerTypes({name: OwnDefaults(OPTIONS, HOME, "ann") for name in names}), "one")
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item[schema.PARTITION_KEY] == {"S": "y#ann"}
    assert read_units(item_size(item), consistent=False) <= 5
