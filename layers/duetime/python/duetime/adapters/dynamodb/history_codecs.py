"""Lines of a task's history as they are stored: its attempts, and what users and others have done with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.attribute_values import packed, unpacked
from duetime.domain.ids import TaskId
from duetime.domain.tasks.action_history import Action, ActionHistory, ActionRecord, ActorType, Attribution
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord, TaskError

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Value


_OUTCOMES = {
    AttemptOutcome.SUCCEEDED: "s",
    AttemptOutcome.RETRIED: "r",
    AttemptOutcome.FAILED: "f",
    AttemptOutcome.LOST: "l",
    AttemptOutcome.PAUSED: "p",
    AttemptOutcome.CANCELLED: "c",
    AttemptOutcome.ROLLED_BACK: "b",
}
_LETTERS = {letter: outcome for outcome, letter in _OUTCOMES.items()}


def error(value: TaskError) -> Value:
    """Why an attempt failed: the type and the packed message."""
    return {"L": [{"S": value.type}, packed(value.message.encode())]}


def read_error(value: Value) -> TaskError:
    """Read why an attempt failed."""
    kind, message = value["L"]
    return TaskError(kind["S"], unpacked(message).decode())


def line(value: AttemptRecord) -> Value:
    """One attempt, packed."""
    return packed(_compact(_line(value)))


def read_attempt(value: Value) -> AttemptRecord:
    """Read one attempt."""
    return _read_line(json.loads(unpacked(value)))


def attempt_history(value: tuple[AttemptRecord, ...]) -> Value | None:
    """The last attempts, packed as one, because they repeat each other; nothing for none."""
    return packed(_compact([_line(each) for each in value])) if value else None


def read_attempt_history(value: Value) -> tuple[AttemptRecord, ...]:
    """Read the last attempts."""
    return tuple(_read_line(each) for each in json.loads(unpacked(value)))


def _line(value: AttemptRecord) -> str | list[str]:
    """Hexadecimal numbers, and last the holder, which may hold any character; behind them the error, if any."""
    numbers = f"{value.attempt:x} {value.fence:x} {value.started_at:x} {value.late:x} {value.took:x}"
    text = f"{numbers} {_OUTCOMES[value.outcome]} {value.worker}"
    return text if value.error is None else [text, value.error.type, value.error.message]


def _read_line(value: str | list[str]) -> AttemptRecord:
    text, *why = [value] if isinstance(value, str) else value
    *numbers, outcome, holder = text.split(" ", 6)
    attempt, fence, started_at, late, took = (int(number, 16) for number in numbers)
    failed = TaskError(*why) if why else None
    return AttemptRecord(attempt, fence, holder, started_at, late, took, _LETTERS[outcome], failed)


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


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
_ACTION_LETTERS = {letter: action for action, letter in _ACTIONS.items()}
_ACTORS = {ActorType.USER: "u", ActorType.SCHEDULE: "s", ActorType.TOPOLOGY: "t", ActorType.SYSTEM: "y"}
_ACTOR_LETTERS = {letter: actor for actor, letter in _ACTORS.items()}


def actions(value: ActionHistory) -> Value | None:
    """The last actions, packed as one, behind the number of those that were dropped; nothing for none."""
    return packed(_compact_action([value.dropped, *map(_action_line, value.records)])) if value.records else None


def read_actions(value: Value) -> ActionHistory:
    """Read the last actions."""
    dropped, *lines = json.loads(unpacked(value))
    return ActionHistory(tuple(map(_read_action_line, lines)), dropped)


def action(value: ActionRecord) -> Value:
    """One action, packed."""
    return packed(_compact_action(_action_line(value)))


def read_action(value: Value) -> ActionRecord:
    """Read one action."""
    return _read_action_line(json.loads(unpacked(value)))


def _action_line(value: ActionRecord) -> list[str]:
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


def _read_action_line(value: list[str]) -> ActionRecord:
    head, reason, name, fields, operation, nodes = [*value, "", "", "", "", ""][:6]
    at, _, version = head[2:].partition(" ")
    by = Attribution(_ACTOR_LETTERS[head[1]], name, reason, TaskId(operation) if operation else None)
    return ActionRecord(
        _ACTION_LETTERS[head[0]], int(at, 16), by, int(version, 16) if version else None, _names(fields), _names(nodes)
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _compact_action(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
