"""Attempt records as attributes: an outcome is one letter, and the list of the latest ones is compact."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.attribute_values import packed, unpacked
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
