"""Numbers of tasks of one type as attributes of an item: one for each state and priority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.domain.summary import Group
from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import StoredItem


def attribute_of(group: Group) -> str:
    """The attribute with a group's number in the item of its type; states have the names used in records."""
    return f"{field_codecs.state(group.state)['S']}#{group.priority.value}"


def counts_of(item: StoredItem, mark: str) -> dict[Group, int]:
    """The numbers in an item whose sort key is its type after a mark."""
    type_ = str(item[schema.SORT_KEY]["S"]).removeprefix(mark)
    found = {}
    for name, value in item.items():
        state, separator, priority = name.partition("#")
        if separator:
            group = Group(type_, field_codecs.read_state({"S": state}), Priority(priority))
            found[group] = attribute_values.integer(value)
    return found
