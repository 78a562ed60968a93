"""Switches, in DynamoDB: all of them in one item, so that one small read tells a process everything."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.task_items import unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.switches import ALL_TASKS, Switch, Switches, SwitchKey, SwitchScope
from duetime.domain.tasks.task_options import Rate

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_SWITCHES, _RATES = "b", "r"
"""The rates have an attribute of their own: code of an earlier version reads the switches without them."""
_NONE = attribute_values.packed(b"[]")
_ALL_TASKS = ["everything", ""]
"""How the switch for all tasks is stored: its first name, which stored values keep."""
_KEY: Item = {
    schema.PARTITION_KEY: attribute_values.text(schema.SWITCH_PREFIX),
    schema.SORT_KEY: attribute_values.text("switches"),
}


class DynamoSwitchStore:
    """`duetime.ports.stores.SwitchStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, *, consistent: bool) -> Switches:
        """Read all switches; there are none while nothing is stored.

        Raises:
            RecordUnreadable: what is stored is not what this code, or any earlier one, writes.
        """
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=consistent)
        return _switches(answer["Item"]) if "Item" in answer else Switches()

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store all switches, if they are still at the version that was read."""
        return save_next(self._client, self._table, _item_of(switches), switches.version, nonce)


def _item_of(switches: Switches) -> Item:
    every = switches.by_key.values()
    told = json.dumps([_told(switch) for switch in every], separators=(",", ":"))
    rates = json.dumps([_told_rate(each.rate) for each in every if each.rate is not None], separators=(",", ":"))
    return {
        **_KEY,
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _SWITCHES: attribute_values.packed(told.encode()),
        _RATES: attribute_values.packed(rates.encode()),
    }


def _told(switch: Switch) -> list[Any]:
    key = _ALL_TASKS if switch.key == ALL_TASKS else [switch.key.scope, switch.key.name]
    by = (switch.reason, switch.updated_at, switch.updated_by)
    return [*key, switch.stopped, switch.max_concurrent, *by]


def _told_rate(rate: Rate) -> list[Any]:
    return [rate.key, rate.limit, rate.per_seconds, rate.burst]


def _switches(item: StoredItem) -> Switches:
    with unreadable_as_error(item):
        switches = [_switch(*told) for told in json.loads(attribute_values.unpacked(item[_SWITCHES]))]
        rates = [Rate(*told) for told in json.loads(attribute_values.unpacked(item.get(_RATES, _NONE)))]
        by_resource = {rate.key: rate for rate in rates}
        found = [replace(switch, rate=by_resource.get(switch.key.resource)) for switch in switches]
        return Switches({switch.key: switch for switch in found}, version_of(item))


def _switch(scope: str, name: str, *rest: Any) -> Switch:  # noqa: ANN401 - the fields of a switch, in their order
    key = ALL_TASKS if [scope, name] == _ALL_TASKS else SwitchKey(SwitchScope(scope), name)
    return Switch(key, *rest)
