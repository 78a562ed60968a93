"""The data that AWS calls touch; exchanging two calls that touch no common data makes no difference."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.adapters.dynamodb import schema
from duetime_testing.fakes.statements import inserted_item

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime_testing.simulation.faults import Call


class Mode(Enum):
    """The kind of access. The order of two reads is irrelevant, as is the order of two sent messages."""

    READ = "read"
    SEND = "send"
    WRITE = "write"


Touch: TypeAlias = "tuple[Mode, tuple[str, ...]]"
"""The kind of access, and the path of the accessed data; a path includes everything below it."""
Footprint: TypeAlias = frozenset[Touch]
EVERYTHING: Footprint = frozenset({(Mode.WRITE, ())})
"""The footprint of a call that touches unknown data."""
_HELD, _NEW = "held", "new"
_READS = frozenset({"get_item", "query", "batch_get_item", "get_object", "head_object"})
_OF_ITEMS = frozenset({"get_item", "put_item", "update_item", "delete_item"})


def footprint_of(call: Call | None) -> Footprint:
    """The data that one call touches."""
    if call is None:
        return EVERYTHING
    match call.service:
        case "dynamodb":
            return _of_table(call)
        case "sqs":
            return _of_queue(call.operation, str(call.request.get("QueueUrl")))
        case "s3" if "Key" in call.request:
            return frozenset({(_mode(call.operation), ("s3", str(call.request["Key"])))})
    # Work that the call starts in another service continues by itself.
    return EVERYTHING


def received(url: str) -> Footprint:
    """The data touched by receiving messages from a queue."""
    return frozenset({(Mode.WRITE, ("sqs", url))})


def finished(url: str) -> Footprint:
    """The data touched by delaying or deleting received messages."""
    return frozenset({(Mode.WRITE, ("sqs", url, _HELD))})


def is_read(footprint: Footprint) -> bool:
    """Whether the call only reads data."""
    return all(mode is Mode.READ for mode, _ in footprint)


def starts_others(footprints: Iterable[Footprint]) -> bool:
    """Whether the calls start other work that may continue by itself."""
    return EVERYTHING in footprints


def conflict(one: Footprint, others: Iterable[Footprint]) -> bool:
    """Whether the position of one call among the other calls makes a difference."""
    return any(_differs(mine, theirs) for other in others for mine in one for theirs in other)


def last_conflict(footprints: Sequence[Footprint], before: int, others: Sequence[Footprint]) -> int:
    """The index of the last call before `before` whose order relative to the other calls matters; -1 if none does."""
    return next((n for n in range(before - 1, -1, -1) if conflict(footprints[n], others)), -1)


def _differs(one: Touch, other: Touch) -> bool:
    (mode, path), (other_mode, other_path) = one, other
    if mode is other_mode and mode is not Mode.WRITE:
        return False
    length = min(len(path), len(other_path))
    return path[:length] == other_path[:length]


def _mode(operation: str) -> Mode:
    return Mode.READ if operation in _READS else Mode.WRITE


def _of_table(call: Call) -> Footprint:
    operation, request, mode = call.operation, call.request, _mode(call.operation)
    if operation in _OF_ITEMS:
        return frozenset({(mode, _path_of(request.get("Key") or request["Item"]))})
    if operation == "batch_get_item":
        return frozenset((mode, _path_of(key)) for each in request["RequestItems"].values() for key in each["Keys"])
    if operation == "batch_execute_statement":
        inserted = [inserted_item(each["Statement"], each["Parameters"])[1] for each in request["Statements"]]
        return frozenset((mode, _path_of(item)) for item in inserted)
    if operation == "query" and "IndexName" not in request:
        return frozenset({(mode, ("table", call.partition) if call.partition else ("table",))})
    return frozenset({(mode, ("table",))})


def _path_of(key: Any) -> tuple[str, ...]:  # noqa: ANN401 - an item of the fake
    return ("table", key[schema.PARTITION_KEY]["S"], key[schema.SORT_KEY]["S"])


def _of_queue(operation: str, url: str) -> Footprint:
    match operation:
        case "send_message" | "send_message_batch":
            return frozenset({(Mode.SEND, ("sqs", url, _NEW))})
        case "change_message_visibility_batch" | "delete_message_batch":
            return finished(url)
        case "get_queue_attributes":
            return frozenset({(Mode.READ, ("sqs", url))})
    return received(url)
