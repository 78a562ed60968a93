"""Stores circuit breakers for HTTP hosts in DynamoDB.

Each owner and failed host has an item. Open circuits are also listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import sort_keys
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.circuit_breakers import Circuit

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis

_MARK = "#"
_OPENINGS, _OPEN_UNTIL, _PROBE_UNTIL, _REASON, _OPENED_AT = "o", "u", "w", "r", "c"


class DynamoCircuitStore:
    """The `duetime.ports.stores.CircuitStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read the circuit for an owner's calls to a host; if no circuit is stored, return a closed circuit."""
        key = _key_of(_name_of(Circuit(owner, host)))
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=consistent)
        return _circuit(answer["Item"]) if "Item" in answer else Circuit(owner, host)

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, if the stored circuit still has the version that was read."""
        return save_next(self._client, self._table, _item_of(circuit, expires_at), circuit.version, nonce)

    def list_open(self, limit: int) -> list[Circuit]:
        """Read the circuits that are not closed, in order of host name and with eventual consistency."""
        keys = [_key_of(name) for name in sort_keys(self._client, self._table, schema.CIRCUIT_LIST, limit)]
        found = (_circuit(item) for item in read_items(self._client, self._table, keys))
        return sorted(
            (circuit for circuit in found if circuit.openings), key=lambda circuit: (circuit.host, circuit.owner)
        )


def _name_of(circuit: Circuit) -> str:
    return f"{circuit.owner}{_MARK}{circuit.host}"


def _key_of(name: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CIRCUIT_PREFIX}{name}"),
        schema.SORT_KEY: attribute_values.text(name),
    }


def _item_of(circuit: Circuit, expires_at: Millis) -> Item:
    item: Item = {
        **_key_of(_name_of(circuit)),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _OPENINGS: attribute_values.number(circuit.openings),
        _OPEN_UNTIL: attribute_values.number(circuit.open_until),
        _PROBE_UNTIL: attribute_values.number(circuit.probe_until),
        _REASON: attribute_values.packed(circuit.reason.encode()),
        _OPENED_AT: attribute_values.number(circuit.opened_at),
        schema.TTL: attribute_values.expiry(expires_at),
    }
    return item | {schema.OWNER_KEY: attribute_values.text(schema.CIRCUIT_LIST)} if circuit.openings else item


def _circuit(item: StoredItem) -> Circuit:
    # A host name contains no mark, so the last mark separates the owner from the host name.
    owner, _, host = attribute_values.string(item[schema.SORT_KEY]).rpartition(_MARK)
    return Circuit(
        owner=owner,
        host=host,
        openings=attribute_values.integer(item[_OPENINGS]),
        open_until=attribute_values.integer(item[_OPEN_UNTIL]),
        probe_until=attribute_values.integer(item[_PROBE_UNTIL]),
        reason=attribute_values.unpacked(item[_REASON]).decode(),
        opened_at=attribute_values.integer(item[_OPENED_AT]),
        version=version_of(item),
    )
