from __future__ import annotations

from dataclasses import fields
from typing import Any

from duetime.domain.tasks.task import Task
from duetime.domain.tasks.task_changes import TaskChanges

KEPT = {
    *("id", "owner", "type", "state", "created_at", "schedule_ref", "topology_schedule_ref", "traceparent"),
    *("parent_task_id", "group", "completes", "order_number"),
    *("version", "nonce"),
}
"""Fields that no change sets, because they are fixed or are set by every write or by a claim."""


def test_the_fields_of_a_change_have_the_records_types() -> None:
    """Each field of a change has the same type as in the record, and only fields that no change sets are missing."""
    told = {name: _text(kind) for name, kind in TaskChanges.__annotations__.items()}
    assert told == {each.name: each.type for each in fields(Task) if each.name not in KEPT}


def _text(kind: Any) -> str:  # noqa: ANN401 - an annotation, which a `TypedDict` turns into a reference
    return str(kind.__forward_arg__)
