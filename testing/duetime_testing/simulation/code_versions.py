"""Simulates older and newer code that run side by side, by modifying the requests that each version sends.

Older code writes records with the previous schema version; newer code writes an unknown attribute.
`docs/decisions/upgrades.md` allows both differences.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.batches import insertion
from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.domain.ids import TaskId
from duetime_testing.fakes.statements import inserted_item

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "zz9"
"""An attribute that only newer code knows."""
_VALUE = {"S": "of newer code"}
_STATE = ATTRIBUTES["state"].name
_PREVIOUS = {"N": str(schema.SCHEMA_VERSION - 1)}


class Generation(Enum):
    """The code version on a machine."""

    PRESENT = "writes what this code writes"
    OLDER = "writes records at the version before"
    NEWER = "writes an attribute that this code does not know"

    def request(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return a request as code of this generation would send it."""
        if self is Generation.OLDER and operation == "put_item" and _STATE in request["Item"]:
            return request | {"Item": request["Item"] | {schema.VERSION_OF_SCHEMA: _PREVIOUS}}
        if self is Generation.NEWER and operation == "put_item" and _STATE in request["Item"]:
            return request | {"Item": request["Item"] | {UNKNOWN: _VALUE}}
        if operation == "batch_execute_statement" and self is not Generation.PRESENT:
            return request | {"Statements": [self._insertion(each) for each in request["Statements"]]}
        if self is Generation.NEWER and operation == "update_item" and _is_of_record(request):
            return _with_unknown(request)
        return request

    def _insertion(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        """Return the insertion of a record as code of this generation would send it."""
        table, item = inserted_item(statement["Statement"], statement["Parameters"])
        return dict(insertion(table, self.request("put_item", {"Item": item})["Item"]))


def _is_of_record(request: Mapping[str, Any]) -> bool:
    key = request["Key"][schema.SORT_KEY]["S"]
    is_set = str(request["UpdateExpression"]).startswith("SET ")
    return is_set and len(key) == len(TaskId.of(0, 0, 0).text) and "#" not in key


def _with_unknown(request: dict[str, Any]) -> dict[str, Any]:
    return request | {
        "UpdateExpression": f"SET #zz9 = :zz9, {request['UpdateExpression'].removeprefix('SET ')}",
        "ExpressionAttributeNames": {**request["ExpressionAttributeNames"], "#zz9": UNKNOWN},
        "ExpressionAttributeValues": {**request["ExpressionAttributeValues"], ":zz9": _VALUE},
    }
