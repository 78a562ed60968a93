"""Time, randomness, concurrency and the process: injected, so that a test or a simulation can control them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from duetime.ports.tracing import Untraced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.tracing import Tracer

UNTRACED = Untraced()
T = TypeVar("T")
R = TypeVar("R")


class Clock(Protocol):
    """The time."""

    def now(self) -> Millis:
        """The time, rounded down to the millisecond."""
        ...

    def sleep_until(self, at: Millis) -> None:
        """Return no earlier than `at` by this clock."""
        ...


class RandomSource(Protocol):
    """Randomness."""

    def bits(self, count: int) -> int:
        """A number of so many random bits."""
        ...

    def below(self, bound: int) -> int:
        """A whole number from 0, less than `bound`."""
        ...

    def fraction(self) -> float:
        """A number from 0, less than 1."""
        ...

    def nonce(self) -> str:
        """A short text that will not be drawn again."""
        ...


class Job(Protocol):
    """Something that runs concurrently."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...


class Executor(Protocol):
    """Runs things concurrently."""

    def start(self, work: Callable[[], None]) -> Job:
        """Begin something. It must not raise: there is nobody to catch it."""
        ...

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Return when all jobs have ended, one more of them has ended, or the time has come."""
        ...

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do the same for each item, several at once; results in the items' order. Raises what `work` raises."""
        ...


class Process(Protocol):
    """The process that everything runs in."""

    def end(self) -> None:
        """End it at once: a thread cannot be stopped otherwise."""
        ...


class Telemetry(Protocol):
    """Counts and measures, written out once per invocation."""

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Add to a count, and to that of one value of its dimension if that is named."""
        ...

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Note one length of time, also for one value of its dimension if that is named."""
        ...

    def note(self, text: str, **facts: object) -> None:
        """Log something worth a person's attention."""
        ...

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        """Attribute what is logged and printed in this block to an attempt at this task, as it was claimed."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """What every use case runs on.

    Attributes:
        clock: the time.
        random_source: randomness.
        executor: runs things concurrently.
        telemetry: counts, measures and logs.
        tracer: makes spans.
    """

    clock: Clock
    random_source: RandomSource
    executor: Executor
    telemetry: Telemetry
    tracer: Tracer = UNTRACED

    def now(self) -> Millis:
        """The time by this runtime's clock."""
        return self.clock.now()

    def nonce(self) -> str:
        """A short text that will not be drawn again."""
        return self.random_source.nonce()


class Heartbeat(Protocol):
    """A sign of life for a monitor outside."""

    def send(self, beat_id: str) -> None:
        """Send one, without waiting for an answer. Never raises."""
        ...


class FanOut(Protocol):
    """Further invocations of the trigger."""

    def read_groups(self, groups: Sequence[int]) -> None:
        """Have each of these groups of shards read by an invocation of its own."""
        ...
