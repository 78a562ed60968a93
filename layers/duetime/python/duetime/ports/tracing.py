"""Spans of what the functions do, for deployments that export them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager


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
