"""Task ids, which are ULIDs that contain the task's minute, shard and due time, and trace ids (`traceparent`).

A ULID is 48 bits of milliseconds and 80 random bits, written as 26 characters of Crockford's base 32 (Source: the ULID
specification). The milliseconds are the task's home, which is `max(due, now)` at the task's creation. The first 16
random bits are its shard. The id therefore determines the record's key, ids sort by due time, and changing the number
of shards does not move any record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from duetime.domain.operating_parameters import OWNER_SPREAD
from duetime.domain.times import LAST_INSTANT, Millis, label_of, minute_of

MAX_SHARDS = 1 << 16
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BASE_32 = dict.fromkeys(range(128), "!") | str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")
"""Maps Crockford's digits to Python's digits, and all other characters to an invalid digit."""
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
"""Encodes two letters at a time for speed, because creating a large graph takes tens of thousands of ids."""
TASK_ID_PATTERN = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_PATTERN = re.compile(TASK_ID_PATTERN)
_LENGTH = 26
_SHIFTS = tuple(range(5 * (_LENGTH - 2), -1, -10))
_RANDOM_BITS = 80
_TAIL_BITS = 64
_BYTES = 16
_HOME_BYTES = _BYTES - _RANDOM_BITS // 8
NODE_MARK = "#N"
"""Separates owner and number in the partition keys under which an owner's nodes are listed. Nodes are listed apart from
other tasks because a graph can have thousands of nodes."""


class InvalidTaskId(ValueError):
    """A string is not a valid task id."""

    def __init__(self) -> None:
        super().__init__("is not a task id: 26 characters of Crockford's base 32 in upper case")


@dataclass(frozen=True, order=True)
class TaskId:
    """A task's id. Ids are compared and hashed by their text."""

    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, home: Millis, shard: int, tail: int) -> TaskId:
        """Creates an id.

        Args:
            home: determines the record's minute; not before the epoch.
            shard: 0 to 65535.
            tail: 64 random bits.
        """
        number = home << _RANDOM_BITS | shard << _TAIL_BITS | tail
        return cls("".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS]))

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Parses an id.

        Raises:
            InvalidTaskId: the string is not an id, or the id's time is out of range.
        """
        if _PATTERN.fullmatch(text) is None:
            raise InvalidTaskId
        task_id = cls(text)
        if task_id.home > LAST_INSTANT:
            raise InvalidTaskId
        return task_id

    @cached_property
    def _number(self) -> int:
        return int(self.text.translate(_BASE_32), 32)

    @property
    def home(self) -> Millis:
        """The later of the task's due time at its creation and the time of its creation."""
        return self._number >> _RANDOM_BITS

    @property
    def shard(self) -> int:
        """The shard in which the record is stored."""
        return self._number >> _TAIL_BITS & MAX_SHARDS - 1

    @property
    def minute(self) -> int:
        """The minute under which the record is stored."""
        return minute_of(self.home)

    @property
    def partition(self) -> str:
        """Partition key of the record: `2026-11-21T02:33#0007`."""
        return partition_of(self.minute, self.shard)

    def at_time(self, home: Millis) -> TaskId:
        """A copy of the id with a different time but the same shard and random bits."""
        return TaskId.of(home, self.shard, self._number & (1 << _TAIL_BITS) - 1)

    @property
    def data(self) -> bytes:
        """The id as 16 bytes, in the same order as its text."""
        return self._number.to_bytes(_BYTES)

    @classmethod
    def from_data(cls, data: bytes) -> TaskId:
        """The id in 16 bytes."""
        number = int.from_bytes(data)
        return cls("".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS]))

    @staticmethod
    def home_of_data(data: bytes) -> Millis:
        """The home of an id that is given as 16 bytes."""
        return int.from_bytes(data[:_HOME_BYTES])

    @staticmethod
    def data_at_time(data: bytes, home: Millis) -> bytes:
        """Does the same as `at_time` for an id that is given as 16 bytes."""
        return home.to_bytes(_HOME_BYTES) + data[_HOME_BYTES:]

    def owner_partition(self, owner: str, *, is_node: bool = False) -> str:
        """Partition key of this task in its owner's list: `owner#n`, or `owner#Nn` for a node of a topology."""
        mark = NODE_MARK if is_node else "#"
        return f"{owner}{mark}{self.shard % OWNER_SPREAD}"


def partition_of(minute: int, shard: int) -> str:
    """Partition key of one shard of one minute, with the shard in hexadecimal: `2026-11-21T02:33#0007`."""
    return f"{label_of(minute)}#{shard:04x}"


TRACEPARENT = "traceparent"
"""Name of the header, message attribute and field that identify the trace in which a task was created (W3C Trace
Context).

The task's creation context is passed on unchanged. Spans of work that starts hours later link to this context instead
of being children of a span that ended long ago.
"""
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRACE_VERSION = "00"
_INVALID_VERSION = "ff"
_TRACE_FLAGS = 0b11
"""The flags for a sampled trace and for a random trace id; all other flags are reserved and are sent as zero."""


def read_traceparent(text: str | None) -> str | None:
    """The creation context of a request; `None` if the text is not well-formed.

    Contexts with a later version are parsed and sent as if they had the current version (Source: W3C Trace Context,
    "Versioning of traceparent" and "Considerations for trace-flags field generation").
    """
    found = _TRACEPARENT.fullmatch(text or "")
    if found is None:
        return None
    version, trace, parent, flags, rest = found.groups()
    is_invalid = version == _INVALID_VERSION or not int(trace, 16) or not int(parent, 16)
    if is_invalid or (rest and version == _TRACE_VERSION):
        return None
    return f"{_TRACE_VERSION}-{trace}-{parent}-{int(flags, 16) & _TRACE_FLAGS:02x}"


def trace_id_of(traceparent: str) -> str:
    """The id of the trace."""
    return traceparent.split("-")[1]
