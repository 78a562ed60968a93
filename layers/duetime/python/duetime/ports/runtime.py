"""Clock, randomness, concurrency and process, injected so that tests and simulations can control them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class SpanKind(Enum):
    """OpenTelemetry's span kind: producer, consumer, client, or internal."""

    INTERNAL = "internal"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    CLIENT = "client"


@frozen
class Span:
    """A timed section of a trace.

    Attributes:
        attributes: attributes named by OpenTelemetry's semantic conventions.
        links: contexts (`traceparent`) of the span's causes, which may be long past.
        parent: context of the span's parent; `None` for the open span of this thread, if any.
        begins_trace: whether the span begins a new trace, even if a span is open in this thread.
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
        """The span's `traceparent`; `None` if the span is not exported."""
        ...

    def end_with(self, attributes: Mapping[str, str | int], error: str = "") -> None:
        """Add attributes known at the span's end; an error type marks the span as failed."""
        ...


class Tracer(Protocol):
    """Creates spans. Only `flush` waits until spans are exported."""

    def span(self, span: Span) -> AbstractContextManager[OpenSpan]:
        """A span around a block."""
        ...

    def current(self) -> str | None:
        """The `traceparent` of this thread's open span; `None` if no span is open or the span is not exported."""
        ...

    def flush(self) -> None:
        """Export ended spans, for a limited time. This method never raises."""
        ...


class Untraced:
    """The tracer of a deployment that exports no spans, which also serves as each of its spans."""

    context: str | None = None

    def span(self, span: Span) -> AbstractContextManager[OpenSpan]:  # noqa: ARG002 - unused
        """Create no span."""
        return nullcontext(self)

    def current(self) -> str | None:
        """Always `None`, because no span is open."""
        return None

    def flush(self) -> None:
        """Export nothing."""

    def end_with(self, attributes: Mapping[str, str | int], error: str = "") -> None:
        """Do nothing."""


UNTRACED = Untraced()
T = TypeVar("T")
R = TypeVar("R")


class Clock(Protocol):
    """The current time."""

    def now(self) -> Millis:
        """The current time, rounded down to the millisecond."""
        ...

    def sleep_until(self, at: Millis) -> None:
        """Return no earlier than `at` by this clock."""
        ...


class RandomSource(Protocol):
    """Randomness."""

    def bits(self, count: int) -> int:
        """A whole number with the given number of random bits."""
        ...

    def below(self, bound: int) -> int:
        """A random whole number of at least 0 and less than `bound`."""
        ...

    def fraction(self) -> float:
        """A random number of at least 0 and less than 1."""
        ...

    def nonce(self) -> str:
        """A short text that is unique in practice."""
        ...


class Job(Protocol):
    """A call that runs concurrently."""

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        ...


class Executor(Protocol):
    """Runs calls concurrently."""

    def start(self, work: Callable[[], None]) -> Job:
        """Start a call. The call must not raise, because no caller could catch the error."""
        ...

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Return when all jobs have ended, when one more of them ends, or at the given time."""
        ...

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` for each item, several in parallel, and return the results in order.

        Errors of `work` are raised.
        """
        ...


class Process(Protocol):
    """The process of the function."""

    def end(self) -> None:
        """End the process at once, because a thread cannot be stopped otherwise."""
        ...


class Telemetry(Protocol):
    """Counts and measurements, written once per invocation."""

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Add to a count, and if a dimension is given, to the count for its value."""
        ...

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Record one duration, and if a dimension is given, also for its value."""
        ...

    def note(self, text: str, **facts: object) -> None:
        """Log an event that a person should notice."""
        ...

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        """Attribute lines logged and printed in this block to the attempt at this claimed task."""
        ...


@frozen
class Runtime:
    """The environment of every use case.

    Attributes:
        clock: the time.
        random_source: randomness.
        executor: runs calls concurrently.
        telemetry: counts, measures and logs.
        tracer: creates spans.
        epochs: returns the epoch for the fences of new and reopened tasks; the epoch rises when the table is restored,
            and when another Region takes over.
    """

    clock: Clock
    random_source: RandomSource
    executor: Executor
    telemetry: Telemetry
    tracer: Tracer = UNTRACED
    epochs: Callable[[], int] = lambda: 0

    @property
    def epoch(self) -> int:
        """The epoch for new fences."""
        return self.epochs()

    def now(self) -> Millis:
        """The time by this runtime's clock."""
        return self.clock.now()

    def nonce(self) -> str:
        """A short text that is unique in practice."""
        return self.random_source.nonce()


class Heartbeat(Protocol):
    """A heartbeat for an external monitor."""

    def send(self, beat_id: str) -> None:
        """Send a heartbeat, without waiting for a response. This method never raises."""
        ...


class FanOut(Protocol):
    """Additional invocations of the trigger."""

    def read_groups(self, groups: Sequence[int]) -> None:
        """Read each of these groups of shards in a separate invocation."""
        ...
