"""What an occurrence's task is made of: the same occurrence gives the same id wherever and however often it is made."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Derivation:
    """Bits that follow from a schedule, its revision and the local time with offset that an occurrence stands for.

    Attributes:
        tail: 64 bits for the task's id.
        spread: 16 bits that choose its shard.
        delay: 64 bits that choose its delay within the jitter.
    """

    tail: int
    spread: int
    delay: int

    def task_id(self, home: Millis, shards: int) -> TaskId:
        """The id of the occurrence's task.

        Args:
            home: when it is due, or now if that is later; stored with the schedule before the task is put.
            shards: how many shards there are.
        """
        return TaskId.of(home, self.spread % shards, self.tail)


def derived(schedule_id: str, revision: int, key: str, purpose: str = "") -> Derivation:
    """Derive an occurrence's bits.

    Args:
        schedule_id: the schedule's id.
        revision: its revision.
        key: the occurrence's key.
        purpose: what else it is made for, such as a backfill's id, so that it is another task than the regular one.
    """
    digest = sha256("\0".join((schedule_id, str(revision), key, purpose)).encode()).digest()
    return Derivation(
        int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:10], "big"), int.from_bytes(digest[10:18], "big")
    )


def spread_offset(name: str, spread_seconds: int) -> Millis:
    """How much later all occurrences of a schedule are due, in whole seconds: it follows from the name alone."""
    digest = sha256(f"spread\0{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (spread_seconds + 1) * SECOND
