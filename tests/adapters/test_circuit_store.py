from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore
from duetime.domain.circuit_breakers import Circuit
from duetime.domain.times import DAY
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import CircuitStore
    from tests.adapters.clouds import Cloud

LATER = HOME + DAY
OPEN = Circuit("ann", "example.org").opened("Http503", HOME)
PROBED = replace(Circuit("an#n", "b.example.org:8443").opened("ReadTimeoutError", HOME + 5), probe_until=HOME + 60_000)


def test_a_host_that_never_failed_is_closed(circuit_store: CircuitStore) -> None:
    """A circuit that was never saved is read as closed at version 0, and is not listed."""
    assert circuit_store.read("ann", "example.org", consistent=False) == Circuit("ann", "example.org")
    assert circuit_store.list_open(10) == []


def test_a_circuit_is_read_back_unchanged(circuit_store: CircuitStore) -> None:
    """A saved circuit is read back with every field and the next version."""
    for circuit in (OPEN, PROBED):
        assert circuit_store.save(circuit, f"open {circuit.host}", LATER)
        assert circuit_store.read(circuit.owner, circuit.host, consistent=True) == replace(circuit, version=1)


def test_the_second_save_of_a_circuit_at_one_version_is_rejected(circuit_store: CircuitStore) -> None:
    """If two saves are based on one version, the second save is refused, but a repeated save is accepted."""
    circuit_store.save(OPEN, "open", LATER)
    seen = circuit_store.read(OPEN.owner, OPEN.host, consistent=True)
    assert circuit_store.save(seen.probed(HOME + 90_000), "mine", LATER)
    assert not circuit_store.save(seen.probed(HOME + 91_000), "yours", LATER)
    assert circuit_store.save(seen.probed(HOME + 90_000), "mine", LATER)
    assert circuit_store.read(OPEN.owner, OPEN.host, consistent=True).probe_until == HOME + 90_000


def test_only_circuits_that_are_not_closed_are_listed(circuit_store: CircuitStore) -> None:
    """Open circuits are listed by host up to the limit, and closed circuits are not listed."""
    for circuit in (OPEN, PROBED):
        circuit_store.save(circuit, f"open {circuit.host}", LATER)
    assert [circuit.host for circuit in circuit_store.list_open(10)] == [PROBED.host, OPEN.host]
    assert len(circuit_store.list_open(1)) == 1
    circuit_store.save(replace(PROBED.closed(), version=1), "close", LATER)
    assert circuit_store.list_open(10) == [replace(OPEN, version=1)]
    assert circuit_store.read(PROBED.owner, PROBED.host, consistent=True) == Circuit(
        PROBED.owner, PROBED.host, version=2
    )


def test_a_closed_circuit_is_not_in_the_index(moto_cloud: Cloud) -> None:
    """Only open circuits are in the index, so a list of open circuits is not crowded out by closed ones."""
    table = moto_cloud.table()
    store = DynamoCircuitStore(moto_cloud.dynamodb, table)
    store.save(OPEN, "open", LATER)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item[schema.OWNER_KEY] == {"S": schema.CIRCUIT_LIST}
    store.save(replace(OPEN.closed(), version=1), "close", LATER)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert schema.OWNER_KEY not in item


def test_each_owner_has_a_separate_circuit(circuit_store: CircuitStore) -> None:
    """A circuit opened by one owner's calls is closed for other owners."""
    circuit_store.save(OPEN, "open", LATER)
    assert circuit_store.read("bob", OPEN.host, consistent=True) == Circuit("bob", OPEN.host)
    other = replace(OPEN, owner="bob")
    assert circuit_store.save(other, "too", LATER)
    assert [circuit.owner for circuit in circuit_store.list_open(10)] == ["ann", "bob"]
