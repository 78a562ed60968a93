"""Counts of tasks, derived from writes to their records.

A write moves a task from one group to another. Counts are sums of such steps, which may be added in any order. Each
step must be added only once, even if the stream redelivers the write.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    SUMMARY_ENDED_KEPT,
    SUMMARY_GAP,
    SUMMARY_RECOUNT_AGAIN,
    SUMMARY_RECOUNT_AT_LEAST,
    SUMMARY_RECOUNT_KEPT,
    SUMMARY_RECOUNT_LEASE,
    SUMMARY_RESTART_DELAY,
    SUMMARY_SEEN_EVERY,
    SUMMARY_SPANS,
    SUMMARY_STEPS_TOGETHER,
)
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.change_events import TaskChange, TaskSnapshot
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


MARK_BYTES = 8
"""Size of a step's mark in bytes, which is small enough to store, and large enough that marks within a minute are
unique."""


@frozen(order=True)
class Group:
    """A group of tasks that are counted together."""

    type: str
    state: State
    priority: Priority


@frozen
class Step:
    """The effect of one write on the counts.

    Attributes:
        mark: identifies the write, and is the same for each delivery.
        left: the group before the write; `None` if the task was in no group.
        entered: the group after the write; `None` if the task is in no group.
        at: when the write was made, in whole seconds; the same for each delivery.
    """

    mark: bytes
    left: Group | None
    entered: Group | None
    at: Millis

    @property
    def types(self) -> set[str]:
        """The types whose counts the step affects."""
        return {group.type for group in (self.left, self.entered) if group is not None}


@frozen
class StepSet:
    """A set of steps that are counted and stored together, for writes to one part of an owner's tasks in one time span.

    The time of the writes determines the span, so a redelivered step belongs to the same sets. A step is stored in the
    set with the longest span that was not full when the step was counted. A full set no longer changes. A step is
    therefore uncounted if it is neither in a full set nor in the first set that is not full.

    Attributes:
        part: part of the owner's counts, as returned by `part_of`.
        begins_at: start of the span.
        span: its length, one of `SUMMARY_SPANS`.
        generation: generation of the counts.
    """

    owner: str
    part: int
    begins_at: Millis
    span: Millis = SUMMARY_SPANS[0]
    generation: int = 0

    @property
    def ends_at(self) -> Millis:
        """End of the span."""
        return self.begins_at + self.span

    def narrowed(self, steps: Iterable[Step]) -> dict[StepSet, list[Step]]:
        """The sets with the next shorter span that cover this set's span; empty if there is no shorter span."""
        found: dict[StepSet, list[Step]] = defaultdict(list)
        for span in [each for each in SUMMARY_SPANS if each < self.span][:1]:
            for step in steps:
                found[replace(self, begins_at=step.at - step.at % span, span=span)].append(step)
        return found


@frozen
class CountedSteps:
    """The counted steps of a set.

    Attributes:
        marks: marks of the steps.
        version: version of this value; 0 if nothing is stored.
    """

    marks: frozenset[bytes] = frozenset()
    version: int = 0

    def missing(self, steps: Iterable[Step]) -> list[Step]:
        """The steps that are not counted yet, without duplicates."""
        return list({step.mark: step for step in steps if step.mark not in self.marks}.values())

    @property
    def is_full(self) -> bool:
        """Whether this set is full, so that more steps are stored in sets with a shorter span, if there is one."""
        return len(self.marks) >= SUMMARY_STEPS_TOGETHER

    def followed_by(self, steps: Iterable[Step]) -> CountedSteps:
        """The value after counting these steps."""
        return CountedSteps(self.marks | {step.mark for step in steps}, self.version + 1)


@frozen
class Summary:
    """An owner's counts.

    Attributes:
        counts: number of tasks in each group that is not empty.
        as_of: time of the latest write that was counted; `None` if no write was counted.
        is_complete: whether all tasks are included; false if not all types were read, or if older tasks have not been
            recounted yet.
        counted_since: tasks created before this time are counted by reading the table; `None` if there are no such
            tasks.
        recounted_at: time of the latest recount; `None` if there was no recount.
    """

    counts: Mapping[Group, int] = field(default_factory=dict)
    as_of: Millis | None = None
    is_complete: bool = True
    counted_since: Millis | None = None
    recounted_at: Millis | None = None


def part_of(task: TaskSnapshot, spread: int) -> int:
    """The part of its owner's counts that a task belongs to; tasks of the same shard are in the same part."""
    return task.id.shard % spread


def steps_of(
    changes: Iterable[TaskChange], spread: int, generation: int = 0, since: Millis = 0
) -> dict[StepSet, list[Step]]:
    """The steps of writes, grouped by the sets with the longest span; most writes to a task cause no step.

    Args:
        changes: the writes.
        spread: number of parts of each owner's counts.
        generation: generation of the counts.
        since: writes to tasks that were created earlier are ignored.
    """
    found: dict[StepSet, list[Step]] = defaultdict(list)
    for change in changes:
        task = change.after or change.before
        step = Step(_mark(change.id), _group(change.before), _group(change.after), change.at)
        if task is not None and step.left != step.entered and task.created_at >= since:
            begins_at = change.at - change.at % SUMMARY_SPANS[0]
            found[StepSet(task.owner, part_of(task, spread), begins_at, generation=generation)].append(step)
    return found


def sums(steps: Iterable[Step]) -> dict[Group, int]:
    """The change of each group's count; groups without a change are left out."""
    found: Counter[Group] = Counter()
    for step in steps:
        if step.left is not None:
            found[step.left] -= 1
        if step.entered is not None:
            found[step.entered] += 1
    return {group: number for group, number in sorted(found.items()) if number}


def first_of_types(steps: Sequence[Step], most: int) -> list[Step]:
    """The longest prefix of the steps that affects no more than the given number of types."""
    types: set[str] = set()
    for number, step in enumerate(steps):
        types |= step.types
        if len(types) > most:
            return list(steps[:number])
    return list(steps)


def added(parts: Iterable[Summary]) -> Summary:
    """Adds up the counts of an owner's parts."""
    counts: Counter[Group] = Counter()
    as_of: Millis | None = None
    is_complete = True
    for part in parts:
        counts.update(part.counts)
        as_of = max((at for at in (as_of, part.as_of) if at is not None), default=None)
        is_complete = is_complete and part.is_complete
    return Summary({group: number for group, number in sorted(counts.items()) if number}, as_of, is_complete)


def _group(task: TaskSnapshot | None) -> Group | None:
    """The group of a task; erased tasks have no group."""
    return None if task is None or task.erased else Group(task.type, task.state, task.priority)


def _mark(change_id: str) -> bytes:
    return blake2b(change_id.encode(), digest_size=MARK_BYTES).digest()


def are_old(steps: Iterable[Step], now: Millis) -> bool:
    """Whether any change is so old that other changes may have been lost."""
    return any(now - step.at > SUMMARY_GAP for step in steps)


@frozen
class Recount:
    """One recount, which reads the entire table.

    Attributes:
        number: later recounts have greater numbers.
        started_at: when it started.
        found: number of older tasks found so far.
        part: number of parts counted so far.
        cursor: where the recount's next part starts; empty for the start of the table.
        busy_since: when counting of the current part started; `None` between parts.
    """

    number: int
    started_at: Millis
    found: int = 0
    part: int = 0
    cursor: str = ""
    busy_since: Millis | None = None


@frozen
class OlderTasks:
    """Older tasks that were read from one part of the table.

    Attributes:
        counts: number of these tasks, by owner and group.
        cursor: start of the next part; empty if there is no next part.
    """

    counts: Mapping[tuple[str, Group], int]
    cursor: str


@frozen
class EndedCounts:
    """Progress of setting the TTL of ended generations' counts.

    Attributes:
        before: a generation; the counts of all earlier generations have a TTL.
        owner: the last owner whose counts in this and later ended generations have been given a TTL; empty for no
            owner.
    """

    before: int = 0
    owner: str = ""


@frozen
class Generation:
    """A generation of counts.

    Attributes:
        number: number of the generation, from 0; later generations have greater numbers.
        since: tasks created at or after this time are counted by their changes; 0 for all tasks.
        seen_at: the latest stored time at which changes were read.
        recounting: the current recount, if any.
        recounted: the last complete recount, if any.
        ended_counts: progress of setting the TTL of ended generations' counts.
        version: version of this value; 0 if nothing is stored.
    """

    number: int
    since: Millis
    seen_at: Millis
    recounting: Recount | None = None
    recounted: Recount | None = None
    ended_counts: EndedCounts = EndedCounts()
    version: int = 0

    def was_unread(self, now: Millis) -> bool:
        """Whether changes may have been unread for so long that some changes are lost."""
        return now - self.seen_at > SUMMARY_GAP

    def next(self, now: Millis) -> Generation:
        """The next generation, which starts after some time, when every process knows about it."""
        # Owners before the last processed owner also have counts in this generation, without a TTL.
        ended = EndedCounts(self.ended_counts.before)
        return Generation(self.number + 1, now + SUMMARY_RESTART_DELAY, now, ended_counts=ended, version=self.version)

    def is_complete(self, now: Millis) -> bool:
        """Whether all tasks are counted, including older tasks as of the last recount."""
        if not self.since:
            return True
        return self.recounted is not None and now - self.recounted.started_at < SUMMARY_RECOUNT_KEPT

    def advanced(self, now: Millis) -> Generation | None:
        """The value to store before a part is counted, or when changes are read; `None` if nothing must be stored."""
        recount = self._next_part(now)
        if recount is not None:
            return replace(self, seen_at=now, recounting=replace(recount, busy_since=now))
        return replace(self, seen_at=now) if now - self.seen_at >= SUMMARY_SEEN_EVERY else None

    def after_part(self, read: OlderTasks) -> Generation:
        """The value to store after a part was counted."""
        assert self.recounting is not None  # noqa: S101 - whoever counts a part has begun it
        found = self.recounting.found + sum(read.counts.values())
        done = replace(self.recounting, found=found, part=self.recounting.part + 1, cursor=read.cursor, busy_since=None)
        if read.cursor:
            return replace(self, recounting=done)
        return replace(self, recounting=None, recounted=done)

    def lets_counts_expire(self, now: Millis) -> bool:
        """Whether there are counts of ended generations that are no longer used and have no TTL yet."""
        return self.ended_counts.before < self.number and now >= self.since + SUMMARY_ENDED_KEPT

    def after_ended_counts(self, owner: str) -> Generation:
        """The value after the TTL was set for the counts of all owners up to the given owner; empty for all owners."""
        return replace(
            self, ended_counts=EndedCounts(self.ended_counts.before, owner) if owner else EndedCounts(self.number)
        )

    def _next_part(self, now: Millis) -> Recount | None:
        """The recount whose next part should be counted now."""
        if self.recounting is None:
            due_at = self._next_recount_at()
            last = self.recounted.number if self.recounted else 0
            return None if due_at is None or now < due_at else Recount(last + 1, now)
        if self.recounting.busy_since is None:
            return self.recounting
        if now - self.recounting.busy_since < SUMMARY_RECOUNT_LEASE:
            return None
        # It is unknown how much of the part was counted before the process died, so the recount restarts with a new
        # number.
        return Recount(self.recounting.number + 1, now)

    def _next_recount_at(self) -> Millis | None:
        """When the next recount should start; `None` if no older tasks are left."""
        last = self.recounted
        if not self.since or (last is not None and not last.found):
            return None
        if last is None:
            # After this time, no request can still create a task from before the generation.
            return self.since + SUMMARY_RESTART_DELAY
        age = last.started_at - self.since
        return last.started_at + min(max(age, SUMMARY_RECOUNT_AGAIN), SUMMARY_RECOUNT_AT_LEAST)
