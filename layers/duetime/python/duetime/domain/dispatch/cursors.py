"""Cursors, which record each reading's progress through the minutes of a shard group, separately for lagging queues.

The dispatch status, which covers the tasks of all owners, shows operators whether dispatch lags.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import DIRECT_SLACK, RECOVERY_SCAN_DELAYS, SHARDS_SETTLE
from duetime.domain.times import Millis, minute_of, start_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.tasks.task_options import Priority


DISPATCH = 0
"""Index of the first reading; the recovery scans follow in the order of `RECOVERY_SCAN_DELAYS`."""
FIRST_SCAN = 1
"""Index of the first recovery scan."""
LAST_SCAN = len(RECOVERY_SCAN_DELAYS)
"""Index of the last recovery scan."""
ALL = ""
"""Used in place of a queue name for all queues that do not lag."""


@frozen
class Progress:
    """The progress of one reader.

    The progress of two readers can be merged into a progress that includes the work of both readers.

    Attributes:
        upto: every minute up to and including this minute is done, except open minutes.
        open: the unfinished shards of each open minute, each with the sort key of the last processed item, or an empty
            string before the first item.
    """

    upto: int
    open: Mapping[int, Mapping[int, str]] = field(default_factory=dict)

    @property
    def floor(self) -> int:
        """The last minute before the first open minute."""
        return min(self.open, default=self.upto + 1) - 1

    def is_done(self, minute: int) -> bool:
        """Whether a minute is completely done."""
        return minute <= self.upto and minute not in self.open

    def begun(self, minute: int, shards: Iterable[int]) -> Progress:
        """A copy in which all minutes up to and including this minute are open, unless they are done."""
        if minute <= self.upto:
            return self
        unread = dict.fromkeys(shards, "")
        return Progress(minute, {**self.open, **dict.fromkeys(range(self.upto + 1, minute + 1), unread)})

    def moved(self, minute: int, positions: Mapping[int, str | None]) -> Progress:
        """A copy that has advanced in an open minute to a sort key in each shard; `None` stands for the shard's end."""
        unfinished = {}
        for shard, before in self.open.get(minute, {}).items():
            after = positions.get(shard, before)
            if after is not None:
                unfinished[shard] = max(before, after)
        return self._with(minute, unfinished)

    def _with(self, minute: int, unfinished: Mapping[int, str]) -> Progress:
        still_open = {each: positions for each, positions in self.open.items() if each != minute}
        return replace(self, open={**still_open, minute: unfinished} if unfinished else still_open)

    def joined(self, other: Progress) -> Progress:
        """Combines the progress of two readers."""
        still_open = {}
        for minute in self.open.keys() | other.open.keys():
            mine, others = self._unfinished(minute), other._unfinished(minute)
            if mine is None or others is None:
                unfinished = others if mine is None else mine
            else:
                unfinished = {shard: max(mine[shard], others[shard]) for shard in mine.keys() & others.keys()}
            if unfinished:
                still_open[minute] = unfinished
        return Progress(max(self.upto, other.upto), still_open)

    def _unfinished(self, minute: int) -> Mapping[int, str] | None:
        """The unfinished shards of a minute; empty if the minute is done, `None` if it has not started."""
        return None if minute > self.upto else self.open.get(minute, {})

    def covers(self, other: Progress) -> bool:
        """Whether this progress includes everything that another reader has done."""
        return self.joined(other) == self

    def limited(self, upto: int) -> Progress:
        """A copy whose progress ends at the given minute, so that later minutes are read again."""
        if self.upto <= upto:
            return self
        return Progress(upto, {minute: shards for minute, shards in self.open.items() if minute <= upto})


@frozen
class Cursors:
    """The progress of all readers in a group of shards.

    A queue lags if it cannot be served, or has more to send than other queues should wait for. So that a lagging queue
    does not delay other queues, it has its own progress until it has caught up.

    Attributes:
        readings: the progress of the first reading, followed by the progress of each recovery scan.
        lagging: the progress of each queue that lags, by the index of the reading and the queue's name.
        epoch: incremented each time another process takes the group over, or saves the group without holding it; only
            the process with the newest epoch can advance the cursors.
        holder: the process that reads the group.
    """

    readings: tuple[Progress, ...]
    lagging: Mapping[tuple[int, str], Progress] = field(default_factory=dict)
    epoch: int = 0
    holder: str = ""

    @classmethod
    def at(cls, minutes: Iterable[int], epoch: int = 0) -> Cursors:
        """Cursors whose readings have finished all minutes up to and including the given minutes, one per reading."""
        return cls(tuple(Progress(minute) for minute in minutes), epoch=epoch)

    @property
    def floors(self) -> tuple[int, ...]:
        """For each reading, the last minute up to which every queue is done."""
        return tuple(
            min([main.floor, *(each.floor for (of, _), each in self.lagging.items() if of == reading)])
            for reading, main in enumerate(self.readings)
        )

    def progress(self, reading: int, queue: str = ALL) -> Progress:
        """Progress of a reading for one queue, or, for `ALL`, for all queues that do not lag."""
        return self.lagging.get((reading, queue), self.readings[reading])

    def lags(self, reading: int, queue: str) -> bool:
        """Whether a queue lags in a reading, and so has its own progress."""
        return (reading, queue) in self.lagging

    def queues(self, reading: int) -> list[str]:
        """The queues with their own progress in a reading: `ALL` first, then each lagging queue."""
        return [ALL, *sorted(queue for of, queue in self.lagging if of == reading)]

    def split(self, reading: int, queue: str) -> Cursors:
        """A copy with separate progress for a queue, which starts at the progress of the other queues."""
        return replace(self, lagging={(reading, queue): self.readings[reading], **self.lagging})

    def moved(self, reading: int, queue: str, progress: Progress) -> Cursors:
        """A copy with new progress for one queue or for `ALL`; a queue that has caught up stops lagging."""
        if queue == ALL:
            readings = (*self.readings[:reading], progress, *self.readings[reading + 1 :])
            return replace(self, readings=readings)
        lagging = {key: each for key, each in self.lagging.items() if key != (reading, queue)}
        if not progress.covers(self.readings[reading]):
            lagging[reading, queue] = progress
        return replace(self, lagging=lagging)

    def joined(self, other: Cursors) -> Cursors:
        """Combines the progress of two readers; all other fields come from `other`."""
        readings = tuple(mine.joined(theirs) for mine, theirs in zip(self.readings, other.readings, strict=True))
        lagging = {}
        for reading, queue in self.lagging.keys() | other.lagging.keys():
            progress = self.progress(reading, queue).joined(other.progress(reading, queue))
            if not progress.covers(readings[reading]):
                lagging[reading, queue] = progress
        return replace(other, readings=readings, lagging=lagging)

    def limited(self, minutes: Sequence[int]) -> Cursors:
        """A copy in which no reader's progress goes past the minute given for that reader."""
        return replace(
            self,
            readings=tuple(each.limited(upto) for each, upto in zip(self.readings, minutes, strict=True)),
            lagging={(of, queue): each.limited(minutes[of]) for (of, queue), each in self.lagging.items()},
        )


def first_cursors(since: Millis) -> Cursors:
    """Cursors of a group that has not been read yet.

    Dispatch starts at the minute of `since`; each recovery scan starts earlier, by the scan's delay.
    """
    return Cursors.at(minute_of(since - delay) - 1 for delay in (0, *RECOVERY_SCAN_DELAYS))


def horizons(now: Millis, look_ahead: Millis) -> Sequence[int]:
    """The last minute that each reading may read now: a future minute for dispatch, and a past minute for each scan."""
    return (minute_of(now + look_ahead), *(minute_of(now - delay) - 1 for delay in RECOVERY_SCAN_DELAYS))


def furthest(now: Millis, look_ahead: Millis) -> Sequence[int]:
    """The last minute that each reading can have read so far, by any process's clock.

    A cursor beyond this minute was moved by a process with a wrong clock, so tasks that were placed between this minute
    and the cursor still need to be read.
    """
    return horizons(now + DIRECT_SLACK, look_ahead)


GROUP_SIZE = 16
"""Shards in a group."""
GROUP = "group"
"""Name of the event field that asks the trigger to read one group of shards."""


def groups_of(shards: int) -> range:
    """Numbers of the groups for the given number of shards."""
    return range(-(-shards // GROUP_SIZE))


def shards_in(group: int, shards: int) -> range:
    """Numbers of the shards in a group."""
    return range(group * GROUP_SIZE, min((group + 1) * GROUP_SIZE, shards))


@frozen
class Growth:
    """A number of shards and the time from which it applies."""

    shards: int
    at: Millis


@frozen
class ShardHistory:
    """History of the number of shards. Processes that create ids announce their number here before the first id.

    The trigger therefore reads every shard that may contain a task, regardless of the order in which functions are
    deployed, and even after the number is lowered.

    Attributes:
        steps: the announced numbers, in order of time; each number is larger than the previous number.
        has_type_defaults: whether any owner has ever set defaults for a type. This flag is stored here because every
            task creation reads this item anyway, and needs no additional read if no defaults exist.
    """

    steps: tuple[Growth, ...] = ()
    has_type_defaults: bool = False

    @property
    def number(self) -> int:
        """The largest number of shards that was ever announced."""
        return self.steps[-1].shards if self.steps else 0

    def grown(self, shards: int, now: Millis) -> ShardHistory:
        """A copy to which a number of shards is added; unchanged if an earlier number is at least as large."""
        return self if shards <= self.number else replace(self, steps=(*self.steps, Growth(shards, now)))

    def since(self, group: int) -> Millis:
        """The time since which a group of shards may contain tasks; the group's shards must have been announced."""
        return next(step.at for step in self.steps if step.shards > group * GROUP_SIZE)

    def at(self, instant: Millis) -> int:
        """The number of shards for ids that are created at an instant; this number never changes.

        A new number takes effect some time after its announcement, when every process has read it.
        """
        settled = [step.shards for step in self.steps if step.at + SHARDS_SETTLE <= instant]
        return settled[-1] if settled else self.steps[0].shards


@frozen
class QueueDepth:
    """Approximate number of messages in a queue.

    Attributes:
        waiting: messages that can be received now.
        delayed: messages that can be received later, because their tasks are not due yet or will be retried.
        in_flight: messages that were received, but neither deleted nor returned to the queue.
    """

    waiting: int
    delayed: int
    in_flight: int


@frozen
class WorkQueue:
    """A queue of tasks.

    Attributes:
        priority: priority of its tasks.
        pulled_type: the type of its tasks if pull workers lease them; `None` for the queue of a priority.
    """

    priority: Priority
    depth: QueueDepth
    pulled_type: str | None = None


@frozen
class ShardGroup:
    """A group of shards and the invocation of the trigger that reads it.

    Attributes:
        group: number of the group.
        first_shard: the first of its shards.
        last_shard: the last of its shards.
        read_by: id of the invocation that reads the group, or that read it last; `None` before the first read.
        epoch: how often another invocation has taken the group over; only the newest invocation advances the group's
            cursors.
        dispatched_until: all of its tasks that are due before this time have been put on queues; `None` before the
            first run.
    """

    group: int
    first_shard: int
    last_shard: int
    read_by: str | None
    epoch: int
    dispatched_until: Millis | None


@frozen
class DispatchStatus:
    """Dispatch status.

    Attributes:
        last_tick_at: the last minute in which the trigger read everything that was due; `None` if there is no such
            minute yet.
        dispatched_until: all tasks that are due before this time have been put on queues; `None` before the first run.
        queues: the work queues.
        groups: the groups of shards.
    """

    last_tick_at: Millis | None
    dispatched_until: Millis | None
    queues: Sequence[WorkQueue]
    groups: Sequence[ShardGroup] = ()


def dispatch_status(
    groups: Sequence[Cursors | None], shards: int, look_ahead: Millis, queues: Sequence[WorkQueue]
) -> DispatchStatus:
    """The status of all groups of shards, determined by the group that is furthest behind.

    Args:
        groups: the cursors of each group; `None` for a group that was never read.
        shards: number of shards.
        look_ahead: how far ahead of the current time minutes are read, in milliseconds.
        queues: the work queues.
    """
    shown = [_shard_group(number, shards_in(number, shards), cursors) for number, cursors in enumerate(groups)]
    read = [cursors.floors[DISPATCH] for cursors in groups if cursors is not None]
    if not read or len(read) < len(groups):
        return DispatchStatus(None, None, queues, shown)
    minute = min(read)
    return DispatchStatus(start_of(minute) - look_ahead, start_of(minute + 1), queues, shown)


def _shard_group(number: int, shards: range, cursors: Cursors | None) -> ShardGroup:
    if cursors is None:
        return ShardGroup(number, shards[0], shards[-1], None, 0, None)
    until = start_of(cursors.floors[DISPATCH] + 1)
    return ShardGroup(number, shards[0], shards[-1], cursors.holder or None, cursors.epoch, until)
