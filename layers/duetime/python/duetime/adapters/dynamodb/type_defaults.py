"""Stores type defaults in DynamoDB. All defaults of an owner are in one item, so that one small read returns them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.task_items import unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.tasks.type_defaults import OwnDefaults, OwnerTypes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_TYPES = "b"


class DynamoTypeDefaultsStore:
    """The `duetime.ports.stores.TypeDefaultsStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, owner: str, *, consistent: bool) -> OwnerTypes:
        """Read all defaults of an owner; empty if no defaults are stored.

        Raises:
            RecordUnreadable: this version of duetime cannot read the stored form.
        """
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key(owner), ConsistentRead=consistent)
        return _types(answer["Item"]) if "Item" in answer else OwnerTypes()

    def save(self, owner: str, types: OwnerTypes, nonce: str) -> bool:
        """Store all defaults of an owner, if the stored item still has the version that was read."""
        forms = {name: [each.options, each.updated_at, each.updated_by] for name, each in types.by_type.items()}
        item = {
            **_key(owner),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            _TYPES: attribute_values.packed(json.dumps(forms, ensure_ascii=False, separators=(",", ":")).encode()),
        }
        return save_next(self._client, self._table, item, types.version, nonce)


def _key(owner: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.TYPE_DEFAULTS_PREFIX}{owner}"),
        schema.SORT_KEY: attribute_values.text("types"),
    }


def _types(item: StoredItem) -> OwnerTypes:
    with unreadable_as_error(item):
        forms = json.loads(attribute_values.unpacked(item[_TYPES]))
        return OwnerTypes({name: OwnDefaults(*form) for name, form in forms.items()}, version_of(item))
