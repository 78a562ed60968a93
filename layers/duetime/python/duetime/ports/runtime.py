"""Time, randomness, concurrency and the process: injected, so that a test or a simulation can control them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class SpanKind(Enum):
    """What a span is to others: it makes work, does work of others, calls somebody and waits, or none of these."""

    INTERNAL = "internal"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Span:
    """Something that takes time.

    Attributes:
        attributes: by the semantic conventions of OpenTelemetry.
        links: contexts (`traceparent`) of what caused it, perhaps long ago.
        parent: the context that it is a part of; `None` for the span that is open in this thread, if any.
        begins_trace: it is a part of nothing, and begins a trace of its own, whatever is open in this thread.
    """

    name: str
    kind: SpanKind
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    links: Sequence[str | None] = ()
    parent: str | None = None
    begins_trace: bool = False


class OpenSpan(Protocol):
    """A span that has not ended."""

    @property
    def context(self) -> str | None:
        """Its own `traceparent`; `None` if it is not exported."""
        ...

    def end_with(self, attributes: Mapping[str, str | int], error: str = "") -> None:
        """Add what is known at its end; with a type of error, it has failed."""
        ...


class Tracer(Protocol):
    """Makes spans. Never waits for whoever they are exported to, but in `flush`."""

    def span(self, span: Span) -> AbstractContextManager[OpenSpan]:
        """A span around a block."""
        ...

    def current(self) -> str | None:
        """The `traceparent` of the span that is open in this thread; `None` if there is none, or nobody exports it."""
        ...

    def flush(self) -> None:
        """Export what has ended, for a bounded time. Never raises."""
        ...


class Untraced:
    """The tracer of a deployment that exports no spans, and each of its spans."""

    context: str | None = None

    def span(self, span: Span) -> AbstractContextManager[OpenSpan]:  # noqa: ARG002 - nobody looks at it
        """Trace nothing."""
        return nullcontext(self)

    def current(self) -> str | None:
        """No span is open."""
        return None

    def flush(self) -> None:
        """Export nothing."""

    def end_with(self, attributes: Mapping[str, str | int], error: str = "") -> None:
        """Keep nothing."""


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
