"""Tests of the spans that an OpenTelemetry collector receives, from a request to the endpoint."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from duetime import composition
from duetime.adapters.targets.egress import EgressCaller
from duetime.composition import composed
from duetime.composition.invoked_functions import HttpServices
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered
from tests.functions.api.gateway import Gateway
from tests.functions.receivers import Receiver, receiving
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
SCRIPT = """
import sys
from duetime.composition import composed
import functions.api.handler, functions.trigger.handler, functions.worker.handler, functions.egress.handler
composed().tracer.flush()
print([name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "google", "requests")])
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An HTTP server on the loopback address that is both the endpoint and the collector."""
    with receiving() as started:
        yield started


@pytest.fixture
def stack(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """The Lambda functions, which export their spans to the receiver."""
    monkeypatch.setenv(Variable.OTLP_ENDPOINT, receiver.url)
    yield Stack.faked({Variable.HTTP_ALLOW: "127.0.0.1", Variable.OTLP_ENDPOINT: receiver.url})
    composition.use(None)


def exported(receiver: Receiver) -> dict[str, Span]:
    """The exported spans by name. If several spans have the same name, only the latest of these spans is included."""
    return {span.name: span for span in all_exported(receiver)}


def all_exported(receiver: Receiver) -> list[Span]:
    """All exported spans."""
    spans: list[Span] = []
    for request in receiver.requests:
        if request.path == "/v1/traces":
            is_packed = request.headers.get("Content-Encoding") == "gzip"
            body = gzip.decompress(request.body) if is_packed else request.body
            parts = ExportTraceServiceRequest.FromString(body).resource_spans
            spans += [span for part in parts for scope in part.scope_spans for span in scope.spans]
    return spans


def facts(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def links(span: Span) -> list[tuple[str, str]]:
    """The trace ids and span ids to which a span links."""
    return [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]


def place(span: Span) -> tuple[str, str]:
    """The trace id and the span id of a span."""
    return span.trace_id.hex(), span.span_id.hex()


def through_egress(stack: Stack) -> None:
    """Send the worker's HTTP calls through the egress function."""

    def invoke(payload: bytes) -> bytes:
        return json.dumps(stack.call("egress", json.loads(payload))).encode()

    http = composed(HttpServices)
    http.__dict__["caller"] = http.passing(EgressCaller(invoke))


def test_a_task_is_followed_from_its_request_to_its_endpoint(stack: Stack, receiver: Receiver) -> None:
    """A task has one span each for its creation, sending and processing, in separate traces that link to the creation.

    The span for the call is a child of the processing span.
    """
    through_egress(stack)
    target = {"kind": "http", "url": f"{receiver.url}/job?token=secret"}
    task = Gateway().create({"type": "report", "target": target, "delay_seconds": 480}, HEADERS)
    stack.call("trigger", {})
    stack.clock.at += 5 * MINUTE
    stack.call("trigger", {})
    stack.clock.at += 3 * MINUTE
    assert stack.work(Priority.NORMAL) == []
    spans = exported(receiver)
    created, sent, processed, called = (
        spans[name] for name in ("create report", "send tasks", "process report", "PUT")
    )
    assert (created.trace_id.hex(), created.parent_span_id.hex()) == (TRACE, PARENT)
    assert task["traceparent"] == "00-{}-{}-01".format(*place(created))
    assert links(sent) == links(processed) == links(called) == [place(created)]
    assert (called.trace_id, called.parent_span_id) == (processed.trace_id, processed.span_id)
    assert len({created.trace_id, sent.trace_id, processed.trace_id}) == 3
    assert [each.kind for each in (created, sent, processed, called)] == [4, 4, 5, 3]
    assert facts(created)["messaging.message.id"] == facts(processed)["messaging.message.id"] == task["id"]
    assert facts(processed)["duetime.task.state"] == "succeeded"
    assert facts(called) == {
        "http.request.method": "PUT",
        "server.address": "127.0.0.1",
        "http.response.status_code": 200,
    }
    assert not [one for one in receiver.requests if one.path == "/v1/traces" and b"secret" in one.body]


def test_a_run_of_a_schedule_links_to_the_tick_and_to_the_schedule(stack: Stack, receiver: Receiver) -> None:
    """Each run of a schedule has a separate trace, which links to the tick and to the schedule's trace.

    The schedule's trace would last for years, and a tick makes many runs.
    """
    body = {"name": "often", "rate": "1 minute", "overlap": "allow_all", "task": {"type": "report"}}
    assert Gateway().send("POST", "/v1/schedules", body, HEADERS).status == 201
    seen = len(all_exported(receiver))
    for _ in range(20):
        stack.clock.at += MINUTE
        stack.call("trigger", {})
    made = [span for span in all_exported(receiver)[seen:] if span.name == "create report"]
    ticks = [place(span) for span in all_exported(receiver)[seen:] if span.name == "expand schedules"]
    assert len(made) > 10
    assert ticks
    assert all(span.parent_span_id == b"" for span in made)
    assert len({span.trace_id for span in made}) == len(made)
    assert all(links(span)[0] in ticks and links(span)[1:] == [(TRACE, PARENT)] for span in made)
    assert {facts(span)["duetime.schedule.name"] for span in made} == {"often"}
    # Other messages for the task, which scans sent because no worker ran for minutes, can find the first message's
    # lease.
    stack.work(Priority.NORMAL)
    processed = [span for span in all_exported(receiver) if span.name == "process report"]
    created = {place(span) for span in all_exported(receiver) if span.name == "create report"}
    assert processed
    assert all(len(links(span)) == 1 and links(span)[0] in created for span in processed)


def test_a_manual_run_is_a_part_of_its_request_and_links_to_the_schedule(stack: Stack, receiver: Receiver) -> None:
    """A manual run, for which the caller waits, is part of its request's trace, and links to the schedule's trace."""
    del stack
    body = {"name": "yearly", "cron": "0 0 1 1 *", "task": {"type": "report"}}
    assert Gateway().send("POST", "/v1/schedules", body, HEADERS).status == 201
    request = f"00-{'a' * 32}-{'b' * 16}-01"
    task = Gateway().send("POST", "/v1/schedules/yearly/run", None, {"traceparent": request}).body
    (made,) = [span for span in all_exported(receiver) if span.name == "create report"]
    assert (made.trace_id.hex(), made.parent_span_id.hex()) == ("a" * 32, "b" * 16)
    assert links(made) == [(TRACE, PARENT)]
    assert task["traceparent"] == "00-{}-{}-01".format(*place(made))


def test_a_failed_attempts_span_has_the_errors_type_but_no_message(
    stack: Stack, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed attempt's span has the error's type but not its message, because messages can quote data."""

    def fail(_context: object, _payload: object) -> None:
        raise ValueError("the password is hunter2")

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": fail}))
    Gateway().create({"type": "report", "retry": {"max_attempts": 1}}, {})
    assert stack.work(Priority.NORMAL) == []
    processed = exported(receiver)["process report"]
    assert (processed.status.code, facts(processed)["error.type"]) == (2, "ValueError")
    assert not [one for one in receiver.requests if b"hunter2" in one.body]


def test_a_request_that_is_not_sampled_is_not_exported(stack: Stack, receiver: Receiver) -> None:
    """If the caller's trace is not sampled, no spans are exported, and the task keeps the `traceparent` unchanged."""
    del stack
    unsampled = f"00-{TRACE}-{PARENT}-00"
    assert Gateway().create({"type": "report"}, {"traceparent": unsampled})["traceparent"] == unsampled
    assert exported(receiver) == {}


def test_tasks_run_even_if_the_collector_fails(
    stack: Stack, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the collector fails, tasks are still created and run."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: None}))
    receiver.answers["POST", "/v1/traces"] = (500, b"")
    task = Gateway().create({"type": "report"}, {})
    assert stack.work(Priority.NORMAL) == []
    assert Gateway().send("GET", f"/v1/tasks/{task['id']}").body["state"] == "succeeded"


@pytest.mark.parametrize(("endpoint", "loads"), [("", False), ("http://127.0.0.1:9", True)])
def test_tracing_libraries_are_imported_only_if_spans_are_exported(endpoint: str, *, loads: bool) -> None:
    """Tracing libraries, which are usually not deployed, are imported only if the settings name a tracing endpoint."""
    environ = {"PATH": "/usr/bin", Variable.OTLP_ENDPOINT.value: endpoint}
    told = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True, env=environ)  # noqa: S603 - our own code
    assert (told.stdout.strip() != "[]") is loads
