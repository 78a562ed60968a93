"""The words of earlier versions of the API, and what the present one says for them.

What earlier code stored is frozen, and is read as it is. What it answered is frozen in the words of then.
"""

from __future__ import annotations

from typing import Any

from duetime.domain.tasks.wait_reasons import wait_reason

_TASK = {
    "deadline_seconds": "notify_within_seconds",
    "rollback": "rollback_on_failure",
    "deferred": "awaiting_notification",
    "asked": "requested_action",
    "waits_for": "waiting_for",
    "member": "topology",
}
_ERROR = {"class": "type"}
_LEASE = {"holder": "worker", "ends_at": "expires_at"}
_LOCK = {"limit": "max_holders"}
_MEMBER = {"topology": "id", "note": "reason"}
_SCHEDULE = {"at": "scheduled_at"}
_PARTS = {"error": _ERROR, "lease": _LEASE, "lock": _LOCK, "member": _MEMBER, "schedule": _SCHEDULE}
_CAUSES = {"rhythm": "schedule", "trigger": "manual"}
_TOPOLOGY = {"asked": "requested_action"}
_OPAQUE = frozenset({"payload", "result"})


def present(answer: Any) -> Any:  # noqa: ANN401 - any JSON
    """An answer of an earlier version in the words of the present one."""
    if isinstance(answer, list):
        return [present(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    if "waits_for" in answer or "priority" in answer:
        return _task(answer)
    return {_names_of(answer).get(name, name): present(value) for name, value in answer.items()}


def _names_of(answer: dict[str, Any]) -> dict[str, str]:
    """The names that have changed in an answer that is no task."""
    if "nodes" in answer and "on_failure" in answer:
        return _TOPOLOGY
    if "fence" in answer and "outcome" in answer:
        return _LEASE
    return _ERROR if "class" in answer else {}


def _task(answer: dict[str, Any]) -> dict[str, Any]:
    """A task, or the template of one."""
    said: dict[str, Any] = {}
    for name, value in answer.items():
        part = _PARTS.get(name)
        if name in _OPAQUE:
            said[name] = value
        elif part is not None and isinstance(value, dict):
            said[_TASK.get(name, name)] = {part.get(key, key): present(each) for key, each in value.items()}
        else:
            said[_TASK.get(name, name)] = present(value)
    if said.get("state") == "postponed":
        said["state"] = "waiting"
    if isinstance(said.get("waiting_for"), str):
        said["waiting_for"] = {"reason": wait_reason(said["waiting_for"]), "text": said["waiting_for"]}
    if isinstance(said.get("schedule"), dict):
        said["schedule"]["cause"] = _CAUSES.get(said["schedule"]["cause"], said["schedule"]["cause"])
    return said
