"""What the writes of tasks mean for the counts of tasks.

A write takes a task out of one group and puts it into another. Counts are sums of such steps, so they may be added in
any order; each step must be added once, though the stream may tell of it again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.change_events import TaskChange, TaskSnapshot
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


MARK_BYTES = 8
"""Of what a step is known again by: few enough to keep, enough that no two of one minute are alike."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Tasks that are counted together."""

    type: str
    state: State
    priority: Priority


@dataclass(frozen=True, slots=True)
class Step:
    """What one write means for the counts.

    Attributes:
        mark: the same each time the stream tells of the write.
        left: the group that the task was in; `None` if it was in none.
        entered: the group that it is in now; `None` if it is in none.
        at: when the write was made: a whole second, the same each time the stream delivers it.
    """

    mark: bytes
    left: Group | None
    entered: Group | None
    at: Millis

    @property
    def types(self) -> set[str]:
        """The types whose counts it is about."""
        return {group.type for group in (self.left, self.entered) if group is not None}


@dataclass(frozen=True, slots=True)
class StepSet:
    """Steps that are counted, and remembered, together: those of one owner's part, written in the same span of time.

    The time is that of the writes, not of the count: a step that is delivered again belongs to the same sets. It is
    remembered in the widest one that was not full when it was counted. A full set does not change any more, so whoever
    finds a step in none of the full sets, and neither in the first that is not, knows that it is not counted.

    Attributes:
        part: of the owner's counts; see `part_of`.
        begins_at: when the span begins.
        span: its length, one of `SUMMARY_SPANS`.
        generation: of the counts that they are added to.
    """

    owner: str
    part: int
    begins_at: Millis
    span: Millis = SUMMARY_SPANS[0]
    generation: int = 0

    @property
    def ends_at(self) -> Millis:
        """When the span ends."""
        return self.begins_at + self.span

    def narrowed(self, steps: Iterable[Step]) -> dict[StepSet, list[Step]]:
        """The sets of the next shorter span that steps of this one belong to; none if there is no shorter one."""
        found: dict[StepSet, list[Step]] = defaultdict(list)
        for span in [each for each in SUMMARY_SPANS if each < self.span][:1]:
            for step in steps:
                found[replace(self, begins_at=step.at - step.at % span, span=span)].append(step)
        return found


@dataclass(frozen=True, slots=True)
class CountedSteps:
    """Which steps of a set are in the counts.

    Attributes:
        marks: of the steps.
        version: of this value; 0 if none is stored.
    """

    marks: frozenset[bytes] = frozenset()
    version: int = 0

    def missing(self, steps: Iterable[Step]) -> list[Step]:
        """Those that are not counted yet, each once."""
        return list({step.mark: step for step in steps if step.mark not in self.marks}.values())

    @property
    def is_full(self) -> bool:
        """Whether further steps are remembered in sets of a shorter span, if there are any."""
        return len(self.marks) >= SUMMARY_STEPS_TOGETHER

    def followed_by(self, steps: Iterable[Step]) -> CountedSteps:
        """The value after these were counted, too."""
        return CountedSteps(self.marks | {step.mark for step in steps}, self.version + 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """An owner's counts.

    Attributes:
        counts: the number of tasks in each group that has some.
        as_of: when the latest write was made that is counted; `None` if none is.
        is_complete: whether all tasks are in it: there may be more types than are read, and older tasks that are not
            recounted yet.
        counted_since: tasks that were created before are counted by reading the table; `None` if none are.
        recounted_at: when they were last; `None` if they were not.
    """

    counts: Mapping[Group, int] = field(default_factory=dict)
    as_of: Millis | None = None
    is_complete: bool = True
    counted_since: Millis | None = None
    recounted_at: Millis | None = None


def part_of(task: TaskSnapshot, spread: int) -> int:
    """In which part of its owner's counts a task is: all of one shard are in the same."""
    return task.id.shard % spread


def steps_of(
    changes: Iterable[TaskChange], spread: int, generation: int = 0, since: Millis = 0
) -> dict[StepSet, list[Step]]:
    """The steps that writes mean, by the sets of the longest span; most writes of a task mean none.

    Args:
        changes: the writes.
        spread: into how many parts each owner's counts are split.
        generation: of the counts.
        since: writes of tasks that were created before are left out.
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
    """By how much the count of each group changes; groups whose count stays are left out."""
    found: Counter[Group] = Counter()
    for step in steps:
        if step.left is not None:
            found[step.left] -= 1
        if step.entered is not None:
            found[step.entered] += 1
    return {group: number for group, number in sorted(found.items()) if number}


def first_of_types(steps: Sequence[Step], most: int) -> list[Step]:
    """As many of the steps, from the first, as are about no more types than that."""
    types: set[str] = set()
    for number, step in enumerate(steps):
        types |= step.types
        if len(types) > most:
            return list(steps[:number])
    return list(steps)


def added(parts: Iterable[Summary]) -> Summary:
    """The counts of an owner's parts in one."""
    counts: Counter[Group] = Counter()
    as_of: Millis | None = None
    is_complete = True
    for part in parts:
        counts.update(part.counts)
        as_of = max((at for at in (as_of, part.as_of) if at is not None), default=None)
        is_complete = is_complete and part.is_complete
    return Summary({group: number for group, number in sorted(counts.items()) if number}, as_of, is_complete)


def _group(task: TaskSnapshot | None) -> Group | None:
    """The group that a task is in; to users, one that was erased is not there."""
    return None if task is None or task.erased else Group(task.type, task.state, task.priority)


def _mark(change_id: str) -> bytes:
    return blake2b(change_id.encode(), digest_size=MARK_BYTES).digest()


def are_old(steps: Iterable[Step], now: Millis) -> bool:
    """Whether some of the changes are so old that others may be lost."""
    return any(now - step.at > SUMMARY_GAP for step in steps)


@dataclass(frozen=True, slots=True)
class Recount:
    """One reading of the table.

    Attributes:
        number: of this recount; a later one has a greater number.
        started_at: when it started.
        found: how many older tasks it has found so far.
        part: how many parts of it are counted.
        cursor: where its next part begins; empty for the beginning of the table.
        busy_since: when the part that is being counted was begun; `None` between parts.
    """

    number: int
    started_at: Millis
    found: int = 0
    part: int = 0
    cursor: str = ""
    busy_since: Millis | None = None


@dataclass(frozen=True, slots=True)
class OlderTasks:
    """Older tasks that were read from a part of the table.

    Attributes:
        counts: their number, by owner and group.
        cursor: where the next part begins; empty if there is none.
    """

    counts: Mapping[tuple[str, Group], int]
    cursor: str


@dataclass(frozen=True, slots=True)
class EndedCounts:
    """How far the counts of ended generations were given a time to live.

    Attributes:
        before: the counts of all generations before this one were.
        owner: the last owner whose counts of later ones were; empty for none.
    """

    before: int = 0
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of counts.

    Attributes:
        number: from 0; a later one has a greater number.
        since: tasks that were created at or after this are counted by their changes; 0: all are.
        seen_at: when it was last known that changes are read.
        recounting: the recount that is going on; `None` for none.
        recounted: the last complete one; `None` for none.
        ended_counts: those of generations that have ended.
        version: of this value; 0 if it is not stored.
    """

    number: int
    since: Millis
    seen_at: Millis
    recounting: Recount | None = None
    recounted: Recount | None = None
    ended_counts: EndedCounts = EndedCounts()
    version: int = 0

    def was_unread(self, now: Millis) -> bool:
        """Whether nobody may have read changes for so long that some are lost."""
        return now - self.seen_at > SUMMARY_GAP

    def next(self, now: Millis) -> Generation:
        """The next generation. It begins a little later, when every process knows of it."""
        # Owners before the one that was reached have counts of this generation, too.
        ended = EndedCounts(self.ended_counts.before)
        return Generation(self.number + 1, now + SUMMARY_RESTART_DELAY, now, ended_counts=ended, version=self.version)

    def is_complete(self, now: Millis) -> bool:
        """Whether all tasks are counted, older ones as of the last recount."""
        if not self.since:
            return True
        return self.recounted is not None and now - self.recounted.started_at < SUMMARY_RECOUNT_KEPT

    def advanced(self, now: Millis) -> Generation | None:
        """The value to store before a part is counted, or only to say that changes are read; `None` for none."""
        recount = self._next_part(now)
        if recount is not None:
            return replace(self, seen_at=now, recounting=replace(recount, busy_since=now))
        return replace(self, seen_at=now) if now - self.seen_at >= SUMMARY_SEEN_EVERY else None

    def after_part(self, read: OlderTasks) -> Generation:
        """The value to store after the part was counted."""
        assert self.recounting is not None  # noqa: S101 - whoever counts a part has begun it
        found = self.recounting.found + sum(read.counts.values())
        done = replace(self.recounting, found=found, part=self.recounting.part + 1, cursor=read.cursor, busy_since=None)
        if read.cursor:
            return replace(self, recounting=done)
        return replace(self, recounting=None, recounted=done)

    def lets_counts_expire(self, now: Millis) -> bool:
        """Whether counts of ended generations have no time to live, and nobody uses them any more."""
        return self.ended_counts.before < self.number and now >= self.since + SUMMARY_ENDED_KEPT

    def after_ended_counts(self, owner: str) -> Generation:
        """The value to store after counts were given a time to live, up to those of an owner; empty: all of them."""
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
        # Nobody knows how much of the part was counted: all begins again, under another number.
        return Recount(self.recounting.number + 1, now)

    def _next_recount_at(self) -> Millis | None:
        """When the next recount should start; `None` if no task is left for it."""
        last = self.recounted
        if not self.since or (last is not None and not last.found):
            return None
        if last is None:
            # By then, no request is left that creates an older task.
            return self.since + SUMMARY_RESTART_DELAY
        age = last.started_at - self.since
        return last.started_at + min(max(age, SUMMARY_RECOUNT_AGAIN), SUMMARY_RECOUNT_AT_LEAST)
