"""The words of earlier versions of the API, and what the present one says for them.

What earlier code stored is frozen, and is read as it is. What it answered is frozen in the words of then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.wait_reasons import wait_reason

if TYPE_CHECKING:
    from collections.abc import Mapping

_TASK = {
    "deadline_seconds": "notify_within_seconds",
    "rollback": "rollback_on_failure",
    "deferred": "awaiting_notification",
    "asked": "requested_action",
    "waits_for": "waiting_for",
    "member": "topology",
}
_PARTS: Mapping[str, Mapping[str, str]] = {
    "error": {"class": "type"},
    "lease": {"holder": "worker", "ends_at": "expires_at"},
    "lock": {"limit": "max_holders"},
    "member": {"topology": "id", "note": "reason"},
    "schedule": {"at": "scheduled_at"},
}
"""Names inside a field of a task, by the field's name of then."""
_CAUSES = {"rhythm": "schedule", "trigger": "manual"}
_ATTEMPT = {"holder": "worker"}
_TOPOLOGY = {"deadline_seconds": "timeout_seconds", "asked": "requested_action"}
_NODE = {"rule": "trigger_rule"}
_NODE_GONE = frozenset({"ended_at"})
"""The end of a node's last attempt, which its attempts tell."""
_SCHEDULE = {
    "note": "paused_reason",
    "changed_at": "updated_at",
    "skipped": "runs_skipped",
}
_SCHEDULE_GONE = frozenset({"id", "placed", "runs_started"})
"""The name of a schedule, said twice; how many runs were placed, which is not how many have begun."""
_CALENDAR = {"kind": "mode"}
_SWITCH = {"changed_at": "updated_at", "changed_by": "updated_by"}
_HOLDER = {"until": "expires_at"}


def in_present_words(path: str, answer: dict[str, Any]) -> dict[str, Any]:
    """An earlier answer to `GET path`, in the words of the present version."""
    match path.split("/")[2:]:
        case ["tasks"]:
            return answer | {"tasks": [_task(each) for each in answer["tasks"]]}
        case ["tasks", _]:
            return _task(answer)
        case ["tasks", _, "attempts"]:
            return answer | {"attempts": [_attempt(each) for each in answer["attempts"]]}
        case ["topologies", _]:
            return _topology(answer)
        case ["schedules"]:
            return answer | {"schedules": [_schedule(each) for each in answer["schedules"]]}
        case ["schedules", _, "backfills"]:
            return answer
        case ["calendars" | "switches" as kind]:
            names = _CALENDAR if kind == "calendars" else _SWITCH
            return answer | {kind: [_renamed(each, names) for each in answer[kind]]}
        case ["locks", _]:
            return answer | {"holders": [_renamed(each, _HOLDER) for each in answer["holders"]]}
        case _:
            raise AssertionError(f"nobody has said what an answer to {path} was called")


def _renamed(known: Mapping[str, Any], names: Mapping[str, str], gone: frozenset[str] = frozenset()) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in known.items() if name not in gone}


def _task(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A task, or the template of one."""
    parts = {
        name: _renamed(answer[name], names) for name, names in _PARTS.items() if isinstance(answer.get(name), dict)
    }
    said = _renamed({**answer, **parts}, _TASK)
    if said.get("state") == "postponed":
        said["state"] = "waiting"
    if isinstance(said.get("waiting_for"), str):
        said["waiting_for"] = {"reason": wait_reason(said["waiting_for"]), "text": said["waiting_for"]}
    if isinstance(said.get("schedule"), dict):
        said["schedule"]["cause"] = _CAUSES.get(said["schedule"]["cause"], said["schedule"]["cause"])
    return said


def _attempt(answer: Mapping[str, Any]) -> dict[str, Any]:
    said = _renamed(answer, _ATTEMPT)
    return said | {"error": _renamed(said["error"], _PARTS["error"])} if said.get("error") else said


def _topology(answer: Mapping[str, Any]) -> dict[str, Any]:
    nodes = {key: _renamed(node, _NODE, _NODE_GONE) for key, node in answer["nodes"].items()}
    for node in nodes.values():
        # A node that had succeeded, and had reported nothing, was at 0 percent.
        node["percent"] = 100 if node["state"] == "succeeded" else node["percent"]
    return _renamed(answer, _TOPOLOGY) | {"nodes": nodes}


def _schedule(answer: Mapping[str, Any]) -> dict[str, Any]:
    said = _renamed(answer, _SCHEDULE, _SCHEDULE_GONE) | {"task": _task(answer["task"])}
    if said.get("permanent") is not None:
        said["permanent"] = {"gap_seconds": said["permanent"]}
    return said
