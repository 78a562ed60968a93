"""Codecs of what a task says of other tasks with the same key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import Debounce, OnConflict, Unique, Until

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Value


def unique(value: Unique) -> Value:
    """A unique key: how long it is held, what happens on a conflict, and last the key."""
    return {"S": f"{value.until} {value.on_conflict} {value.key}"}


def read_unique(value: Value) -> Unique:
    """Read a unique key."""
    until, on_conflict, key = str(value["S"]).split(" ")
    return Unique(key, Until(until), OnConflict(on_conflict))


def debounce(value: Debounce) -> Value:
    """How a task is put off: the seconds without a further creation, those in all or 0, and last the key."""
    return {"S": f"{value.seconds} {value.max_seconds or 0} {value.key}"}


def read_debounce(value: Value) -> Debounce:
    """Read how a task is put off."""
    seconds, most, key = str(value["S"]).split(" ")
    return Debounce(key, int(seconds), int(most) or None)
