"""Attribute values: how DynamoDB's low-level interface writes numbers, texts, bytes and the domain's small values.

Written by hand because boto3's serializer goes through `Decimal` and costs more than everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.adapters.compression import deflated, inflated, smaller
from duetime.domain.retry import RetryPolicy
from duetime.domain.task import (
    AttemptOutcome,
    Content,
    ContentPlace,
    HttpTarget,
    LedgerLine,
    Phase,
    Progress,
    TaskError,
)
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.task import Target
    from duetime.domain.times import Millis

Value: TypeAlias = "Mapping[str, Any]"
"""One attribute value: its type's letter and the value."""
Item: TypeAlias = "dict[str, Value]"
"""An item, or the key of one."""
StoredItem: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""An item as DynamoDB hands it back."""

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


def number(value: float) -> Value:
    """A whole number."""
    return {"N": str(value)}


def whole(value: Value) -> int:
    """Read a whole number."""
    return int(value["N"])


def text(value: str) -> Value:
    """A text."""
    return {"S": value}


def string(value: Value) -> str:
    """Read a text."""
    return str(value["S"])


def flag(value: bool) -> Value | None:  # noqa: FBT001 - the value itself, not a switch
    """A truth; nothing at all for false."""
    return {"BOOL": True} if value else None


def truth(value: Value) -> bool:
    """Read a truth."""
    return bool(value["BOOL"])


def packed(data: bytes) -> Value:
    """Bytes in the fewest: `S` holds a text as it is, `B` holds anything compressed."""
    compressed = smaller(data)
    if compressed is None:
        try:
            return {"S": data.decode()}
        except UnicodeDecodeError:
            compressed = deflated(data)
    return {"B": compressed}


def unpacked(value: Value) -> bytes:
    """Read packed bytes."""
    return str(value["S"]).encode() if "S" in value else inflated(value["B"])


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


def expiry(at: Millis) -> Value:
    """An instant as a TTL attribute: whole seconds, rounded up."""
    return {"N": str(-(-at // SECOND))}


def read_expiry(value: Value) -> Millis:
    """Read an instant from a TTL attribute."""
    return int(value["N"]) * SECOND
