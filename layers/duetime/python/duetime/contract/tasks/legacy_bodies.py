"""Bodies that an earlier version accepted and stored as they came, in the names of the present one.

Payloads of topologies hold the bodies of their nodes, and bulk operations the body of their request: what was accepted
before an upgrade is read after it.
"""

from __future__ import annotations

from typing import Any

_FIELDS = {"at": "due_at", "deadline_seconds": "notify_within_seconds", "rollback": "rollback_on_failure"}
_LOCK = {"limit": "max_holders"}
_FILTER = {"due_from": "due_after", "due_to": "due_before", "error": "error_type"}
_STATES = {"postponed": "waiting"}


def renamed(value: object, names: dict[str, str]) -> object:
    """An object with some of its keys renamed; anything else as it is. A present name that is there is kept."""
    if not isinstance(value, dict):
        return value
    return {name if names.get(name, name) in value else names[name]: part for name, part in value.items()}


def task_fields(value: object) -> Any:  # noqa: ANN401 - JSON
    """The fields of a task, in a stored body."""
    fields = renamed(value, _FIELDS)
    if isinstance(fields, dict) and "lock" in fields:
        return {**fields, "lock": renamed(fields["lock"], _LOCK)}
    return fields


def filter_action(value: object) -> object:
    """The body of an action by a filter."""
    if not isinstance(value, dict):
        return value
    wanted = renamed(value.get("filter"), _FILTER)
    if isinstance(wanted, dict) and isinstance(wanted.get("state"), str):
        wanted = {**wanted, "state": _STATES.get(wanted["state"], wanted["state"])}
    body: dict[str, Any] = {**value, "filter": wanted}
    if "change" in body:
        body["update"] = task_fields(body.pop("change"))
    return body
