"""Ports for the clock, randomness, concurrency and the process, which tests and simulations can replace."""

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
        links: contexts (`traceparent`) of the span's causes, which may have ended long ago.
        parent: context of the span's parent; `None` means the open span of this thread, if there is one.
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
        """Add attributes that are known when the span ends; an error type marks the span as failed."""
        ...


class Tracer(Protocol):
    """Creates spans. Only `flush` waits for the export of spans."""

    def span(self, span: Span) -> AbstractContextManager[OpenSpan]:
        """A span that lasts for a `with` block."""
        ...

    def current(self) -> str | None:
        """The `traceparent` of this thread's open span; `None` if no span is open or the span is not exported."""
        ...

    def flush(self) -> None:
        """Export spans that have ended, for a limited time. This method never raises."""
        ...


class Untraced:
    """The tracer of a deployment that exports no spans; the tracer itself is used as each span."""

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
        """Wait until this clock shows at least `at`."""
        ...


class RandomSource(Protocol):
    """Randomness."""

    def bits(self, count: int) -> int:
        """A random integer with the given number of bits."""
        ...

    def below(self, bound: int) -> int:
        """A random integer that is at least 0 and less than `bound`."""
        ...

    def fraction(self) -> float:
        """A random number that is at least 0 and less than 1."""
        ...

    def nonce(self) -> str:
        """A short text that is unique for all practical purposes."""
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
        """Wait until all jobs have ended, another job ends, or the given time is reached, whichever comes first."""
        ...

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` for each item, with several calls in parallel, and return the results in order.

        Errors of `work` are raised.
        """
        ...


class Process(Protocol):
    """The process in which the function runs."""

    def end(self) -> None:
        """End the process at once, which is the only way to stop a thread."""
        ...


SHARED_COUNTS = frozenset({
    "attempts_lost", "calendars_ending", "expansions_failed", "expectations_missed", "occurrences_missed",
    "tasks_failed", "worker_errors",
})  # fmt: skip
"""Counts that several functions add to one metric, because an alarm watches the deployment's total."""
SHARED_SERVICE = "duetime"
"""The value of the dimension `service` of shared metrics; for other metrics, the dimension names the function."""


class Telemetry(Protocol):
    """Counts, measures and logs; counts and measurements are written once per invocation."""

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Add to a count and, if a dimension is given, also to the count for the dimension's value."""
        ...

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Record one duration and, if a dimension is given, also record it for the dimension's value."""
        ...

    def note(self, text: str, **facts: object) -> None:
        """Log an event that people should notice."""
        ...

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        """Attribute the lines that are logged or printed in this block to a claimed task's attempt."""
        ...


@frozen
class Runtime:
    """The environment of every use case.

    Attributes:
        clock: the clock.
        random_source: source of randomness.
        executor: runs calls concurrently.
        telemetry: counts, measures and logs.
        tracer: creates spans.
        epochs: function that returns the epoch for the fences of new and reopened tasks; the epoch rises when the table
            is restored, and when another Region takes over.
    """

    clock: Clock
    random_source: RandomSource
    executor: Executor
    telemetry: Telemetry
    tracer: Tracer = UNTRACED
    epochs: Callable[[], int] = lambda: 0

    @property
    def epoch(self) -> int:
        """The epoch to use for new fences."""
        return self.epochs()

    def now(self) -> Millis:
        """The time according to this runtime's clock."""
        return self.clock.now()

    def nonce(self) -> str:
        """A short text that is unique for all practical purposes."""
        return self.random_source.nonce()


class Heartbeat(Protocol):
    """A heartbeat for an external monitor."""

    def send(self, beat_id: str) -> None:
        """Send a heartbeat, without waiting for a response. This method never raises."""
        ...


class FanOut(Protocol):
    """Starts additional invocations of the trigger."""

    def read_groups(self, groups: Sequence[int]) -> None:
        """For each of these groups of shards, start a separate invocation that reads the group."""
        ...
