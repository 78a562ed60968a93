"""The record of a task as an item."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.attribute_mapping import ATTRIBUTES, decoded_record, encoded
from duetime.domain.errors import RecordUnreadable
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_READABLE = frozenset({schema.SCHEMA_VERSION, schema.SCHEMA_VERSION - 1})


class SchemaUnknown(RecordUnreadable):
    """A record was written with a version of the schema that this code cannot read."""

    def __init__(self, key: str, version: str) -> None:
        super().__init__(key, f"the record has version {version} of the schema; this code reads {sorted(_READABLE)}")


def key_of(task_id: TaskId) -> Item:
    """Key of a task's record."""
    return {
        schema.PARTITION_KEY: attribute_values.text(task_id.partition),
        schema.SORT_KEY: attribute_values.text(task_id.text),
    }


def item_of(task: Task) -> Item:
    """The whole record as an item."""
    owner = attribute_values.text(task.id.owner_partition(task.owner))
    item = key_of(task.id)
    item[schema.OWNER_KEY] = owner
    item[schema.VERSION_OF_SCHEMA] = attribute_values.number(schema.SCHEMA_VERSION)
    if task.state is State.FAILED:
        item[schema.FAILED_KEY] = owner
    for field in ATTRIBUTES:
        if (stored := encoded(field, getattr(task, field))) is not None:
            item[ATTRIBUTES[field].name] = stored
    return item


def task_of(item: StoredItem) -> Task:
    """The record that an item holds.

    Raises:
        SchemaUnknown: it was written by a newer or much older duetime.
        RecordUnreadable: something in it is not what any duetime writes.
    """
    require_readable(item)
    with unreadable_as_error(item):
        return Task(id=TaskId(item[schema.SORT_KEY]["S"]), owner=owner_of(item), **decoded_record(item))


def require_readable(item: StoredItem) -> None:
    """Reject an item that this code does not know the schema of.

    Raises:
        SchemaUnknown: it was written by a newer or much older duetime.
        RecordUnreadable: it does not say.
    """
    with unreadable_as_error(item):
        version = item[schema.VERSION_OF_SCHEMA]["N"]
        if int(version) not in _READABLE:
            raise SchemaUnknown(sort_key_of(item), version)


@contextmanager
def unreadable_as_error(item: StoredItem) -> Iterator[None]:
    """Name the item that cannot be read, whatever its reading stumbled over."""
    try:
        yield
    except RecordUnreadable:
        raise
    except Exception as error:
        # Damage has no bounds: any attribute may lack, or be anything.
        raise RecordUnreadable(sort_key_of(item), f"{type(error).__name__}: {error}") from error


def sort_key_of(item: StoredItem) -> str:
    """The sort key of an item, whatever else is wrong with it."""
    return str(item.get(schema.SORT_KEY, {}).get("S", "without a sort key"))


def owner_of(item: StoredItem) -> str:
    """The owner of a record."""
    # An owner may hold the separator itself: only the last one is ours.
    return str(item[schema.OWNER_KEY]["S"]).rpartition("#")[0]
