"""Actions on a task as attributes: an action and an actor are a letter each, and the list is packed as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.attribute_values import packed, unpacked
from duetime.domain.ids import TaskId
from duetime.domain.tasks.action_history import Action, ActionHistory, ActionRecord, ActorType, Attribution

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Value

_ACTIONS = {
    Action.UPDATED: "u",
    Action.PAUSED: "p",
    Action.PAUSE_REQUESTED: "q",
    Action.RESUMED: "g",
    Action.RUN_REQUESTED: "n",
    Action.RETRIED: "r",
    Action.ROLLBACK_REQUESTED: "b",
    Action.CANCELLED: "c",
    Action.CANCEL_REQUESTED: "d",
    Action.APPROVED: "a",
    Action.REJECTED: "x",
}
_LETTERS = {letter: action for action, letter in _ACTIONS.items()}
_ACTORS = {ActorType.USER: "u", ActorType.SCHEDULE: "s", ActorType.TOPOLOGY: "t", ActorType.SYSTEM: "y"}
_ACTOR_LETTERS = {letter: actor for actor, letter in _ACTORS.items()}


def actions(value: ActionHistory) -> Value | None:
    """The last actions, packed as one, behind the number of those that were dropped; nothing for none."""
    return packed(_compact([value.dropped, *map(_line, value.records)])) if value.records else None


def read_actions(value: Value) -> ActionHistory:
    """Read the last actions."""
    dropped, *lines = json.loads(unpacked(value))
    return ActionHistory(tuple(map(_read_line, lines)), dropped)


def action(value: ActionRecord) -> Value:
    """One action, packed."""
    return packed(_compact(_line(value)))


def read_action(value: Value) -> ActionRecord:
    """Read one action."""
    return _read_line(json.loads(unpacked(value)))


def _line(value: ActionRecord) -> list[str]:
    """Two letters and hexadecimal numbers, then the texts; those at the end that are empty are left out."""
    by = value.by
    version = "" if value.version is None else f"{value.version:x}"
    head = f"{_ACTIONS[value.action]}{_ACTORS[by.actor]}{value.at:x} {version}"
    operation = "" if by.operation is None else by.operation.text
    # Neither the name of a field nor that of a node holds a comma.
    line = [head, by.reason, by.name, ",".join(value.fields), operation, ",".join(value.nodes)]
    while not line[-1]:
        line.pop()
    return line


def _read_line(value: list[str]) -> ActionRecord:
    head, reason, name, fields, operation, nodes = [*value, "", "", "", "", ""][:6]
    at, _, version = head[2:].partition(" ")
    by = Attribution(_ACTOR_LETTERS[head[1]], name, reason, TaskId(operation) if operation else None)
    return ActionRecord(
        _LETTERS[head[0]], int(at, 16), by, int(version, 16) if version else None, _names(fields), _names(nodes)
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
