"""Reads the minutes of a group of shards, slice by slice, alternating between several minutes.

Progress within a minute counts at once, so a minute may take any number of ticks. If a queue cannot be served, only
that queue falls behind. The queue continues later from the same place, while all other queues continue now.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from duetime.domain.dispatch.cursors import ALL, DISPATCH
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import LARGE_MINUTE, LONGEST_PASSING, LONGEST_ROUND, OPEN_MINUTES, SLICE
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from duetime.domain.dispatch.cursors import Cursors, Progress
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor, Runtime
    from duetime.ports.tasks import MinuteItem, MinutePage, TaskStore


@frozen
class Served:
    """The result of serving some items.

    Attributes:
        sent: how many messages each queue acknowledged.
        refused: queues that could not be served; their items must be read again.
    """

    sent: Mapping[str, int]
    refused: frozenset[str]


class MinuteScan(Protocol):
    """One kind of reading, which determines how the items that are read are served."""

    def serve(self, minute: int, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> Served:
        """Serve the items of the wanted queues.

        Raises:
            Unavailable: nothing counts as served; the items must be read again.
        """
        ...


@dataclass(slots=True)
class GroupReader:
    """Reads the minutes of one group in one invocation.

    Attributes:
        cursors: the progress, which includes only completed work.
        horizons: last minute that each kind of reading may read.
        readings: the kinds of reading, in order.
        before: cursors at the start of the invocation.
        failures: why minutes could not be read or served, in order.
    """

    tasks: TaskStore
    runtime: Runtime
    group: int
    shards: Sequence[int]
    cursors: Cursors
    horizons: Sequence[int]
    readings: Sequence[MinuteScan]
    before: Cursors = field(init=False)
    failures: list[str] = field(default_factory=list)
    _pages: dict[tuple[int, str, int], MinutePages] = field(default_factory=dict)
    _blocked: set[tuple[int, str] | tuple[int, str, int]] = field(default_factory=set)
    _sent: Counter[tuple[int, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Keep the cursors as they are at the start."""
        self.before = self.cursors

    def steps(self, until: Millis) -> Iterator[None]:
        """Read a slice of each readable minute, round after round; each step is one slice.

        A round that has begun is completed, so that a minute with slow slices does not hold up the other minutes.
        """
        while self.runtime.now() < until and (steps := list(self._round())):
            for reading, queue, minute in steps:
                if self.runtime.now() >= until + LONGEST_ROUND:
                    return
                is_done = self.cursors.progress(reading, queue).is_done(minute)
                if not is_done and not self._is_blocked(reading, queue, minute):
                    self._step(reading, queue, minute)
                    yield

    def _round(self) -> Iterator[tuple[int, str, int]]:
        """The next reads: a few minutes of the first reading, and one minute of each scan.

        Invocations alternately begin with the latest and the earliest minute, so that even a slow minute cannot use up
        all the time.
        """
        latest_first = bool(self.before.epoch % 2)
        for reading in range(len(self.readings)):
            most = OPEN_MINUTES if reading == DISPATCH else 1
            for queue in self.cursors.queues(reading):
                for minute in sorted(islice(self._minutes(reading, queue), most), reverse=latest_first):
                    yield reading, queue, minute

    def _minutes(self, reading: int, queue: str) -> Iterator[int]:
        """The minutes that a reading may read for a queue, in order."""
        progress = self.cursors.progress(reading, queue)
        dispatched = self.before.progress(DISPATCH, queue)
        last = self.horizons[reading] if reading == DISPATCH else min(self.horizons[reading], dispatched.upto)
        for minute in (*sorted(progress.open), *range(progress.upto + 1, last + 1)):
            # A scan looks for tasks that the first reading left behind, so it must not overtake that reading.
            is_ready = reading == DISPATCH or dispatched.is_done(minute)
            if minute <= last and is_ready and not self._is_blocked(reading, queue, minute):
                yield minute

    def _step(self, reading: int, queue: str, minute: int) -> None:
        """Continue a minute until something was sent; slices without anything to send are passed over quickly."""
        began = self.runtime.now()
        while not self._serve_slice(reading, queue, minute):
            is_over = self.cursors.progress(reading, queue).is_done(minute)
            if is_over or self._is_blocked(reading, queue, minute) or self.runtime.now() >= began + LONGEST_PASSING:
                return

    def _serve_slice(self, reading: int, queue: str, minute: int) -> bool:
        """Read and serve a slice of a minute, and move past the served items; returns whether anything was sent."""
        key = (reading, queue, minute)
        progress = self.cursors.progress(reading, queue).begun(minute, self.shards)
        pages = self._pages_of(key, progress)
        piece = pages.next(SLICE)
        if pages.error is not None:
            self._note("a minute could not be read", minute, pages.error)
            pages.error = None
        if pages.failed:
            self._block(key)
        early: set[str] = set()
        try:
            served = self.readings[reading].serve(minute, piece.items, partial(self._wants, key, early))
        except Unavailable as error:
            self._note("a minute could not be served", minute, error)
            self._block(key)
            return False
        for refused in served.refused | early:
            self._fall_behind(reading, refused)
        if queue not in served.refused:
            self.cursors = self.cursors.moved(reading, queue, progress.moved(minute, piece.positions))
            self._weigh(reading, queue, minute, served)
        if self.cursors.progress(reading, queue).is_done(minute):
            self._pages.pop(key, None)
        return bool(served.sent)

    def _pages_of(self, key: tuple[int, str, int], progress: Progress) -> MinutePages:
        """The pages of a minute, beginning at the stored positions."""
        reading, _queue, minute = key
        if key not in self._pages:
            read = partial(self._read_page, minute, is_first=reading == DISPATCH)
            self._pages[key] = MinutePages(read, progress.open[minute], self.runtime.executor)
        return self._pages[key]

    def _wants(self, key: tuple[int, str, int], early: set[str], of: str) -> bool:
        """Whether a reading serves items of the queue `of` for the key's queue, or for all queues together.

        A scan does not serve a queue in a minute that the first reading has not finished for that queue.
        """
        reading, queue, minute = key
        if queue != of and (queue != ALL or self.cursors.lags(reading, of)):
            return False
        if reading != DISPATCH and not self.before.progress(DISPATCH, of).is_done(minute):
            early.add(of)
            return False
        return True

    def _fall_behind(self, reading: int, queue: str) -> None:
        """Leave a queue behind until another invocation continues it."""
        if not self.cursors.lags(reading, queue):
            self.cursors = self.cursors.split(reading, queue)
        self._blocked.add((reading, queue))
        # Items that were read but not served are read again.
        self._pages = {key: pages for key, pages in self._pages.items() if key[:2] != (reading, queue)}

    def _weigh(self, reading: int, queue: str, minute: int, served: Served) -> None:
        """Give a queue its own progress if it has so many items in one minute that other queues would have to wait."""
        if reading != DISPATCH or queue != ALL or not served.sent or self.cursors.progress(DISPATCH).is_done(minute):
            return
        most = max(sorted(served.sent), key=served.sent.__getitem__)
        self._sent[minute, most] += served.sent[most]
        was_open = minute in self.before.progress(DISPATCH).open
        if (was_open or self._sent[minute, most] > LARGE_MINUTE) and not self.cursors.lags(DISPATCH, most):
            self.cursors = self.cursors.split(DISPATCH, most)

    def _is_blocked(self, reading: int, queue: str, minute: int) -> bool:
        # A queue that has caught up is again read together with all other queues.
        has_caught_up = queue != ALL and not self.cursors.lags(reading, queue)
        return has_caught_up or (reading, queue) in self._blocked or (reading, queue, minute) in self._blocked

    def _block(self, key: tuple[int, str, int]) -> None:
        self._blocked.add(key)
        self._pages.pop(key, None)

    def _read_page(self, minute: int, shard: int, after: str, *, is_first: bool) -> MinutePage:
        return self.tasks.read_page(minute, shard, after, consistent=is_first)

    def _note(self, text: str, minute: int, error: Unavailable) -> None:
        self.failures.append(f"{text}: {error}")
        self.runtime.telemetry.note(text, group=self.group, minute=minute, error=str(error))


@frozen
class Slice:
    """Some items of a minute.

    Attributes:
        items: items from all shards.
        positions: sort key of the last included item of each shard; `None` if the shard has no more items.
    """

    items: list[MinuteItem]
    positions: dict[int, str | None]


@dataclass(slots=True)
class _Shard:
    """Items read from one shard but not returned yet.

    Attributes:
        after: the sort key after which the next page begins.
        more: whether there may be a next page.
        failed: whether the shard could not be read.
    """

    after: str
    items: deque[tuple[str, MinuteItem]] = field(default_factory=deque)
    more: bool = True
    failed: bool = False


class MinutePages:
    """Returns a minute's items in slices, evenly from all shards, and buffers at most one page per shard.

    Args:
        read: reads a shard's page after a sort key.
        positions: start position in each shard that is not finished.
        executor: reads shards in parallel.
    """

    def __init__(
        self, read: Callable[[int, str], MinutePage], positions: Mapping[int, str], executor: Executor
    ) -> None:
        self._read = read
        self._executor = executor
        self._shards = {shard: _Shard(after) for shard, after in positions.items()}
        self.error: Unavailable | None = None

    @property
    def failed(self) -> bool:
        """Whether some shards could not be read, and the items of all other shards have been returned."""
        return all(shard.failed for shard in self._shards.values())

    def next(self, most: int) -> Slice:
        """The next items, up to the given number."""
        self._fill()
        live = {number: shard for number, shard in self._shards.items() if not shard.failed}
        share = max(1, most // max(1, len(live)))
        items: list[MinuteItem] = []
        positions: dict[int, str | None] = {}
        for number, shard in live.items():
            taken = [shard.items.popleft() for _ in range(min(share, len(shard.items)))]
            items += [item for _key, item in taken]
            if not shard.items and not shard.more:
                positions[number] = None
                del self._shards[number]
            elif taken or not shard.items:
                positions[number] = taken[-1][0] if taken else shard.after
        return Slice(items, positions)

    def _fill(self) -> None:
        """Read a page from each shard whose buffer is empty."""
        empty = [
            number for number, shard in self._shards.items() if shard.more and not shard.items and not shard.failed
        ]
        for number, page in zip(empty, self._executor.map(self._page, empty), strict=True):
            shard = self._shards[number]
            if page is None:
                shard.failed = True
                continue
            shard.items.extend(page.items)
            shard.more = page.last is not None
            shard.after = page.last or shard.after

    def _page(self, number: int) -> MinutePage | None:
        try:
            return self._read(number, self._shards[number].after)
        except Unavailable as error:
            self.error = error
            return None
