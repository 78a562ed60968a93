"""Stores intake rules in DynamoDB. All rules are in one item, so that one read returns them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.task_items import unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.errors import IntakeRulesFull
from duetime.domain.intake_rules import IntakeAction, IntakeRule, IntakeRules
from duetime.domain.limits import MAX_INTAKE_RULES_BYTES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_RULES = "b"
_KEY: Item = {
    schema.PARTITION_KEY: attribute_values.text(schema.INTAKE_RULES_PREFIX),
    schema.SORT_KEY: attribute_values.text("rules"),
}


class DynamoIntakeRuleStore:
    """The `duetime.ports.stores.IntakeRuleStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, *, consistent: bool) -> IntakeRules:
        """Read all intake rules; empty if no rules are stored.

        Raises:
            RecordUnreadable: this version of duetime cannot read the stored form.
        """
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=consistent)
        return _rules(answer["Item"]) if "Item" in answer else IntakeRules()

    def save(self, rules: IntakeRules, nonce: str) -> bool:
        """Store all intake rules, if the stored item still has the version that was read.

        Raises:
            IntakeRulesFull: the total size of the rules is too large.
        """
        forms = [asdict(each) for each in rules.by_name.values()]
        packed = attribute_values.packed(json.dumps(forms, ensure_ascii=False, separators=(",", ":")).encode())
        if len(packed.get("B") or packed["S"]) > MAX_INTAKE_RULES_BYTES:
            raise IntakeRulesFull(f"{MAX_INTAKE_RULES_BYTES} compressed bytes of intake rules")
        item = {
            **_KEY,
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            _RULES: packed,
        }
        return save_next(self._client, self._table, item, rules.version, nonce)


def _rules(item: StoredItem) -> IntakeRules:
    with unreadable_as_error(item):
        forms = json.loads(attribute_values.unpacked(item[_RULES]))
        found = [IntakeRule(**{**form, "action": IntakeAction(form["action"])}) for form in forms]
        return IntakeRules({each.name: each for each in found}, version_of(item))
