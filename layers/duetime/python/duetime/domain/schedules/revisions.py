"""The revisions of a schedule: to which of them an instant belongs, after any number of changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_REVISION_ENDS
from duetime.domain.tasks.attempt_results import SKIPPED
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


NO_REVISION = 0
"""The revision of what belongs to none: its timing no longer means it."""
_STOPPED = LEASED | {State.PAUSED, State.SUCCEEDED, State.FAILED, State.ROLLED_BACK}


@dataclass(frozen=True, slots=True)
class RevisionEnd:
    """The end of a revision whose timing the later ones kept: what it placed up to there still runs.

    Attributes:
        until: the last instant that belongs to it.
        revision: its number.
        since: the number of the first revision that was merged into it, or its own.
    """

    until: Millis
    revision: int
    since: int


@dataclass(frozen=True, slots=True)
class StoppedOccurrence:
    """An occurrence that was placed ahead, and that its user stopped, or ran early, before the schedule was changed.

    Or one that was placed before a pause and is due after it: no other change keeps those.

    Attributes:
        nominal: the instant that it stands for; no later revision places it again.
        task_id: its task.
        revision: under which it was placed: should its user let it go on, it still runs.
    """

    nominal: Millis
    task_id: TaskId
    revision: int


def revision_of(nominal: Millis, revision: int, ends: Sequence[RevisionEnd]) -> int:
    """The revision under which an occurrence is placed, whenever that is done.

    Args:
        nominal: the instant that it stands for.
        revision: the present revision.
        ends: of the revisions before it, the latest last, as far back as the timing is the same.
    """
    return next((end.revision for end in ends if nominal <= end.until), revision)


def is_of(placed_by: int, nominal: Millis, revision: int, ends: Sequence[RevisionEnd]) -> bool:
    """Whether an occurrence that a revision placed may still run."""
    for end in ends:
        if nominal <= end.until:
            return end.since <= placed_by <= end.revision
    return placed_by == revision


def with_end(ends: Sequence[RevisionEnd], until: Millis, revision: int) -> tuple[RevisionEnd, ...]:
    """With the end of one more revision; beyond the limit the two oldest become one, which drops no occurrence."""
    after = (*ends, RevisionEnd(until, revision, revision))
    while len(after) > MAX_REVISION_ENDS:
        oldest, following, *others = after
        after = (replace(following, since=oldest.since), *others)
    return after


def is_to_begin(task: Task) -> bool:
    """Whether an occurrence may still come to its first start: it has not ended, and no attempt of it has."""
    return not task.is_terminal and not task.attempt_history and task.state is not State.ROLLING_BACK


def never_began(task: Task) -> bool:
    """Whether an occurrence has ended before its target was called: whatever let it begin, something else held it."""
    return task.is_terminal and not task.erased and not task.attempt_history and task.started_at is None


def is_stopped(task: Task) -> bool:
    """Whether the task of an occurrence that is still to come has been stopped, or run early, by its user."""
    if task.erased or task.state in _STOPPED:
        return True
    if task.state is State.CANCELLED:
        # What the schedule itself did not want then, it may want now.
        return task.error is None or task.error.type != SKIPPED
    return bool(task.attempt_history)


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
