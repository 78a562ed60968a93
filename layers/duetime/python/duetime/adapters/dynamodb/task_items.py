"""Encodes a task's record as an item, and a domain `Write` to the record as one UpdateItem request.

`tests/domain/write_semantics.py` defines the meaning of writes. Every name uses a placeholder (`#due_at`), because
DynamoDB reserves hundreds of words, and the engines used in tests do not reject all of them.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.attribute_values import text
from duetime.adapters.dynamodb.field_codecs import TOPOLOGY
from duetime.domain.errors import RecordUnreadable
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import LEGAL, STARTABLE, TERMINAL, Move, State
from duetime.domain.tasks.task import RequestedAction, Task
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.conditional_writes import Guard, Write


@frozen
class Attribute:
    """The stored form of one field of `Task`.

    Attributes:
        field: name in `Task`.
        name: name in the item.
        encode: returns the attribute value; `None` omits the attribute, so that the field has its default.
        decode: reverses `encode`.
    """

    field: str
    name: str
    encode: Callable[[Any], Value | None]
    decode: Callable[[Value], Any]


ATTRIBUTES: dict[str, Attribute] = {
    attribute.field: attribute
    for attribute in (
        Attribute("type", "y", attribute_values.text, attribute_values.string),
        Attribute("state", schema.STATE, field_codecs.state, field_codecs.read_state),
        Attribute("due_at", "d", attribute_values.number, attribute_values.integer),
        Attribute("next_at", "n", attribute_values.number, attribute_values.integer),
        Attribute("created_at", "c", attribute_values.number, attribute_values.integer),
        Attribute("payload", "b", field_codecs.content, partial(field_codecs.read_content, "payload")),
        Attribute("priority", "q", field_codecs.priority, field_codecs.read_priority),
        Attribute("target", "u", field_codecs.target, field_codecs.read_target),
        Attribute("retry", "r", field_codecs.retry, field_codecs.RETRY.decode),
        Attribute("timeout_seconds", "o", field_codecs.unless_default("timeout_seconds"), attribute_values.integer),
        Attribute(
            "notify_within_seconds", "D", field_codecs.unless_default("notify_within_seconds"), attribute_values.integer
        ),
        Attribute("rollback_on_failure", "B", attribute_values.flag, attribute_values.truth),
        Attribute("lock", "K", field_codecs.LOCK.encode, field_codecs.LOCK.decode),
        Attribute("locks", "xl", field_codecs.locks, field_codecs.read_locks),
        Attribute("rate", "xr", field_codecs.RATE.encode, field_codecs.RATE.decode),
        Attribute("callback_url", "U", attribute_values.text, attribute_values.string),
        Attribute("notify_on", "I", field_codecs.NOTIFY_ON.encode, field_codecs.NOTIFY_ON.decode),
        Attribute("expires_seconds", "xs", attribute_values.number, attribute_values.integer),
        Attribute("fair_key", "fk", attribute_values.text, attribute_values.string),
        Attribute("fair_weight", "fw", field_codecs.unless_default("fair_weight"), attribute_values.integer),
        Attribute("unique", "xu", field_codecs.UNIQUE.encode, field_codecs.UNIQUE.decode),
        Attribute("debounce", "xd", field_codecs.DEBOUNCE.encode, field_codecs.DEBOUNCE.decode),
        Attribute("order", "xo", field_codecs.ORDER.encode, field_codecs.ORDER.decode),
        Attribute("order_number", "xn", attribute_values.number, attribute_values.integer),
        Attribute("name", "m", field_codecs.name, attribute_values.string),
        Attribute("tags", "T", field_codecs.tags, field_codecs.read_tags),
        Attribute("schedule_ref", "H", field_codecs.schedule_ref, field_codecs.read_schedule_ref),
        Attribute("parent_task_id", schema.PARENT_KEY, field_codecs.task_id, field_codecs.read_task_id),
        Attribute("group", "gr", attribute_values.text, attribute_values.string),
        Attribute("completes", "gc", attribute_values.text, attribute_values.string),
        Attribute("after", "xa", field_codecs.after, field_codecs.read_after),
        Attribute("has_dependents", "xw", attribute_values.flag, attribute_values.truth),
        Attribute("node_ref", "G", field_codecs.node_ref, field_codecs.read_node_ref),
        Attribute(
            "topology_schedule_ref",
            "HG",
            field_codecs.schedule_ref,
            field_codecs.read_schedule_ref,
        ),
        # Numbers in conditions are always stored, even if they are zero, so that conditions do not need a second form.
        Attribute("generation", "t", attribute_values.number, attribute_values.integer),
        Attribute("version", "e", attribute_values.number, attribute_values.integer),
        Attribute("fence", "k", attribute_values.number, attribute_values.integer),
        Attribute("attempt", "a", attribute_values.number, attribute_values.integer),
        Attribute("sent", "i", attribute_values.flag, attribute_values.truth),
        Attribute("nonce", "j", attribute_values.text, attribute_values.string),
        Attribute("lease_worker", "h", attribute_values.text, attribute_values.string),
        Attribute("lease_expires_at", "l", attribute_values.number, attribute_values.integer),
        Attribute("unacknowledged", "ua", attribute_values.number, attribute_values.integer),
        Attribute("lease_nonce", "ln", attribute_values.text, attribute_values.string),
        Attribute("deferred_fence", "w", attribute_values.number, attribute_values.integer),
        Attribute("job", "jb", attribute_values.text, attribute_values.string),
        Attribute("requested_action", "A", field_codecs.requested_action, field_codecs.read_requested_action),
        Attribute("waiting_for", "W", attribute_values.text, attribute_values.string),
        Attribute("waits", "Y", field_codecs.waits, field_codecs.read_waits),
        Attribute("rate_places", "xp", field_codecs.rate_places, field_codecs.read_rate_places),
        Attribute("checkpoint", "C", field_codecs.content, partial(field_codecs.read_content, "checkpoint")),
        Attribute("progress", "P", field_codecs.PROGRESS.encode, field_codecs.PROGRESS.decode),
        Attribute("result", "R", field_codecs.content, partial(field_codecs.read_content, "result")),
        Attribute("error", "E", field_codecs.error, field_codecs.read_error),
        Attribute("started_at", "S", attribute_values.number, attribute_values.integer),
        Attribute("started_late", "SL", attribute_values.flag, attribute_values.truth),
        Attribute("run_at", "N", attribute_values.number, attribute_values.integer),
        Attribute("finished_at", "F", attribute_values.number, attribute_values.integer),
        Attribute("expires_at", schema.TTL, attribute_values.expiry, attribute_values.read_expiry),
        Attribute("attempt_history", "L", field_codecs.attempt_history, field_codecs.read_attempt_history),
        Attribute("reopened_fence", "J", attribute_values.number, attribute_values.integer),
        Attribute("rerun_nodes", "rn", field_codecs.nodes, field_codecs.read_nodes),
        Attribute("reopened_at", "ra", attribute_values.number, attribute_values.integer),
        Attribute("traceparent", "V", field_codecs.traceparent, field_codecs.read_traceparent),
        Attribute("erased", "Z", attribute_values.flag, attribute_values.truth),
        Attribute("actions", "Q", field_codecs.actions, field_codecs.read_actions),
        Attribute("cancellation", "X", field_codecs.action, field_codecs.read_action),
    )
}
"""Every field of `Task` except `id` and `owner`, which are in the keys."""
_BY_NAME = {attribute.name: attribute for attribute in ATTRIBUTES.values()}
_VALUES = attrgetter(*ATTRIBUTES)
_ENCODERS = [(attribute.name, attribute.encode) for attribute in ATTRIBUTES.values()]


def encoded(field: str, value: object) -> Value | None:
    """The stored value of one field; `None` if the attribute is omitted."""
    return None if value is None else ATTRIBUTES[field].encode(value)


def decoded(item: StoredItem, fields: Iterable[str]) -> dict[str, Any]:
    """The values of the given fields, without fields that the item does not have."""
    found = {}
    for field in fields:
        attribute = ATTRIBUTES[field]
        if (stored := item.get(attribute.name)) is not None:
            found[field] = attribute.decode(stored)
    return found


def decoded_record(item: StoredItem) -> dict[str, Any]:
    """The values of all fields that the item has. Most records have about a third of all fields."""
    found = {}
    for name, stored in item.items():
        if (attribute := _BY_NAME.get(name)) is not None:
            found[attribute.field] = attribute.decode(stored)
    return found


_READABLE = frozenset({schema.SCHEMA_VERSION, schema.SCHEMA_VERSION - 1})


class SchemaUnknown(RecordUnreadable):
    """A record has a schema version that this code cannot read."""

    def __init__(self, key: str, version: str) -> None:
        super().__init__(key, f"the record has version {version} of the schema; this code reads {sorted(_READABLE)}")


def key_of(task_id: TaskId) -> Item:
    """The key of a task's record."""
    return {
        schema.PARTITION_KEY: attribute_values.text(task_id.partition),
        schema.SORT_KEY: attribute_values.text(task_id.text),
    }


def item_of(task: Task) -> Item:
    """The complete record as an item."""
    owner = attribute_values.text(task.id.owner_partition(task.owner, is_node=task.node_ref is not None))
    item = key_of(task.id)
    item[schema.OWNER_KEY] = owner
    item[schema.VERSION_OF_SCHEMA] = attribute_values.number(schema.SCHEMA_VERSION)
    if task.state is State.FAILED:
        item[schema.FAILED_KEY] = owner
    for value, (name, encode) in zip(_VALUES(task), _ENCODERS, strict=True):
        if value is not None and (stored := encode(value)) is not None:
            item[name] = stored
    return item


def task_of(item: StoredItem) -> Task:
    """The record in an item.

    Raises:
        SchemaUnknown: a newer or much older version of duetime wrote the record.
        RecordUnreadable: a value is not valid in any version of duetime.
    """
    with unreadable_as_error(item):
        _check_version(item)
        return Task(id=TaskId(item[schema.SORT_KEY]["S"]), owner=owner_of(item), **decoded_record(item))


def require_readable(item: StoredItem) -> None:
    """Reject an item with an unknown schema version.

    Raises:
        SchemaUnknown: a newer or much older version of duetime wrote the item.
        RecordUnreadable: the item has no valid version.
    """
    with unreadable_as_error(item):
        _check_version(item)


def _check_version(item: StoredItem) -> None:
    version = item[schema.VERSION_OF_SCHEMA]["N"]
    if int(version) not in _READABLE:
        raise SchemaUnknown(sort_key_of(item), version)


@contextmanager
def unreadable_as_error(item: StoredItem) -> Iterator[None]:
    """Turn any error that occurs while reading an item into an error that names the item."""
    try:
        yield
    except RecordUnreadable:
        raise
    except Exception as error:
        # In damaged data, each attribute may be missing or have any value.
        raise RecordUnreadable(sort_key_of(item), f"{type(error).__name__}: {error}") from error


def sort_key_of(item: StoredItem) -> str:
    """The sort key of an item, even if the rest of the item is damaged."""
    return str(item.get(schema.SORT_KEY, {}).get("S", "without a sort key"))


def owner_of(item: StoredItem) -> str:
    """The owner of a record."""
    # The last `#` separates the owner from the rest of the key.
    return str(item[schema.OWNER_KEY]["S"]).rpartition("#")[0]


def update_of(write: Write, table: str) -> dict[str, Any]:
    """The arguments of the UpdateItem request for a write."""
    expression = _Expression()
    condition = expression.condition(write)
    update = expression.update(write)
    return {
        "TableName": table,
        "Key": key_of(write.task_id),
        "ConditionExpression": condition,
        "UpdateExpression": update,
        "ExpressionAttributeNames": expression.names,
        "ExpressionAttributeValues": expression.values,
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


class ValueNotStorable(TypeError):
    """A write compares or adds a value that cannot be stored in an item."""

    def __init__(self, label: str) -> None:
        super().__init__(f"{label} cannot be compared or added")


class _Expression:
    """Collects the placeholders of one request while its expressions are built."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: Item = {}

    def condition(self, write: Write) -> str:
        """The condition on the record."""
        guard = write.guard
        clauses = [
            f"attribute_exists({self._name(schema.PARTITION_KEY)})",
            # A write that was already applied must not be applied again if the request is repeated.
            self._compare("nonce", "<>", "nonce", write.nonce),
            self._states(write),
        ]
        if TERMINAL & LEGAL[write.move].sources:
            # An erased task has ended, but no move may change it.
            clauses.append(f"attribute_not_exists({self._field('erased')})")
        if guard.owner is not None:
            task, node = (write.task_id.owner_partition(guard.owner, is_node=is_node) for is_node in (False, True))
            owners = f"{self._value('owner', text(task))}, {self._value('node_owner', text(node))}"
            clauses.append(f"{self._name(schema.OWNER_KEY)} IN ({owners})")
        if guard.version is not None:
            clauses.append(self._compare("version", "=", "guard_version", guard.version))
        if guard.fence is not None:
            clauses.append(self._compare("fence", "=", "guard_fence", guard.fence))
        if guard.due_by is not None:
            clauses.append(self._compare("next_at", "<=", "due_by", guard.due_by))
        if guard.alone:
            clauses.append(f"attribute_not_exists({self._field('target')}.{self._name(TOPOLOGY)})")
        absent = {
            "node_ref": guard.alone,
            "has_dependents": guard.alone or guard.unawaited,
            "finished_at": guard.open,
            "unacknowledged": guard.acknowledged,
        }
        clauses += [f"attribute_not_exists({self._field(field)})" for field, is_asked in absent.items() if is_asked]
        if guard.not_cancelled:
            other = self._compare("requested_action", "<>", "cancel", RequestedAction.CANCEL)
            clauses.append(f"(attribute_not_exists({self._field('requested_action')}) OR {other})")
        return " AND ".join(clauses)

    def _states(self, write: Write) -> str:
        """The condition on the states that the move may leave. The guard adds conditions for each kind of state."""
        sources, ended = LEGAL[write.move].sources, write.guard.leased_until_before
        if ended is None:
            return self._at_generation(sources, write.guard)
        over = self._compare("lease_expires_at", "<=", "leased_until", ended)
        never = f"attribute_not_exists({self._field('lease_expires_at')})"
        kinds = []
        if held := sources - STARTABLE:
            kinds.append(self._state_in(held))
        if waiting := sources & STARTABLE:
            kinds.append(self._at_generation(waiting, write.guard))
        # Only OR needs parentheses, because AND binds tighter, and DynamoDB rejects redundant parentheses.
        states = f"({' OR '.join(kinds)})" if len(kinds) > 1 else kinds[0]
        return f"{states} AND ({never} OR {over})"

    def _at_generation(self, states: frozenset[State], guard: Guard) -> str:
        clauses = [self._state_in(states)]
        if guard.generation is not None:
            clauses.append(self._compare("generation", "=", "guard_turn", guard.generation))
        return " AND ".join(clauses)

    def update(self, write: Write) -> str:
        """The update expression. As in `applied`, `adds` takes precedence over `sets`, and `sets` over `sets_once`."""
        sets, removes = self._fixed(write)
        for field, value in write.sets.items():
            if field in write.adds:
                continue
            if (stored := encoded(field, value)) is None:
                removes.append(self._field(field))
            else:
                sets.append(f"{self._field(field)} = {self._value(field, stored)}")
        for field, value in write.sets_once.items():
            if field in write.adds or field in write.sets or (stored := encoded(field, value)) is None:
                continue
            name = self._field(field)
            sets.append(f"{name} = if_not_exists({name}, {self._value(field, stored)})")
        adds = [self._added(field, count) for field, count in ({"version": 1} | dict(write.adds)).items()]
        removed = f" REMOVE {', '.join(removes)}" if removes else ""
        return f"SET {', '.join(sets)} ADD {', '.join(adds)}{removed}"

    def _fixed(self, write: Write) -> tuple[list[str], list[str]]:
        """The changes to the nonce, to the state, and, with the state, to the entry in the list of failed tasks."""
        rule = LEGAL[write.move]
        sets, removes = [f"{self._field('nonce')} = :nonce"], []
        if rule.to is not None:
            sets.append(f"{self._field('state')} = {self._value('state', encoded('state', rule.to))}")
            if rule.to is State.FAILED:
                sets.append(f"{self._name(schema.FAILED_KEY)} = {self._name(schema.OWNER_KEY)}")
            elif State.FAILED in rule.sources:
                removes.append(self._name(schema.FAILED_KEY))
        elif write.move is Move.ERASE:
            removes.append(self._name(schema.FAILED_KEY))
        return sets, removes

    def _added(self, field: str, count: int) -> str:
        return f"{self._field(field)} {self._value(f'add_{field}', encoded(field, count))}"

    def _state_in(self, states: Iterable[State]) -> str:
        name = self._field("state")
        allowed = [self._value(f"from_{state.value}", encoded("state", state)) for state in sorted(states)]
        return f"{name} IN ({', '.join(allowed)})"

    def _compare(self, field: str, operator: str, label: str, value: object) -> str:
        return f"{self._field(field)} {operator} {self._value(label, encoded(field, value))}"

    def _field(self, field: str) -> str:
        self.names[f"#{field}"] = ATTRIBUTES[field].name
        return f"#{field}"

    def _name(self, attribute: str) -> str:
        self.names[f"#key_{attribute}"] = attribute
        return f"#key_{attribute}"

    def _value(self, label: str, value: Value | None) -> str:
        if value is None:
            raise ValueNotStorable(label)
        self.values[f":{label}"] = value
        return f":{label}"
