"""The record of a task as an item: one table of attributes, used by every reader and writer of records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema, values
from duetime.domain.dispatch import Entry, Wake
from duetime.domain.ids import TaskId, partition_of
from duetime.domain.limits import WAKE_LIFE
from duetime.domain.states import State
from duetime.domain.task import Asked, Priority, Task
from duetime.domain.times import minute_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.dynamodb.values import Item, StoredItem, Value

_READABLE = frozenset({schema.SCHEMA_VERSION, schema.SCHEMA_VERSION - 1})


class SchemaUnknown(ValueError):
    """A record was written with a version of the schema that this code cannot read."""

    def __init__(self, version: str) -> None:
        super().__init__(f"the record has version {version} of the schema; this code reads {sorted(_READABLE)}")


@dataclass(frozen=True, slots=True)
class Attribute:
    """How one field of `Task` is stored.

    Attributes:
        field: its name in `Task`.
        name: its name in the item.
        encode: its value in the item; `None` leaves the attribute out, which means the field's default.
        decode: the opposite.
    """

    field: str
    name: str
    encode: Callable[[Any], Value | None]
    decode: Callable[[Value], Any]


def _text_or_nothing(value: str) -> Value | None:
    return values.text(value) if value else None


def _priority(value: Priority) -> Value | None:
    return None if value is Priority.NORMAL else values.text(value.value)


def _read_priority(value: Value) -> Priority:
    return Priority(value["S"])


def _unless_default(field: str) -> Callable[[int], Value | None]:
    default = Task.__dataclass_fields__[field].default
    return lambda value: None if value == default else values.number(value)


def _asked(value: Asked) -> Value:
    return values.text(value.value)


def _read_asked(value: Value) -> Asked:
    return Asked(value["S"])


def _state(value: State) -> Value:
    return values.text(value.value)


def _read_state(value: Value) -> State:
    return State(value["S"])


ATTRIBUTES: dict[str, Attribute] = {
    attribute.field: attribute
    for attribute in (
        Attribute("type", "y", values.text, values.string),
        Attribute("state", "z", _state, _read_state),
        Attribute("due_at", "d", values.number, values.whole),
        Attribute("next_at", "n", values.number, values.whole),
        Attribute("created_at", "c", values.number, values.whole),
        Attribute("payload", "b", values.content, partial(values.read_content, "payload")),
        Attribute("priority", "q", _priority, _read_priority),
        Attribute("target", "u", values.target, values.read_target),
        Attribute("retry", "r", values.retry, values.read_retry),
        Attribute("timeout_seconds", "o", _unless_default("timeout_seconds"), values.whole),
        Attribute("deadline_seconds", "D", _unless_default("deadline_seconds"), values.whole),
        Attribute("rollback", "B", values.flag, values.truth),
        Attribute("name", "m", _text_or_nothing, values.string),
        Attribute("tags", "T", values.tags, values.read_tags),
        # Numbers that conditions compare are always there, zero or not: no condition needs a second form.
        Attribute("turn", "t", values.number, values.whole),
        Attribute("version", "e", values.number, values.whole),
        Attribute("fence", "k", values.number, values.whole),
        Attribute("attempt", "a", values.number, values.whole),
        Attribute("sent", "i", values.flag, values.truth),
        Attribute("nonce", "j", values.text, values.string),
        Attribute("lease_holder", "h", values.text, values.string),
        Attribute("lease_ends_at", "l", values.number, values.whole),
        Attribute("deferred", "w", values.flag, values.truth),
        Attribute("asked", "A", _asked, _read_asked),
        Attribute("checkpoint", "C", values.content, partial(values.read_content, "checkpoint")),
        Attribute("progress", "P", values.progress, values.read_progress),
        Attribute("result", "R", values.content, partial(values.read_content, "result")),
        Attribute("error", "E", values.error, values.read_error),
        Attribute("started_at", "S", values.number, values.whole),
        Attribute("finished_at", "F", values.number, values.whole),
        Attribute("expires_at", schema.TTL, values.expiry, values.read_expiry),
        Attribute("ledger", "L", values.ledger, values.read_ledger),
    )
}
"""Every field of `Task` but `id` and `owner`, which are the keys."""

_ENTRY_FIELDS = ("state", "priority", "turn", "next_at", "sent", "lease_ends_at", "finished_at")
ENTRY_NAMES = (
    schema.SORT_KEY,
    schema.OWNER_KEY,
    schema.WAKE_OWNER,
    *(ATTRIBUTES[name].name for name in _ENTRY_FIELDS),
)
"""Names of the attributes that the trigger reads."""


def key_of(task_id: TaskId) -> Item:
    """Key of a task's record."""
    return {schema.PARTITION_KEY: values.text(task_id.partition), schema.SORT_KEY: values.text(task_id.text)}


def encoded(field: str, value: object) -> Value | None:
    """One field's value as it is stored; `None` if it is left out."""
    return None if value is None else ATTRIBUTES[field].encode(value)


def item_of(task: Task) -> Item:
    """The whole record as an item."""
    owner = values.text(task.id.owner_partition(task.owner))
    item = key_of(task.id)
    item[schema.OWNER_KEY] = owner
    item[schema.VERSION_OF_SCHEMA] = values.number(schema.SCHEMA_VERSION)
    if task.state is State.FAILED:
        item[schema.FAILED_KEY] = owner
    for field, attribute in ATTRIBUTES.items():
        value = getattr(task, field)
        if value is not None and (stored := attribute.encode(value)) is not None:
            item[attribute.name] = stored
    return item


def task_of(item: StoredItem) -> Task:
    """The record that an item holds.

    Raises:
        SchemaUnknown: it was written by a newer or much older duetime.
    """
    version = item[schema.VERSION_OF_SCHEMA]["N"]
    if int(version) not in _READABLE:
        raise SchemaUnknown(version)
    fields = _fields_of(item, ATTRIBUTES)
    return Task(id=TaskId(item[schema.SORT_KEY]["S"]), owner=_owner_of(item), **fields)


def wake_item_of(wake: Wake) -> Item:
    """A wake as an item."""
    item = {
        schema.PARTITION_KEY: values.text(partition_of(minute_of(wake.at), wake.task_id.shard)),
        schema.SORT_KEY: values.text(f"{wake.task_id}{schema.WAKE_MARK}{wake.turn}"),
        schema.WAKE_OWNER: values.text(wake.owner),
        schema.TTL: values.expiry(wake.at + WAKE_LIFE),
    }
    for field, value in (("turn", wake.turn), ("next_at", wake.at), ("priority", wake.priority), ("sent", wake.sent)):
        if (stored := encoded(field, value)) is not None:
            item[ATTRIBUTES[field].name] = stored
    return item


def entry_of(item: StoredItem) -> Entry | Wake:
    """What the trigger needs of an item in a minute's partition."""
    task_id, mark, _turn = item[schema.SORT_KEY]["S"].partition(schema.WAKE_MARK)
    fields = _fields_of(item, _ENTRY_FIELDS)
    turn, next_at = fields["turn"], fields["next_at"]
    priority, sent = fields.get("priority", Priority.NORMAL), fields.get("sent", False)
    if mark:
        return Wake(TaskId(task_id), turn, next_at, priority, item[schema.WAKE_OWNER]["S"], sent)
    return Entry(
        task_id=TaskId(task_id),
        owner=_owner_of(item),
        state=fields["state"],
        priority=priority,
        turn=turn,
        next_at=next_at,
        sent=sent,
        leased_until=fields.get("lease_ends_at"),
        finished="finished_at" in fields,
    )


def _owner_of(item: StoredItem) -> str:
    # An owner may hold the separator itself: only the last one is ours.
    return str(item[schema.OWNER_KEY]["S"]).rpartition("#")[0]


def _fields_of(item: StoredItem, wanted: dict[str, Attribute] | tuple[str, ...]) -> dict[str, Any]:
    fields = {}
    for field in wanted:
        attribute = ATTRIBUTES[field]
        if (stored := item.get(attribute.name)) is not None:
            fields[field] = attribute.decode(stored)
    return fields
