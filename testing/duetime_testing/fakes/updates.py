"""Applies update expressions to items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_testing.fakes.attribute_values import checked, joined, kind_of, number_of, number_text
from duetime_testing.fakes.expressions import ExpressionInvalid, fetch, name_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime_testing.fakes.attribute_values import Item, Value
    from duetime_testing.fakes.expressions import Names, Update, Values


def updated(update: Update, item: Item, names: Names, values: Values, keys: Collection[str]) -> Item:
    """Return the item after an update; all operands refer to the old item.

    Raises:
        ExpressionInvalid: the update cannot be applied to this item.
    """
    _check_paths(update, names, keys)
    changes: list[tuple[tuple[str, ...], Value | None]] = []
    for path, operand in update.sets:
        value = operand(item, names, values)
        if value is None:
            raise ExpressionInvalid("The provided expression refers to an attribute that does not exist in the item")
        changes.append((path, checked(value)))
    for path, label in update.adds:
        changes.append((path, _sum(fetch(path, item, names), values[label])))
    changes += [(path, None) for path in update.removes]
    made = dict(item)
    for path, value in changes:
        _put(made, [name_of(part, names) for part in path], value)
    return made


def _check_paths(update: Update, names: Names, keys: Collection[str]) -> None:
    paths = [path for path, _ in (*update.sets, *update.adds)] + update.removes
    whole = [tuple(name_of(part, names) for part in path) for path in paths]
    for number, path in enumerate(whole):
        if path[0] in keys:
            raise ExpressionInvalid(f"Cannot update attribute {path[0]}. This attribute is part of the key")
        for other in whole[:number]:
            if path[: len(other)] == other[: len(path)]:
                raise ExpressionInvalid("Two document paths overlap with each other")


def _sum(old: Value | None, added: Value) -> Value:
    if (kind := kind_of(added)) in {"SS", "NS", "BS"} and (old is None or kind in old):
        return checked(added) if old is None else joined(old, checked(added))
    if "N" not in added or (old is not None and "N" not in old):
        raise ExpressionInvalid("An operand in the update expression has an incorrect data type")
    return {"N": number_text(number_of(old["N"] if old else "0") + number_of(added["N"]))}


def _put(item: Item, path: list[str], value: Value | None) -> None:
    """Put a value at a path, and copy the maps along the path so that the old item is not modified."""
    inside: dict[str, Mapping[str, object]] = item
    for part in path[:-1]:
        found = inside.get(part)
        if found is None or "M" not in found:
            raise ExpressionInvalid("The document path provided in the update expression is invalid for update")
        copied = dict(found["M"])  # type: ignore[call-overload]  # a map's value is a mapping
        inside[part] = {"M": copied}
        inside = copied
    if value is None:
        inside.pop(path[-1], None)
    else:
        inside[path[-1]] = value
