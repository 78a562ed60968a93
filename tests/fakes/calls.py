"""Draws random DynamoDB calls of the kinds that the stores make, and hostile calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.batches import insertion

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_PARTITIONS = ["2026-11-21T02:33#0007", "x#01", "l#ann#db"]
_SORTS = ["#db", "01AAAA", "01AAAA#w#2", "01BBBB", "line#000001", "é"]
_OWNERS = ["ann#3", "ann#L1", "#C"]
_NAMES = {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY, "#g": schema.OWNER_KEY, "#f": schema.FAILED_KEY}
_NAMES |= {"#a": "sa", "#b": "sb", "#x": "sx"}
_NAMES |= {"#n": "n", "#t": "t", "#m": "m", "#id": "01AAAA", "#e": "e", "#q": "status", "#z": "zz"}
_WORDS = ["scheduled", "running", "", "7 99", "70", "é\U0001f4a5"]
_ORDERED = ["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Drawn:
    """A call that was drawn."""

    operation: str
    request: dict[str, Any]

    def on(self, table: str) -> Drawn:
        """Return the call for a table with this name."""
        request = dict(self.request)
        if "RequestItems" in request:
            request["RequestItems"] = {table: request["RequestItems"]}
        elif "Statements" in request:
            request["Statements"] = [insertion(table, item) for item in request["Statements"]]
        else:
            request.setdefault("TableName", table)
        return Drawn(self.operation, request)

    def comparable(self, answer: Any, table: str) -> Any:  # noqa: ANN401 - any answer
        """Return a response without the parts that may differ, such as a batch's order and the table's name."""
        answer = _in_order(answer)
        if self.operation == "batch_execute_statement" and isinstance(answer, dict):
            return [response.get("Error", {}).get("Code") for response in answer["Responses"]]
        if self.operation != "batch_get_item" or not isinstance(answer, dict):
            return answer
        found = sorted(answer["Responses"].get(table, []), key=str)
        return [{name: item[name] for name in sorted(item)} for item in found], answer["UnprocessedKeys"]


def _in_order(answer: Any) -> Any:  # noqa: ANN401 - any answer
    """Return a response with the members of sets, which have no order, sorted."""
    if isinstance(answer, dict):
        return {name: sorted(each) if name == "NS" else _in_order(each) for name, each in answer.items()}
    return type(answer)(map(_in_order, answer)) if isinstance(answer, (list, tuple)) else answer


class StoreCalls:
    """Draws calls; most calls use the same few items, so that calls interact."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names: set[str] = set()
        self.values: dict[str, Any] = {}

    def draw(self) -> Drawn:
        """Draw the next call."""
        self.names, self.values = set(), {}
        kinds: list[Callable[[], Drawn]] = [self._put, self._update, self._update, self._delete, self._get]
        kinds += [self._batch, self._batch_write, self._insert, self._query, self._query, self._index_query, self._edge]
        drawn = self.random.choice(kinds)()
        return self._spoilt(drawn) if self.random.random() < 0.08 else drawn

    def _put(self) -> Drawn:
        request: dict[str, Any] = {"Item": self._item()}
        self._maybe_conditional(request)
        return Drawn("put_item", request)

    def _update(self) -> Drawn:
        request = {"Key": self._key(), "UpdateExpression": self._changes()}
        if self.random.random() < 0.7:
            request["ReturnValues"] = "ALL_NEW"
        self._maybe_conditional(request)
        return Drawn("update_item", request)

    def _edge(self) -> Drawn:
        """Count a graph's edge by adding a number to one of two sets, unless one of the sets already has the number."""
        number = {"N": str(self.random.randint(0, 6))}
        wanted = self._name(self.random.choice(["#a", "#b"]))
        changes = f"ADD {wanted} {self._value(':ps', {'NS': [number['N']]})}"
        changes += f" SET {self._name('#x')} = {self._value(':x', {'N': '17'})}"
        key = {schema.PARTITION_KEY: {"S": self.random.choice(_PARTITIONS)}, schema.SORT_KEY: {"S": "c0"}}
        if self.random.random() < 0.2:
            key = self._key()
        request: dict[str, Any] = {"Key": key, "UpdateExpression": changes, "ReturnValues": "ALL_OLD"}
        if self.random.random() < 0.8:
            names = [self._name("#a"), self._name("#b")]
            self._value(":p", number)
            request["ConditionExpression"] = " AND ".join(f"NOT contains({name}, :p)" for name in names)
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return Drawn("update_item", self._filled(request))

    def _delete(self) -> Drawn:
        request: dict[str, Any] = {"Key": self._key()}
        self._maybe_conditional(request)
        return Drawn("delete_item", request)

    def _get(self) -> Drawn:
        return Drawn("get_item", {"Key": self._key(), "ConsistentRead": True})

    def _batch(self) -> Drawn:
        keys = [self._key() for _ in range(self.random.randint(1, 4))]
        different = [key for number, key in enumerate(keys) if key not in keys[:number]]
        return Drawn("batch_get_item", {"RequestItems": {"Keys": different, "ConsistentRead": True}})

    def _batch_write(self) -> Drawn:
        requests: dict[str, Any] = {}
        for _ in range(self.random.randint(1, 4)):
            item = self._item()
            key = {name: item[name] for name in (schema.PARTITION_KEY, schema.SORT_KEY)}
            is_put = self.random.random() < 0.6
            requests[str(key)] = {"PutRequest": {"Item": item}} if is_put else {"DeleteRequest": {"Key": key}}
        return Drawn("batch_write_item", {"RequestItems": list(requests.values())})

    def _insert(self) -> Drawn:
        items = [self._item() for _ in range(self.random.randint(1, 4))]
        if self.random.random() < 0.1:
            items[0]["n"] = {"N": "1" * 39}
        return Drawn("batch_execute_statement", {"Statements": items})

    def _query(self) -> Drawn:
        text = f"{self._name('#p')} = {self._value(':p', {'S': self.random.choice(_PARTITIONS)})}"
        text += self._of_the_sort_key()
        request: dict[str, Any] = {"KeyConditionExpression": text, "ConsistentRead": True}
        if self.random.random() < 0.4:
            request["ProjectionExpression"] = ", ".join(map(self._name, ["#s", "#t", "#m"]))
        return Drawn("query", self._page(request))

    def _index_query(self) -> Drawn:
        index = self.random.choice(schema.INDEXES)
        label = "#g" if index is schema.OWNER_INDEX else "#f"
        text = f"{self._name(label)} = {self._value(':g', {'S': self.random.choice(_OWNERS)})}"
        text += self._of_the_sort_key()
        # Items with the same sort key have no order in an index, so a page must contain all of them.
        request = {"KeyConditionExpression": text, "IndexName": index.name, "Limit": 100}
        return Drawn("query", self._filled(request))

    def _of_the_sort_key(self) -> str:
        draw = self.random.random()
        if draw < 0.4:
            return ""
        value = self._value(":s", {"S": self.random.choice([*_SORTS, "01", "line#"])})
        if draw < 0.6:
            return f" AND begins_with({self._name('#s')}, {value})"
        if draw < 0.7:
            return f" AND {self._name('#s')} BETWEEN {value} AND {self._value(':u', {'S': '01ZZ'})}"
        return f" AND {self._name('#s')} {self.random.choice(['<', '>', '<=', '>=', '='])} {value}"

    def _page(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.random.random() < 0.3:
            request["ScanIndexForward"] = False
        if self.random.random() < 0.4:
            request["Limit"] = self.random.randint(1, 4)
        if self.random.random() < 0.2:
            partition = self.values[":p"]
            request["ExclusiveStartKey"] = {schema.PARTITION_KEY: partition, schema.SORT_KEY: self._key()["s"]}
        return self._filled(request)

    def _maybe_conditional(self, request: dict[str, Any]) -> None:
        if self.random.random() < 0.7:
            request["ConditionExpression"] = self._condition(2)
        if self.random.random() < 0.6:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        self._filled(request)

    def _filled(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.names:
            request["ExpressionAttributeNames"] = {label: _NAMES[label] for label in sorted(self.names)}
        if self.values:
            request["ExpressionAttributeValues"] = dict(self.values)
        return request

    def _condition(self, depth: int) -> str:
        draw = self.random.random()
        if depth and draw < 0.4:
            joined = self.random.choice([" AND ", " OR "])
            both = joined.join(self._condition(depth - 1) for _ in range(2))
            return f"({both})" if depth < 2 else both
        if depth and draw < 0.47:
            return f"NOT {self._condition(0)}"
        if draw < 0.6:
            function = self.random.choice(["attribute_exists", "attribute_not_exists"])
            return f"{function}({self._path()})"
        if draw < 0.7:
            # Only strings are compared, because the engine refuses the request if an attribute has a different type.
            path = self.random.choice(["#p", "#g", "#m.#id"])
            names = ", ".join(map(self._name, path.split("."))).replace(", ", ".")
            return f"begins_with({names}, {self._fresh({'S': self.random.choice(['7', 'a', '2026'])})})"
        if draw < 0.8:
            options = ", ".join(self._fresh(self._scalar()) for _ in range(self.random.randint(1, 4)))
            return f"{self._name('#q')} IN ({options})"
        return f"{self._path()} {self.random.choice(_ORDERED)} {self._fresh(self._scalar())}"

    def _changes(self) -> str:
        pick = self.random.choice
        labels = self.random.sample(["#n", "#t", "#e", "#q", "#g", "#m", "#f"], self.random.randint(1, 4))
        sets: list[str] = []
        adds: list[str] = []
        removes: list[str] = []
        for label in labels:
            name = self._name(label)
            if label in {"#g", "#f"}:
                (sets if pick([True, False]) else removes).append(name)
                if sets and sets[-1] == name:
                    sets[-1] = f"{name} = {self._fresh({'S': pick(_OWNERS)})}"
            elif label == "#m":
                sets.append(f"{name}.{self._name('#id')} = {self._fresh({'S': pick(['7 99', '8 1'])})}")
            elif label == "#e":
                sets.append(self._counting(name))
            elif label == "#n":
                kind = "S" if self.random.random() < 0.05 else "N"
                adds.append(f"{name} {self._fresh({kind: pick(['1', '0', '-2', '5'])})}")
            else:
                sets.append(self._setting(name))
        clauses = [f"SET {', '.join(sets)}"] if sets else []
        clauses += [f"ADD {', '.join(adds)}"] if adds else []
        clauses += [f"REMOVE {', '.join(removes)}"] if removes else []
        return " ".join(clauses)

    def _setting(self, name: str) -> str:
        if self.random.random() < 0.7:
            return f"{name} = {self._fresh(self._value_of_any_kind())}"
        return f"{name} = if_not_exists({name}, {self._fresh(self._scalar())})"

    def _counting(self, name: str) -> str:
        """Change a short number; the engine does not refuse other types, and rounds numbers with too many digits."""
        draw = self.random.random()
        if draw < 0.4:
            return f"{name} = {self._fresh({'N': self.random.choice(['0', '7', '-3', '1795228387250'])})}"
        if draw < 0.8:
            return f"{name} = if_not_exists({name}, {self._fresh({'N': '10'})}) + {self._fresh({'N': '1'})}"
        return f"{name} = {name} {self.random.choice('+-')} {self._fresh({'N': '3'})}"

    def _path(self) -> str:
        if self.random.random() < 0.25:
            return f"{self._name('#m')}.{self._name('#id')}"
        return self._name(self.random.choice(["#p", "#n", "#t", "#e", "#q", "#z", "#g"]))

    def _name(self, label: str) -> str:
        self.names.add(label)
        return label

    def _fresh(self, value: Any) -> str:  # noqa: ANN401 - any attribute value
        return self._value(f":v{len(self.values)}", value)

    def _value(self, label: str, value: Any) -> str:  # noqa: ANN401 - same
        self.values[label] = value
        return label

    def _key(self) -> dict[str, Any]:
        return {
            schema.PARTITION_KEY: {"S": self.random.choice(_PARTITIONS)},
            schema.SORT_KEY: {"S": self.random.choice(_SORTS)},
        }

    def _item(self) -> dict[str, Any]:
        item = self._key()
        for label in self.random.sample(["#t", "#q"], self.random.randint(0, 2)):
            item[_NAMES[label]] = self._value_of_any_kind()
        for label in self.random.sample(["#n", "#e"], self.random.randint(0, 2)):
            item[_NAMES[label]] = {"N": self.random.choice(["0", "1", "3", "-7", "1795228387250"])}
        if self.random.random() < 0.5:
            item["m"] = {"M": {"01AAAA": {"S": "7 99"}} if self.random.random() < 0.7 else {}}
        for name in (schema.OWNER_KEY, schema.FAILED_KEY):
            if self.random.random() < 0.4:
                item[name] = {"S": self.random.choice(_OWNERS)}
        return item

    def _scalar(self) -> dict[str, Any]:
        if self.random.random() < 0.6:
            return {"N": self.random.choice(["0", "1", "3", "-7", "10", "1795228387250", "9" * 38])}
        return {"S": self.random.choice(_WORDS)}

    def _value_of_any_kind(self) -> dict[str, Any]:
        others: list[dict[str, Any]] = [
            {"BOOL": True},
            {"B": b"\x00\xff"},
            {"NULL": True},
            {"L": [{"N": "3"}, {"S": "b"}]},
            {"M": {"k": {"L": []}}},
        ]
        return self.random.choice(others) if self.random.random() < 0.2 else self._scalar()

    def _spoilt(self, drawn: Drawn) -> Drawn:
        """Return the call with an element that DynamoDB refuses."""
        request = dict(drawn.request)
        if "Statements" in request:
            return Drawn(drawn.operation, {"Statements": request["Statements"] * 26})
        spoils: list[dict[str, Any]] = [{"TableName": "nobody"}] if "RequestItems" not in request else []
        if "Key" in request:
            spoils += [
                {"Key": {schema.PARTITION_KEY: {"S": "p"}}},
                {"Key": {schema.PARTITION_KEY: {"S": ""}, schema.SORT_KEY: {"S": "s"}}},
                {"Key": {schema.PARTITION_KEY: {"S": "p"}, schema.SORT_KEY: {"N": "1"}}},
            ]
        if "ConditionExpression" in request:
            spoils += [{"ConditionExpression": "#e ="}, {"ConditionExpression": "#e = :nobody"}]
        if "UpdateExpression" in request:
            spoils += [{"UpdateExpression": text} for text in ("SET #e", "SET p = :v0", "", "PUT #e = :v0")]
        if "Item" in request:
            spoils += [
                {"Item": {**request["Item"], schema.OWNER_KEY: {"S": ""}}},
                {"Item": {**request["Item"], schema.OWNER_KEY: {"N": "1"}}},
                {"Item": {**request["Item"], "n": {"N": "1" * 39}}},
                {"Item": {**request["Item"], "n": {"N": "one"}}},
                {"Item": {**request["Item"], "n": {"B": b"x" * 410_000}}},
            ]
        if "KeyConditionExpression" in request:
            spoils += [{"KeyConditionExpression": "#s = :s"}, {"KeyConditionExpression": "#p > :p"}]
        if drawn.operation == "batch_write_item":
            writes = request["RequestItems"]
            spoils.append({"RequestItems": [*writes, writes[0]]})
        elif "RequestItems" in request:
            keys = request["RequestItems"]["Keys"]
            spoils += [{"RequestItems": {"Keys": [*keys, keys[0]], "ConsistentRead": True}}]
        return Drawn(drawn.operation, request | self.random.choice(spoils))
