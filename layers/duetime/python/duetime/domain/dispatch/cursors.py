"""How far the minutes of a group of shards have been read: by each kind of reading, and for each queue that lags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import DIRECT_SLACK, RECOVERY_SCAN_DELAYS, SHARDS_SETTLE
from duetime.domain.times import Millis, minute_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


DISPATCH = 0
"""Index of the first reading; the recovery scans follow it, as in `RECOVERY_SCAN_DELAYS`."""
FIRST_SCAN = 1
"""Index of the first recovery scan."""
LAST_SCAN = len(RECOVERY_SCAN_DELAYS)
"""Index of the last recovery scan."""
ALL = ""
"""Stands for every queue that does not lag."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one reading has come. Progress of two readers can be joined: what either has done is done.

    Attributes:
        upto: every minute up to this one is done, but for those that are open.
        open: for each minute that is not done, its unfinished shards, with the sort key of the last item that is
            done there; the empty text before the first one.
    """

    upto: int
    open: Mapping[int, Mapping[int, str]] = field(default_factory=dict)

    @property
    def floor(self) -> int:
        """The last minute before which nothing is open."""
        return min(self.open, default=self.upto + 1) - 1

    def is_done(self, minute: int) -> bool:
        """Whether a minute is wholly done."""
        return minute <= self.upto and minute not in self.open

    def begun(self, minute: int, shards: Iterable[int]) -> Progress:
        """With all minutes up to this one open, unless they are done."""
        if minute <= self.upto:
            return self
        unread = dict.fromkeys(shards, "")
        return Progress(minute, {**self.open, **dict.fromkeys(range(self.upto + 1, minute + 1), unread)})

    def moved(self, minute: int, positions: Mapping[int, str | None]) -> Progress:
        """With what was done of an open minute: the last sort key of each shard, `None` for the end. Never back."""
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
        """What this reader or another one has done."""
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
        """The unfinished shards of a minute; none if it is done, `None` if it was not begun."""
        return None if minute > self.upto else self.open.get(minute, {})

    def covers(self, other: Progress) -> bool:
        """Whether all that another reader has done is done here too."""
        return self.joined(other) == self

    def limited(self, upto: int) -> Progress:
        """With what lies after a minute forgotten, so that it is read again."""
        if self.upto <= upto:
            return self
        return Progress(upto, {minute: shards for minute, shards in self.open.items() if minute <= upto})


@dataclass(frozen=True, slots=True)
class Cursors:
    """How far a group of shards has been read.

    A queue that cannot be served, or has more to send than the others should wait for, lags: it has a progress of its
    own until it has caught up. So no queue holds up another one.

    Attributes:
        readings: the first reading's progress, then each recovery scan's.
        lagging: the progress of each queue that lags, by the index of the reading.
        epoch: grows each time somebody takes the group, or saves beside its holder; only the newest epoch advances.
        holder: who reads the group.
    """

    readings: tuple[Progress, ...]
    lagging: Mapping[tuple[int, str], Progress] = field(default_factory=dict)
    epoch: int = 0
    holder: str = ""

    @classmethod
    def at(cls, minutes: Iterable[int], epoch: int = 0) -> Cursors:
        """Cursors whose readings have done everything up to these minutes, and nothing after them."""
        return cls(tuple(Progress(minute) for minute in minutes), epoch=epoch)

    @property
    def floors(self) -> tuple[int, ...]:
        """By reading, the last minute before which nothing is left to do for any queue."""
        return tuple(
            min([main.floor, *(each.floor for (of, _), each in self.lagging.items() if of == reading)])
            for reading, main in enumerate(self.readings)
        )

    def progress(self, reading: int, queue: str = ALL) -> Progress:
        """How far a reading has come for one queue, or for all that do not lag."""
        return self.lagging.get((reading, queue), self.readings[reading])

    def lags(self, reading: int, queue: str) -> bool:
        """Whether a queue has a progress of its own."""
        return (reading, queue) in self.lagging

    def queues(self, reading: int) -> list[str]:
        """Whose progress a reading has: that of all queues together first, then each that lags."""
        return [ALL, *sorted(queue for of, queue in self.lagging if of == reading)]

    def split(self, reading: int, queue: str) -> Cursors:
        """With a progress of its own for a queue, which begins where all the others are."""
        return replace(self, lagging={(reading, queue): self.readings[reading], **self.lagging})

    def moved(self, reading: int, queue: str, progress: Progress) -> Cursors:
        """With the progress of a queue, or of all that do not lag; one that has caught up lags no more."""
        if queue == ALL:
            readings = (*self.readings[:reading], progress, *self.readings[reading + 1 :])
            return replace(self, readings=readings)
        lagging = {key: each for key, each in self.lagging.items() if key != (reading, queue)}
        if not progress.covers(self.readings[reading]):
            lagging[reading, queue] = progress
        return replace(self, lagging=lagging)

    def joined(self, other: Cursors) -> Cursors:
        """What this reader or another one has done; the rest is the other's."""
        readings = tuple(mine.joined(theirs) for mine, theirs in zip(self.readings, other.readings, strict=True))
        lagging = {}
        for reading, queue in self.lagging.keys() | other.lagging.keys():
            progress = self.progress(reading, queue).joined(other.progress(reading, queue))
            if not progress.covers(readings[reading]):
                lagging[reading, queue] = progress
        return replace(other, readings=readings, lagging=lagging)

    def limited(self, minutes: Sequence[int]) -> Cursors:
        """With what lies after these minutes forgotten, by reading."""
        return replace(
            self,
            readings=tuple(each.limited(upto) for each, upto in zip(self.readings, minutes, strict=True)),
            lagging={(of, queue): each.limited(minutes[of]) for (of, queue), each in self.lagging.items()},
        )


def first_cursors(since: Millis) -> Cursors:
    """Cursors of a group that nobody has read yet: they begin with the minute of an instant, each scan before that."""
    return Cursors.at(minute_of(since - delay) - 1 for delay in (0, *RECOVERY_SCAN_DELAYS))


def horizons(now: Millis, look_ahead: Millis) -> Sequence[int]:
    """The last minute that each reading may read now: ahead for the first, past its delay for a recovery scan."""
    return (minute_of(now + look_ahead), *(minute_of(now - delay) - 1 for delay in RECOVERY_SCAN_DELAYS))


def furthest(now: Millis, look_ahead: Millis) -> Sequence[int]:
    """The last minute that each reading can have read by now, by whoever's clock.

    A cursor beyond it was moved by a clock that was wrong: whoever places a task in between relies on the reading that
    is still to come.
    """
    return horizons(now + DIRECT_SLACK, look_ahead)


GROUP_SIZE = 16
"""Shards in a group."""
GROUP = "group"
"""Name of the field of an event that asks the trigger for one group of shards."""


def groups_of(shards: int) -> range:
    """Numbers of the groups that so many shards make."""
    return range(-(-shards // GROUP_SIZE))


def shards_in(group: int, shards: int) -> range:
    """Numbers of the shards in a group."""
    return range(group * GROUP_SIZE, min((group + 1) * GROUP_SIZE, shards))


@dataclass(frozen=True, slots=True)
class Growth:
    """From an instant on there may be tasks in so many shards."""

    shards: int
    at: Millis


@dataclass(frozen=True, slots=True)
class ShardHistory:
    """How the number of shards has grown: whoever makes ids announces his number here, before the first id.

    So the trigger reads every shard that may hold a task, whatever the order in which functions are deployed, and
    whether or not the number is lowered again.

    Attributes:
        steps: in order; each is larger than the one before.
    """

    steps: tuple[Growth, ...] = ()

    @property
    def number(self) -> int:
        """The most shards that were ever announced."""
        return self.steps[-1].shards if self.steps else 0

    def grown(self, shards: int, now: Millis) -> ShardHistory:
        """With so many shards, if there were not as many before."""
        return self if shards <= self.number else ShardHistory((*self.steps, Growth(shards, now)))

    def since(self, group: int) -> Millis:
        """Since when there may be tasks in a group of shards, which must have been announced."""
        return next(step.at for step in self.steps if step.shards > group * GROUP_SIZE)

    def at(self, instant: Millis) -> int:
        """How many shards a thing of that instant is spread over: the same number, whenever it is requested.

        A new number counts a while after it was announced, when everybody knows of it.
        """
        settled = [step.shards for step in self.steps if step.at + SHARDS_SETTLE <= instant]
        return settled[-1] if settled else self.steps[0].shards
