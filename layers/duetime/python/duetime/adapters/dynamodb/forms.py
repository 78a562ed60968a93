"""Forms: how a task's small values are written as attribute values, and read again.

A form that is `None` leaves the attribute out, which means the field's default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.values import packed, unpacked
from duetime.domain.retry import RetryPolicy
from duetime.domain.states import State
from duetime.domain.task import (
    Asked,
    AttemptOutcome,
    Content,
    ContentPlace,
    HttpTarget,
    LedgerLine,
    Phase,
    Priority,
    Progress,
    Task,
    TaskError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.dynamodb.values import Value
    from duetime.domain.task import Target

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
_HTTP = "http"
_PHASES = {Phase.PREPARE: "P", Phase.RUN: "R", Phase.CLEAN: "C", Phase.ROLLBACK: "B"}


def name(value: str) -> Value | None:
    """A task's name; nothing for none."""
    return {"S": value} if value else None


def state(value: State) -> Value:
    """Where a task stands."""
    return {"S": value.value}


def read_state(value: Value) -> State:
    """Read where a task stands."""
    return State(value["S"])


def priority(value: Priority) -> Value | None:
    """Which queue a task waits on; nothing for the default."""
    return None if value is Priority.NORMAL else {"S": value.value}


def read_priority(value: Value) -> Priority:
    """Read which queue a task waits on."""
    return Priority(value["S"])


def unless_default(field: str) -> Callable[[int], Value | None]:
    """The form of a number of which a task has a default; nothing for the default."""
    default = Task.__dataclass_fields__[field].default
    return lambda value: None if value == default else {"N": str(value)}


def asked(value: Asked) -> Value:
    """What a user asks of the running attempt."""
    return {"S": value.value}


def read_asked(value: Value) -> Asked:
    """Read what a user asks of the running attempt."""
    return Asked(value["S"])


def content(value: Content) -> Value:
    """A payload or result: packed, or where it lies and its name there."""
    if not value.is_outside:
        return packed(value.data or b"")
    return {"L": [{"S": value.place.value}, {"S": value.name}]}


def read_content(field: str, value: Value) -> Content:
    """Read a payload or result; in the record it is called as its field."""
    if "L" in value:
        place, name = value["L"]
        return Content(ContentPlace(place["S"]), name["S"])
    return Content(ContentPlace.RECORD, field, unpacked(value))


def target(value: Target) -> Value | None:
    """What a task calls: the kind with the phases that it offers, then its address; nothing for the default."""
    if not isinstance(value, HttpTarget):
        return None
    offered = "".join(sorted(_PHASES[phase] for phase in value.phases))
    return {"S": f"{_HTTP}{offered} {value.url}"}


def read_target(value: Value) -> Target:
    """Read what a task calls."""
    kind, address = str(value["S"]).split(" ", 1)
    offered = kind.removeprefix(_HTTP)
    return HttpTarget(address, frozenset(phase for phase, letter in _PHASES.items() if letter in offered))


def retry(value: RetryPolicy) -> Value | None:
    """A retry policy; nothing for the default."""
    if value == RetryPolicy():
        return None
    return {"S": f"{value.max_attempts} {value.initial_seconds!r} {value.multiplier!r} {value.max_seconds!r}"}


def read_retry(value: Value) -> RetryPolicy:
    """Read a retry policy."""
    attempts, *seconds = str(value["S"]).split()
    return RetryPolicy(int(attempts), *map(float, seconds))


def tags(value: dict[str, str]) -> Value | None:
    """Tags; nothing for none."""
    return {"M": {key: {"S": tag} for key, tag in value.items()}} if value else None


def read_tags(value: Value) -> dict[str, str]:
    """Read tags."""
    return {key: tag["S"] for key, tag in value["M"].items()}


def progress(value: Progress) -> Value:
    """How far an attempt has come."""
    return {"S": f"{value.percent} {value.message}"}


def read_progress(value: Value) -> Progress:
    """Read how far an attempt has come."""
    percent, message = value["S"].split(" ", 1)
    return Progress(int(percent), message)


def error(value: TaskError) -> Value:
    """Why an attempt failed: the class and the packed message."""
    return {"L": [{"S": value.kind}, packed(value.message.encode())]}


def read_error(value: Value) -> TaskError:
    """Read why an attempt failed."""
    kind, message = value["L"]
    return TaskError(kind["S"], unpacked(message).decode())


def line(value: LedgerLine) -> Value:
    """One attempt, in hexadecimal numbers; the holder comes last because it may hold any character."""
    numbers = f"{value.attempt:x} {value.fence:x} {value.started_at:x} {value.late:x} {value.took:x}"
    return {"S": f"{numbers} {_OUTCOMES[value.outcome]} {value.holder}"}


def read_line(value: Value) -> LedgerLine:
    """Read one attempt."""
    *numbers, outcome, holder = value["S"].split(" ", 6)
    attempt, fence, started_at, late, took = (int(number, 16) for number in numbers)
    return LedgerLine(attempt, fence, holder, started_at, late, took, _LETTERS[outcome])


def ledger(value: tuple[LedgerLine, ...]) -> Value | None:
    """The last attempts; nothing for none."""
    return {"L": [line(each) for each in value]} if value else None


def read_ledger(value: Value) -> tuple[LedgerLine, ...]:
    """Read the last attempts."""
    return tuple(read_line(each) for each in value["L"])
