"""Codecs of a task's small fields: how they are written as attribute values, and read again.

A form that is `None` leaves the attribute out, which means the field's default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.attribute_values import packed, unpacked
from duetime.domain.tasks.attempt_records import Wait
from duetime.domain.tasks.content import Content, ContentPlace
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Progress, RequestedAction, Task
from duetime.domain.tasks.task_options import (
    Debounce,
    LockScope,
    LockSpec,
    NotifyOn,
    OnConflict,
    Priority,
    Rate,
    RetryPolicy,
    Unique,
    Until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.dynamodb.attribute_values import Value


_FAILURES, _NONE = "f", "-"
"""Whether failures are told."""


def traceparent(value: str) -> Value:
    """The trace in which a task was created: trace, parent and flags as they are in hexadecimal, 25 bytes."""
    return {"B": bytes.fromhex("".join(value.split("-")[1:]))}


def read_traceparent(value: Value) -> str:
    """Read the trace in which a task was created."""
    data = bytes(value["B"]).hex()
    return f"00-{data[:32]}-{data[32:48]}-{data[48:]}"


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


def requested_action(value: RequestedAction) -> Value:
    """What a user asks of the running attempt."""
    return {"S": value.value}


def read_requested_action(value: Value) -> RequestedAction:
    """Read what a user asks of the running attempt."""
    return RequestedAction(value["S"])


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


def retry(value: RetryPolicy) -> Value | None:
    """A retry policy, last how long attempts may start or 0; nothing for the default."""
    if value == RetryPolicy():
        return None
    delays = f"{value.initial_seconds!r} {value.multiplier!r} {value.max_seconds!r}"
    return {"S": f"{value.max_attempts} {delays} {value.max_duration_seconds or 0}"}


def read_retry(value: Value) -> RetryPolicy:
    """Read a retry policy."""
    attempts, initial, multiplier, most, duration = str(value["S"]).split()
    return RetryPolicy(int(attempts), float(initial), float(multiplier), float(most), int(duration) or None)


def lock(value: LockSpec) -> Value:
    """A named resource that a task needs: its limit, scope, how long an attempt may wait for it or 0, and its key."""
    return {"S": f"{value.max_holders} {value.scope} {value.wait_seconds or 0} {value.key}"}


def read_lock(value: Value) -> LockSpec:
    """Read a named resource."""
    limit, scope, wait, key = str(value["S"]).split(" ")
    return LockSpec(key, int(limit), LockScope(scope), int(wait) or None)


def rate(value: Rate) -> Value:
    """How often attempts of a key may start."""
    return {"S": f"{value.limit} {value.per_seconds} {value.burst} {value.key}"}


def read_rate(value: Value) -> Rate:
    """Read how often attempts of a key may start."""
    limit, seconds, burst, key = str(value["S"]).split(" ")
    return Rate(key, int(limit), int(seconds), int(burst))


def rate_places(value: Mapping[str, int]) -> Value | None:
    """Places in the lines of rates, by their keys; nothing for none."""
    return {"M": {key: {"N": str(place)} for key, place in value.items()}} if value else None


def read_rate_places(value: Value) -> Mapping[str, int]:
    """Read places in the lines of rates."""
    return {key: int(place["N"]) for key, place in value["M"].items()}


def notify_on(value: NotifyOn) -> Value:
    """Who is told of a failure or a late start: a letter for failures, the seconds, and last the address."""
    return {"S": f"{_FAILURES if value.failed else _NONE} {value.late_seconds or 0} {value.to}"}


def read_notify_on(value: Value) -> NotifyOn:
    """Read who is told of a failure or a late start."""
    failures, seconds, address = str(value["S"]).split(" ", 2)
    return NotifyOn(address, failures == _FAILURES, int(seconds) or None)


def tags(value: dict[str, str]) -> Value | None:
    """Tags; nothing for none."""
    return {"M": {key: {"S": tag} for key, tag in value.items()}} if value else None


def read_tags(value: Value) -> dict[str, str]:
    """Read tags."""
    return {key: tag["S"] for key, tag in value["M"].items()}


def nodes(value: tuple[str, ...]) -> Value | None:
    """Names of nodes; nothing for none."""
    return {"L": [{"S": name} for name in value]} if value else None


def read_nodes(value: Value) -> tuple[str, ...]:
    """Read names of nodes."""
    return tuple(str(each["S"]) for each in value["L"])


def progress(value: Progress) -> Value:
    """How far an attempt has come."""
    return {"S": f"{value.percent} {value.message}"}


def read_progress(value: Value) -> Progress:
    """Read how far an attempt has come."""
    percent, message = value["S"].split(" ", 1)
    return Progress(int(percent), message)


def waits(value: tuple[Wait, ...]) -> Value | None:
    """What a task has waited for: each a hexadecimal time and the reason; nothing for none."""
    return {"L": [{"S": f"{wait.since:x} {wait.reason}"} for wait in value]} if value else None


def read_waits(value: Value) -> tuple[Wait, ...]:
    """Read what a task has waited for."""
    parts = (str(each["S"]).partition(" ") for each in value["L"])
    return tuple(Wait(int(since, 16), reason) for since, _, reason in parts)


def unique(value: Unique) -> Value:
    """A unique key: how long it is held, what happens on a conflict, and last the key."""
    return {"S": f"{value.until} {value.on_conflict} {value.key}"}


def read_unique(value: Value) -> Unique:
    """Read a unique key."""
    until, on_conflict, key = str(value["S"]).split(" ")
    return Unique(key, Until(until), OnConflict(on_conflict))


def debounce(value: Debounce) -> Value:
    """How a task is put off: the seconds without a further creation, those in all or 0, and last the key."""
    return {"S": f"{value.seconds} {value.max_seconds or 0} {value.key}"}


def read_debounce(value: Value) -> Debounce:
    """Read how a task is put off."""
    seconds, most, key = str(value["S"]).split(" ")
    return Debounce(key, int(seconds), int(most) or None)
