from __future__ import annotations

from dataclasses import fields
from typing import Any

from duetime.domain.tasks.task import Task
from duetime.domain.tasks.task_changes import NOTHING_LEFT, TaskChanges

KEPT = {
    *("id", "owner", "type", "state", "created_at", "schedule_ref", "topology_schedule_ref", "traceparent"),
    *("parent_task_id", "order_number"),
    *("version", "nonce"),
}
"""Fields that no change sets, because they are fixed or are set by every write or by a claim."""
LEFT_BY_ERASURE = {
    *("due_at", "next_at", "started_at", "started_late", "run_at", "finished_at", "expires_at", "reopened_at"),
    *("priority", "timeout_seconds", "notify_within_seconds", "rollback_on_failure", "expires_seconds", "fair_weight"),
    *("node_ref", "after", "has_dependents", "requested_action", "sent"),
    *("generation", "fence", "attempt", "lease_expires_at", "unacknowledged", "lease_nonce", "deferred_fence"),
    "reopened_fence",
}
"""Fields without text of the task's user, which an erased record keeps to show that the task has ended."""


def test_the_fields_of_a_change_have_the_records_types() -> None:
    """Each field of a change has the same type as in the record, and only fields that no change sets are missing."""
    told = {name: _text(kind) for name, kind in TaskChanges.__annotations__.items()}
    assert told == {each.name: each.type for each in fields(Task) if each.name not in KEPT}


def test_an_erased_record_keeps_no_field_with_user_data() -> None:
    """An erasure resets each field of a change, except numbers, times and ids of tasks."""
    assert TaskChanges.__annotations__.keys() - NOTHING_LEFT.keys() == LEFT_BY_ERASURE


def _text(kind: Any) -> str:  # noqa: ANN401 - an annotation, which a `TypedDict` turns into a reference
    return str(kind.__forward_arg__)
