"""Parses the only PartiQL statements that the stores use, which insert an item with its values as parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_testing.fakes.attribute_values import Item, Value

MOST_STATEMENTS = 25
"""Maximum number of statements in a batch (Source: DynamoDB Developer Guide, "Running batch operations with PartiQL
for DynamoDB")."""
_INSERT = re.compile(r"INSERT INTO \"([a-zA-Z0-9_.-]+)\" VALUE \{('[^']+': \?(?:, '[^']+': \?)*)\}")
_NAME = re.compile(r"'([^']+)'")


class StatementInvalid(ValueError):
    """A statement that is not supported, or whose number of parameters does not match."""


def inserted_item(statement: str, parameters: Sequence[Value]) -> tuple[str, Item]:
    """Return the table and the item of an insertion.

    Raises:
        StatementInvalid: the statement is not an insertion, or the number of parameters does not match.
    """
    parsed = _INSERT.fullmatch(statement)
    names = _NAME.findall(parsed[2]) if parsed else []
    if parsed is None or len(names) != len(parameters):
        raise StatementInvalid(statement)
    return parsed[1], dict(zip(names, parameters, strict=True))
