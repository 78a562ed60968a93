"""A clock and an executor whose threads are greenlets; time passes only when all greenlets wait."""

from __future__ import annotations

import heapq
import random
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import local
from typing import TYPE_CHECKING, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Job

T = TypeVar("T")
R = TypeVar("R")


@dataclass(eq=False)
class Strand:
    """A concurrent activity in virtual time, comparable to a thread.

    Attributes:
        waits: number of waits so far; a wake-up for an earlier wait is stale.
        parent: the strand that started this strand; both belong to one process and are killed together.
        children: the strands that this strand has started.
        home: the strand's machine, if the world has machines.
        on_behalf_of: the process that sent, and may have abandoned, the call that this strand makes.
        began: time when the strand was started.
        rank: order among events at the same time, lowest first; strands that this strand starts inherit the rank.
    """

    run: Callable[[], None]
    parent: Strand | None = None
    green: greenlet | None = None
    done: bool = False
    waits: int = 0
    waiters: list[Strand] = field(default_factory=list)
    children: list[Strand] = field(default_factory=list)
    home: object = None
    on_behalf_of: Strand | None = None
    began: Millis = 0
    rank: int = 0

    def end(self) -> None:
        """Mark the strand as ended, and free its greenlet at once.

        Leaving greenlets to garbage collection took a fifth of a test's time.
        """
        self.done = True
        self.run, self.green = _nothing, None
        strand: Strand = self
        # An ended strand remains its parent's child until all strands that it started have ended.
        while strand.done and not strand.children and (parent := strand.parent) is not None:
            if strand in parent.children:
                parent.children.remove(strand)
            strand = parent


def _nothing() -> None:
    pass


def family_of(strand: Strand) -> list[Strand]:
    """A strand and all its descendants, youngest first."""
    return [each for child in strand.children for each in family_of(child)] + [strand]


class _Running(local):
    """The virtual time that is running in each thread; a virtual time can run only in the thread that created it."""

    time: VirtualTime | None = None


_RUNNING = _Running()


def running_time() -> VirtualTime | None:
    """The virtual time in which the caller runs; `None` outside virtual time."""
    return _RUNNING.time


def _always() -> bool:
    return True


class VirtualTime:
    """The clock and executor for strands, which must wait only through this object."""

    def __init__(self, start: Millis) -> None:
        self._now = start
        self._hub = getcurrent()
        self._events: list[tuple[Millis, int, int, Strand, int]] = []
        self._order = count()
        self._current: Strand | None = None
        self._dying: list[Strand] = []
        self._frozen: dict[Strand, Millis] = {}
        self._alive: dict[Strand, None] = {}
        self._raised: BaseException | None = None
        self._goes_on: Callable[[], object] = _always
        self._end: Millis = start

    def now(self) -> Millis:
        """The current virtual time."""
        return self._now

    def sleep_until(self, at: Millis) -> None:
        """Wait until `at` while other strands continue."""
        if at > self._now:
            self._wait(at)

    def start(self, work: Callable[[], None]) -> Strand:
        """Start a job in the current process now."""
        return self._begin(Strand(work, parent=self._current))

    def start_process(self, work: Callable[[], None]) -> Strand:
        """Start a job in a new process now."""
        return self._begin(Strand(work))

    def _begin(self, strand: Strand) -> Strand:
        strand.began = self._now
        strand.rank = 0 if self._current is None else self._current.rank
        if strand.parent is not None:
            strand.parent.children.append(strand)
        self._alive[strand] = None
        strand.green = greenlet(lambda: self._live(strand), parent=self._hub)
        self._wake(strand, self._now)
        return strand

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Wait until one of the jobs ends or the time `until` is reached."""
        current = self._current
        assert current is not None
        for job in jobs:
            assert isinstance(job, Strand)
            job.waiters.append(current)
        self._wait(until)

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a function for each item in turn, and return the results; the calls are not concurrent."""
        return [work(item) for item in items]

    def nudge(self, strand: Strand) -> None:
        """End a strand's wait now; the strand must check why it was woken."""
        self._wake(strand, self._now)

    def current(self) -> Strand:
        """The running strand."""
        if self._current is None:
            # This happens in a killed process, whose later actions must have no effect.
            raise RuntimeError("nothing is currently running in virtual time")
        return self._current

    def process(self) -> Strand:
        """The root strand of the running process."""
        strand = self.current()
        while strand.parent is not None:
            strand = strand.parent
        return strand

    def author(self) -> Strand:
        """The process on whose behalf the running strand makes a call.

        That process may have abandoned the call long ago.
        """
        process = self.process()
        return process.on_behalf_of or process

    def kill(self, strand: Strand) -> None:
        """End a strand and all its descendants, as in a crash.

        If the calling strand is ended, this method does not return.
        """
        self._dying += family_of(strand)
        if self._current is None:
            self._bury()
        elif self.process() is strand:
            self._hub.switch()

    def raise_outside(self, error: BaseException) -> None:
        """Raise an exception in the code that lets virtual time pass, as soon as the running strand waits or ends."""
        self._raised = error

    def freeze(self, strand: Strand, until: Millis) -> None:
        """Freeze a process until `until`, as if its machine were suspended; the process then continues unchanged."""
        self._frozen[strand] = until

    def is_frozen(self, strand: Strand) -> bool:
        """Whether a process is frozen."""
        return self._frozen.get(strand, 0) > self._now

    def _frozen_until(self, strand: Strand) -> Millis:
        while strand.parent is not None:
            strand = strand.parent
        until = self._frozen.get(strand, 0)
        if until and until <= self._now:
            del self._frozen[strand]
        return until

    def _bury(self) -> None:
        dying, self._dying = self._dying, []
        for strand in dying:
            if strand.green is not None and not strand.done:
                strand.done = True
                strand.green.throw(GreenletExit)
                strand.end()

    def close(self) -> None:
        """End all waiting strands, because the garbage collector cannot see into greenlets and would leak them."""
        for strand in list(self._alive):
            self._dying.append(strand)
            with suppress(Exception):
                self._bury()
        self._events.clear()
        # When a thread ends, greenlet frees the thread's main greenlet even if it is still referenced. A later garbage
        # collection would then crash the interpreter.
        vars(self).pop("_hub", None)

    def run_until(self, end: Millis) -> None:
        """Run all events up to and including `end`."""
        self.run_while(_always, end)
        self._now = max(self._now, end)

    def next_event(self) -> Millis:
        """The time of the next event; the current time if there are no events."""
        return self._events[0][0] if self._events else self._now

    def run_while(self, goes_on: Callable[[], object], end: Millis) -> bool:
        """Run events while a condition is true, and return whether the condition became false before `end`."""
        before, _RUNNING.time = _RUNNING.time, self
        try:
            return self._run_events(goes_on, end)
        finally:
            _RUNNING.time = before

    def _run_events(self, goes_on: Callable[[], object], end: Millis) -> bool:
        self._goes_on, self._end = goes_on, end
        while goes_on():
            if not self._events or self._events[0][0] > end:
                return False
            at, _, _, strand, wait = heapq.heappop(self._events)
            if strand.done or wait != strand.waits:
                continue
            self._now = max(self._now, at)
            if self._frozen and (until := self._frozen_until(strand)) > self._now:
                heapq.heappush(self._events, (until, strand.rank, next(self._order), strand, wait))
                continue
            strand.waits += 1
            self._current = strand
            assert strand.green is not None
            strand.green.switch()
            self._current = None
            self._bury()
            if self._raised is not None:
                raised, self._raised = self._raised, None
                raise raised
        return True

    def _live(self, strand: Strand) -> None:
        try:
            strand.run()
        finally:
            strand.end()
            self._alive.pop(strand, None)
            for waiter in strand.waiters:
                self._wake(waiter, self._now)
            strand.waiters.clear()

    def _wait(self, at: Millis) -> None:
        strand = self._current
        assert strand is not None, "only what was started in virtual time can wait in it"
        if self._is_next(strand, at):
            # This has the same effect as the lines below, but does not switch to another greenlet.
            self._now = max(self._now, at)
            strand.waits += 1
            return
        self._wake(strand, at)
        self._hub.switch()

    def _is_next(self, strand: Strand, at: Millis) -> bool:
        """Whether a strand that waits until `at` would be the next to run, without any event before `at`."""
        if self._dying or self._frozen or self._raised is not None or at > self._end:
            return False
        if self._events and self._events[0][:2] <= (at, strand.rank):
            return False
        if self._goes_on is _always:
            return True
        self._current = None
        goes_on = self._goes_on()
        self._current = strand
        return bool(goes_on)

    def _wake(self, strand: Strand, at: Millis) -> None:
        heapq.heappush(self._events, (at, strand.rank, next(self._order), strand, strand.waits))


class SeededRandom:
    """A seeded random source, which makes a test run repeatable."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._nonces = count()

    def bits(self, number: int) -> int:
        """Return a random integer with the given number of bits."""
        return self._source.getrandbits(number)

    def below(self, bound: int) -> int:
        """Return a random integer in [0, bound)."""
        return self._source.randrange(bound)

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        return self._source.random()

    def nonce(self) -> str:
        """Return a string that is unique for this source."""
        return f"nonce-{next(self._nonces)}"
