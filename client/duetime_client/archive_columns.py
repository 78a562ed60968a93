"""The columns for queries of the archive: one for each field of an archived task, with the field's DuckDB type."""

from __future__ import annotations

from datetime import datetime
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args

from duetime_client.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT, INTEGER, BOOLEAN, INSTANT, JSON = "VARCHAR", "BIGINT", "BOOLEAN", "TIMESTAMP", "JSON"
_TYPES = {str: TEXT, bool: BOOLEAN, int: INTEGER, datetime: INSTANT}


def _type_of(annotation: Any) -> str:  # noqa: ANN401 - a type
    """The DuckDB type of a field; every field other than text, integers, booleans and times is JSON."""
    choices = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    type_, *_ = (each for each in choices if each is not type(None))
    return _TYPES.get(type_, JSON)


COLUMNS: Mapping[str, str] = {
    **{name: _type_of(field.annotation) for name, field in Task.model_fields.items()},
    "owner": TEXT,
    "attempts": JSON,
    "events": JSON,
    "events_dropped": INTEGER,
    "archive_format": INTEGER,
}
"""The DuckDB type of each column; times are in UTC."""
SHOWN = ("finished_at", "id", "type", "state", "attempt", "lateness_ms", "error")
"""The columns that a table shows by default."""
