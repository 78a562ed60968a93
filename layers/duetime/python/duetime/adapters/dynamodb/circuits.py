"""Circuits of HTTP hosts, in DynamoDB: an item for each host that has failed; those not closed are in a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws import translated
from duetime.adapters.dynamodb import schema, values
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.versions import save_next, version_of
from duetime.domain.circuits import Circuit

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.values import Item, StoredItem
    from duetime.domain.times import Millis

_OPENINGS, _OPEN_UNTIL, _PROBE_UNTIL, _REASON, _OPENED_AT = "o", "u", "w", "r", "c"


class DynamoCircuitStore:
    """`duetime.ports.stores.CircuitStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, host: str, *, consistent: bool) -> Circuit:
        """Read the circuit of a host; it is closed while nothing is stored."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(host), ConsistentRead=consistent)
        return _circuit(answer["Item"]) if "Item" in answer else Circuit(host)

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, if it is still at the version that was read."""
        return save_next(self._client, self._table, _item_of(circuit, expires_at), circuit.version, nonce)

    def list_open(self, limit: int) -> list[Circuit]:
        """Circuits that are not closed, by their hosts' names, eventually consistently."""
        with translated():
            answer = self._client.query(
                TableName=self._table,
                IndexName=schema.OWNER_INDEX.name,
                KeyConditionExpression="#g = :g",
                ExpressionAttributeNames={"#g": schema.OWNER_INDEX.partition_key},
                ExpressionAttributeValues={":g": values.text(schema.CIRCUIT_LIST)},
                Limit=limit,
            )
        keys = [_key_of(values.string(item[schema.SORT_KEY])) for item in answer["Items"]]
        found = (_circuit(item) for item in read_items(self._client, self._table, keys))
        return sorted((circuit for circuit in found if circuit.openings), key=lambda circuit: circuit.host)


def _key_of(host: str) -> Item:
    return {
        schema.PARTITION_KEY: values.text(f"{schema.CIRCUIT_PREFIX}{host}"),
        schema.SORT_KEY: values.text(host),
    }


def _item_of(circuit: Circuit, expires_at: Millis) -> Item:
    item: Item = {
        **_key_of(circuit.host),
        schema.VERSION_OF_SCHEMA: values.number(schema.SCHEMA_VERSION),
        _OPENINGS: values.number(circuit.openings),
        _OPEN_UNTIL: values.number(circuit.open_until),
        _PROBE_UNTIL: values.number(circuit.probe_until),
        _REASON: values.packed(circuit.reason.encode()),
        _OPENED_AT: values.number(circuit.opened_at),
        schema.TTL: values.expiry(expires_at),
    }
    return item | {schema.OWNER_KEY: values.text(schema.CIRCUIT_LIST)} if circuit.openings else item


def _circuit(item: StoredItem) -> Circuit:
    return Circuit(
        host=values.string(item[schema.SORT_KEY]),
        openings=values.whole(item[_OPENINGS]),
        open_until=values.whole(item[_OPEN_UNTIL]),
        probe_until=values.whole(item[_PROBE_UNTIL]),
        reason=values.unpacked(item[_REASON]).decode(),
        opened_at=values.whole(item[_OPENED_AT]),
        version=version_of(item),
    )
