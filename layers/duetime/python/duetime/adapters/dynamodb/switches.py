"""Stores switches in DynamoDB, with one item for operators' switches and one item for owners' switches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.task_items import unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.switches import StoredSwitches, Switch, Switches, SwitchKey, SwitchScope, SwitchSetter
from duetime.domain.tasks.task_options import Rate

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_SWITCHES = "b"


class DynamoSwitchStore:
    """The `duetime.ports.stores.SwitchStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, *, consistent: bool) -> StoredSwitches:
        """Read all switches in a single request; empty if no switches are stored.

        Raises:
            RecordUnreadable: this version of duetime cannot read the stored form.
        """
        # The two items, of at most 40 KB each, fit into one page.
        with translated():
            items = self._client.query(
                TableName=self._table,
                ConsistentRead=consistent,
                KeyConditionExpression=f"{schema.PARTITION_KEY} = :p",
                ExpressionAttributeValues={":p": attribute_values.text(schema.SWITCH_PREFIX)},
            )["Items"]
        found = {each.setter: each for each in map(_switches, items)}
        return StoredSwitches(
            *(found.get(setter, Switches(setter=setter)) for setter in (SwitchSetter.OPERATORS, SwitchSetter.OWNERS))
        )

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store the switches of a setter, if the stored item still has the version that was read."""
        return save_next(self._client, self._table, _item_of(switches), switches.version, nonce)


def _key(setter: SwitchSetter) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(schema.SWITCH_PREFIX),
        schema.SORT_KEY: attribute_values.text(setter.value),
    }


def _item_of(switches: Switches) -> Item:
    forms = json.dumps([_form(switch) for switch in switches.by_key.values()], separators=(",", ":"))
    return {
        **_key(switches.setter),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _SWITCHES: attribute_values.packed(forms.encode()),
    }


def _form(switch: Switch) -> list[Any]:
    """The switch's fields in order. The rate's key is left out, because the switch determines it."""
    key, rate = switch.key, switch.rate
    limits = [
        switch.stopped,
        switch.max_concurrent,
        None if rate is None else [rate.limit, rate.per_seconds, rate.burst],
    ]
    return [key.scope, key.name, *limits, switch.reason, switch.updated_at, switch.updated_by]


def _switches(item: StoredItem) -> Switches:
    with unreadable_as_error(item):
        found = [_switch(form) for form in json.loads(attribute_values.unpacked(item[_SWITCHES]))]
        setter = SwitchSetter(item[schema.SORT_KEY]["S"])
        return Switches({switch.key: switch for switch in found}, version_of(item), setter)


def _switch(form: list[Any]) -> Switch:
    scope, name, stopped, max_concurrent, rate, reason, updated_at, updated_by = form
    key = SwitchKey(SwitchScope(scope), name)
    found = None if rate is None else Rate(key.resource, *rate)
    return Switch(key, stopped, max_concurrent, reason, updated_at, updated_by, found)
