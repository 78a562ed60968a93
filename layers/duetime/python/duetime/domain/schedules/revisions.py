"""Revisions of a schedule: determines the revision of an instant after any number of changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_REVISION_ENDS
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


NO_REVISION = 0
"""The revision of occurrences that the timing no longer includes."""
_STOPPED = LEASED | {State.PAUSED, State.SUCCEEDED, State.FAILED, State.ROLLED_BACK}


@dataclass(frozen=True, slots=True)
class RevisionEnd:
    """The end of a revision with the same timing as the later ones: occurrences that it placed up to the end still run.

    Attributes:
        until: the last instant that belongs to it.
        revision: its number.
        since: number of the first revision that was merged into it, or its own.
    """

    until: Millis
    revision: int
    since: int


@dataclass(frozen=True, slots=True)
class StoppedOccurrence:
    """A placed occurrence that its user stopped, or ran early, before the schedule was changed.

    Also an occurrence that was placed before a pause and is due after it: no other change keeps those.

    Attributes:
        nominal: its instant; no later revision places it again.
        task_id: its task.
        revision: under which it was placed: if its user resumes it, it still runs.
    """

    nominal: Millis
    task_id: TaskId
    revision: int


def revision_of(nominal: Millis, revision: int, ends: Sequence[RevisionEnd]) -> int:
    """The revision of an occurrence, independent of when it is placed.

    Args:
        nominal: its instant.
        revision: the present revision.
        ends: of the earlier revisions with the same timing, latest last.
    """
    return next((end.revision for end in ends if nominal <= end.until), revision)


def is_of(placed_by: int, nominal: Millis, revision: int, ends: Sequence[RevisionEnd]) -> bool:
    """Whether an occurrence that was placed by a revision may still run."""
    for end in ends:
        if nominal <= end.until:
            return end.since <= placed_by <= end.revision
    return placed_by == revision


def with_end(ends: Sequence[RevisionEnd], until: Millis, revision: int) -> tuple[RevisionEnd, ...]:
    """Adds the end of a revision; beyond the limit the two oldest are merged, which drops no occurrence."""
    after = (*ends, RevisionEnd(until, revision, revision))
    while len(after) > MAX_REVISION_ENDS:
        oldest, following, *others = after
        after = (replace(following, since=oldest.since), *others)
    return after


def is_to_begin(task: Task) -> bool:
    """Whether an occurrence can still start for the first time: it is open, and no attempt has ended."""
    return not task.is_terminal and not task.attempt_history and task.state is not State.ROLLING_BACK


def never_began(task: Task) -> bool:
    """Whether an occurrence ended before its target was called, even if its schedule had let it start."""
    return task.is_terminal and not task.erased and not task.attempt_history and task.started_at is None


def is_stopped(task: Task) -> bool:
    """Whether the task of a future occurrence was stopped, or run early, by a user."""
    if task.erased or task.state in _STOPPED:
        return True
    if task.state is State.CANCELLED:
        # Occurrences that the schedule itself dropped may run now.
        return not task.was_dropped
    return bool(task.attempt_history)


@dataclass(frozen=True, slots=True)
class Derivation:
    """Bits derived from a schedule, its revision and the key of an occurrence.

    Attributes:
        tail: 64 bits for the task's id.
        spread: 16 bits that determine its shard.
        delay: 64 bits that determine its jitter.
    """

    tail: int
    spread: int
    delay: int

    def task_id(self, home: Millis, shards: int) -> TaskId:
        """The id of the occurrence's task.

        Args:
            home: when it is due, or now if that is later; stored with the schedule before the task is created.
            shards: number of shards.
        """
        return TaskId.of(home, self.spread % shards, self.tail)


def derived(schedule_id: str, revision: int, key: str, purpose: str = "") -> Derivation:
    """Derives the bits of an occurrence.

    Args:
        schedule_id: the schedule's id.
        revision: its revision.
        key: the occurrence's key.
        purpose: distinguishes other tasks of the occurrence from the regular one, for example by a backfill's id.
    """
    digest = sha256("\0".join((schedule_id, str(revision), key, purpose)).encode()).digest()
    return Derivation(
        int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:10], "big"), int.from_bytes(digest[10:18], "big")
    )


def spread_offset(name: str, spread_seconds: int) -> Millis:
    """The constant delay of all occurrences of a schedule, in whole seconds, derived from its name alone."""
    digest = sha256(f"spread\0{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (spread_seconds + 1) * SECOND
