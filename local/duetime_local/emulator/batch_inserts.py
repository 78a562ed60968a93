"""Executes PartiQL batch insertions as ordinary writes.

For batch insertions, MiniStack 1.5.33 creates no records in the table's stream, and it counts one capacity unit for
each item, regardless of the item's size. This module executes each insertion as a conditional `PutItem`, as AWS does.

The emulator's own Python runs this module, so it imports only the standard library.
"""

from __future__ import annotations

import json
from typing import Any

_CONDITION_FAILED = "ConditionalCheckFailedException"
_UNITS = "CapacityUnits"


class BatchInserts:
    """Replaces the emulator's `BatchExecuteStatement` for batches that contain only insertions.

    Args:
        engine: the emulator's DynamoDB module.
    """

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 - a module of the emulator
        self._parse = engine._parse_partiql  # noqa: SLF001 - the emulator has no hook for this
        self._put = engine._put_item  # noqa: SLF001 - same
        self._most: int = engine._DDB_BATCH_PARTIQL_MAX  # noqa: SLF001 - same
        self._respond = engine.json_response
        self._otherwise = engine._batch_execute_statement  # noqa: SLF001 - same
        self._tables = engine._tables  # noqa: SLF001 - same

    def execute(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - a response, as the emulator has them
        """Execute a batch of statements."""
        try:
            inserts = [self._parse(each["Statement"], each.get("Parameters", [])) for each in data["Statements"]]
        except (KeyError, ValueError):
            return self._otherwise(data)
        if len(inserts) > self._most or any(each["op"] != "INSERT" for each in inserts):
            return self._otherwise(data)
        responses, capacity = [], []
        for insert in inserts:
            response, units = self._insert(insert["table"], insert["item"])
            responses.append(response)
            capacity += units
        answer: dict[str, Any] = {"Responses": responses}
        if data.get("ReturnConsumedCapacity", "NONE") != "NONE":
            answer["ConsumedCapacity"] = capacity
        return self._respond(answer)

    def _insert(self, table: str, item: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        if table not in self._tables:
            return {"Error": {"Code": "ResourceNotFound", "Message": "Requested resource not found"}}, []
        request = {
            "TableName": table,
            "Item": item.get("M", item) if set(item) == {"M"} else item,
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": self._tables[table]["pk_name"]},
            "ReturnConsumedCapacity": "INDEXES",
        }
        status, _, body = self._put(request)
        answer = json.loads(body)
        if status == 200:  # noqa: PLR2004 - OK
            return {"TableName": table}, [answer["ConsumedCapacity"]]
        kind = answer.get("__type", "").rpartition("#")[2]
        if kind == _CONDITION_FAILED:
            error = {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}
            return {"TableName": table, "Error": error}, [{"TableName": table, _UNITS: 1.0}]
        return {"Error": {"Code": "ValidationError", "Message": answer.get("message", kind)}}, []
