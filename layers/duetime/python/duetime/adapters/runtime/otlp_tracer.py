"""Exports spans with OpenTelemetry's SDK by OTLP over HTTP. Only deployments that export spans import this module.

OpenTelemetry's SDK reads the endpoint, headers, sampler and other settings from its own variables (`OTEL_*`).
Source: OpenTelemetry semantic conventions 1.44, messaging and FaaS (in development).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from duetime.domain.operating_parameters import SPAN_EXPORT_TIME
from duetime.domain.times import SECOND
from duetime.ports.runtime import SpanKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.ports.runtime import Span

_SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
_KINDS = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
}


class OtlpTracer:
    """The `duetime.ports.runtime.Tracer` that uses OpenTelemetry's SDK.

    Args:
        service: the function's name in log lines and metrics.
    """

    def __init__(self, service: str) -> None:
        resource = Resource.create(
            {
                "service.name": service,
                "service.namespace": "duetime",
                "cloud.provider": "aws",
                "cloud.platform": "aws_lambda",
                "faas.name": os.environ.get("AWS_LAMBDA_FUNCTION_NAME", service),
            },
            _SCHEMA,
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        # The processor's own thread exports spans during invocations; `flush` exports the rest when an invocation ends.
        exporter = OTLPSpanExporter(timeout=SPAN_EXPORT_TIME / SECOND)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("duetime", schema_url=_SCHEMA)

    @contextmanager
    def span(self, span: Span) -> Iterator[_OpenSpan]:
        """Open a span around a block.

        If an error leaves the block, only its type is recorded, because messages may quote data.
        """
        links = [Link(context) for each in span.links if (context := _context_of(each)) is not None]
        opened = self._tracer.start_span(
            span.name,
            _parent_of(span),
            _KINDS[span.kind],
            dict(span.attributes),
            links,
        )
        with trace.use_span(opened, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            known = _OpenSpan(opened)
            try:
                yield known
            except BaseException as error:
                known.end_with({}, type(error).__name__)
                raise

    def current(self) -> str | None:
        """The `traceparent` of this thread's open span; `None` if no span is open or the span is not exported."""
        return _traceparent_of(trace.get_current_span())

    def flush(self) -> None:
        """Spend a limited time on exporting the spans that have ended. This method never raises."""
        self._provider.force_flush(SPAN_EXPORT_TIME)


class _OpenSpan:
    """A span that has not ended."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def context(self) -> str | None:
        """The span's `traceparent`; `None` if the span is not exported."""
        return _traceparent_of(self._span)

    def end_with(self, attributes: Mapping[str, str | int], error: str = "") -> None:
        """Add attributes that are known when the span ends; an error type marks the span as failed."""
        self._span.set_attributes(dict(attributes))
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))


def _traceparent_of(span: trace.Span) -> str | None:
    context = span.get_span_context()
    if not span.is_recording() or not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _parent_of(span: Span) -> Context | None:
    """The context of a span's parent; `None` for this thread's open span."""
    parent = _context_of(span.parent)
    if parent is not None:
        return trace.set_span_in_context(trace.NonRecordingSpan(parent))
    return Context() if span.begins_trace else None


def _context_of(traceparent: str | None) -> SpanContext | None:
    """The span context in a `traceparent`, which was validated on arrival."""
    if traceparent is None:
        return None
    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
