from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.domain.limits import MAX_OWNER_LENGTH, MAX_SWITCH_REASON_LENGTH, MAX_SWITCHES
from duetime.domain.switches import ALL_TASKS, StoredSwitches, Switch, Switches, SwitchKey, SwitchScope, SwitchSetter
from duetime.domain.tasks.task_options import Rate
from tests.adapters.examples import HOME
from tests.metering import item_size, read_units

if TYPE_CHECKING:
    from duetime.ports.stores import SwitchStore
    from tests.adapters.clouds import Cloud

STOP = Switch(SwitchKey(SwitchScope.TYPE, "report"), stopped=True, reason="Störung", updated_at=HOME, updated_by="ann")
CAP = Switch(
    SwitchKey(SwitchScope.OWNER, "a:role/b"),
    max_concurrent=7,
    updated_at=HOME + 1,
    updated_by="*",
    rate=Rate("owner/a:role/b", 50, 60, 10),
)
ALL = Switch(ALL_TASKS, stopped=True)


def test_switches_that_were_never_saved_are_empty(switch_store: SwitchStore) -> None:
    """Before the first save, operators' and owners' switches are read as empty sets at version 0."""
    assert switch_store.read(consistent=False) == switch_store.read(consistent=True) == StoredSwitches()


def test_switches_are_read_back_unchanged(switch_store: SwitchStore) -> None:
    """Every field of every switch is read back with the next version."""
    wanted = {switch.key: switch for switch in (STOP, CAP, ALL)}
    assert switch_store.save(Switches(wanted), "one")
    assert switch_store.read(consistent=True).operators == Switches(wanted, version=1)
    assert switch_store.save(Switches({}, version=1), "two")
    assert switch_store.read(consistent=True).operators == Switches({}, version=2)


def test_the_second_change_of_switches_at_one_version_is_rejected(switch_store: SwitchStore) -> None:
    """If two changes are based on one version, the second is refused, so its writer must read the switches again."""
    first, second = Switches({STOP.key: STOP}), Switches({CAP.key: CAP})
    assert switch_store.save(first, "one")
    assert not switch_store.save(second, "two")
    assert switch_store.read(consistent=True).operators.by_key == first.by_key


def test_a_repeated_save_of_switches_succeeds(switch_store: SwitchStore) -> None:
    """A repeated save is recognized by its nonce and written once."""
    assert switch_store.save(Switches({STOP.key: STOP}), "one")
    assert switch_store.save(Switches({STOP.key: STOP}), "one")
    assert switch_store.read(consistent=True).operators.version == 1


def test_operator_and_owner_switches_are_stored_separately(switch_store: SwitchStore) -> None:
    """Operator and owner switches have separate versions; if both apply to a task, the operator's switch wins."""
    own = Switches({CAP.key: replace(CAP, max_concurrent=1)}, setter=SwitchSetter.OWNERS)
    assert switch_store.save(own, "one")
    assert switch_store.read(consistent=True).in_force.by_key == own.by_key
    assert switch_store.save(Switches({CAP.key: CAP}), "two")
    stored = switch_store.read(consistent=True)
    assert (stored.owners, stored.operators) == (replace(own, version=1), Switches({CAP.key: CAP}, version=1))
    assert stored.in_force.by_key == {CAP.key: CAP}


def test_the_largest_number_of_switches_is_cheap_to_read(moto_cloud: Cloud) -> None:
    """A hundred switches of the longest kind cost a process at most five read units every five seconds."""
    table = moto_cloud.table()
    owners = [f"{n:0{MAX_OWNER_LENGTH}}" for n in range(MAX_SWITCHES)]
    long = [
        replace(
            STOP,
            key=SwitchKey(SwitchScope.OWNER, owner),
            reason="x" * MAX_SWITCH_REASON_LENGTH,
            rate=Rate(f"owner/{owner}", 10_000, 86_400, 10_000),
        )
        for owner in owners
    ]
    assert DynamoSwitchStore(moto_cloud.dynamodb, table).save(Switches({switch.key: switch for switch in long}), "one")
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item[schema.PARTITION_KEY] == {"S": schema.SWITCH_PREFIX}
    assert read_units(item_size(item), consistent=False) <= 5
