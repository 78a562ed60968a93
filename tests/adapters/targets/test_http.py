from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.http_target import HttpRunner
from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Deferred, Failed, Succeeded, TargetEnding
from duetime.domain.tasks.targets import CallbackTarget, HttpTarget, Phase, Query
from duetime.domain.times import DAY, HOUR, SECOND, to_datetime, to_iso
from tests.adapters.targets.peers import answering, peer
from tests.adapters.targets.works import work
from tests.clocks import NOW, StandingClock

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOCK = StandingClock()


@dataclass
class Endpoint:
    """An HTTP endpoint on the loopback interface that sends scripted responses and records its requests."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    silent: threading.Event | None = None
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Run an endpoint for the duration of the test."""
    kept = Endpoint()

    class Answering(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.requests.append((self.command, self.path, dict(self.headers), body))
            if kept.silent is not None:
                kept.silent.wait(60)
                return
            self.send_response(kept.status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(kept.body)))
            self.end_headers()
            self.wfile.write(kept.body)

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    yield kept
    if kept.silent is not None:
        kept.silent.set()
    server.shutdown()
    thread.join()
    server.server_close()


def call(endpoint: Endpoint, path: str = "/job", seconds: int = 60, phase: Phase = Phase.RUN) -> TargetEnding:
    """Call the endpoint as a target."""
    url = endpoint.url + path
    wanted = work(url=url, seconds=seconds, phase=phase)
    return HttpRunner(DirectCaller(frozenset({"127.0.0.1"}), None, CLOCK)).run(HttpTarget(url), wanted)


def failed(ending: TargetEnding) -> Failed:
    """Return the failure of an attempt that must fail."""
    assert isinstance(ending, Failed)
    return ending


def test_an_endpoint_receives_the_same_data_as_a_handler(endpoint: Endpoint) -> None:
    """`PUT url?action=run` sends the id, type, attempt, fence, deadline, payload, and a key that identifies repeats."""
    assert isinstance(call(endpoint, "/job?team=dba"), Succeeded)
    method, path, headers, body = endpoint.requests[0]
    attempt = work(seconds=60)
    assert (method, path) == ("PUT", "/job?team=dba&action=run")
    assert headers["Idempotency-Key"] == attempt.task.id.text
    assert (headers["Duetime-Attempt"], headers["Duetime-Fence"]) == ("2", "3")
    assert headers["Host"] == endpoint.url.removeprefix("http://")
    assert json.loads(body) == {
        "owner": attempt.task.owner,
        "audience": f"{endpoint.url}/job",
        "task_id": attempt.task.id.text,
        "type": "report",
        "attempt": 2,
        "fence": 3,
        "deadline": to_iso(attempt.deadline),
        "due_at": to_iso(attempt.task.due_at),
        "created_at": to_iso(attempt.task.created_at),
        "lateness_ms": None,
        "payload": {"a": 1},
    }


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (b'{"rows": 3}', {"rows": 3}),
        (b"", None),
        (b"fine", "fine"),
        (b"NaN", "NaN"),
        (b"1e400", "1e400"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'"\\ud800"', '"\\ud800"'),
        (b'{"id": ' + b"9" * 60 + b"}", '{"id": ' + "9" * 60 + "}"),
        (b'{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    ],
)
def test_a_successful_response_is_the_result(endpoint: Endpoint, body: bytes, result: object) -> None:
    """The result is the response's JSON, a string for other text, or null for an empty body."""
    endpoint.body = body
    ending = call(endpoint)
    assert isinstance(ending, Succeeded)
    assert json.loads(ending.result) == result


@pytest.mark.parametrize(
    ("status", "retriable"),
    [(301, False), (400, False), (404, False), (408, True), (425, True), (429, True), (500, True), (503, True)],
)
def test_an_error_response_fails_the_attempt(endpoint: Endpoint, status: int, retriable: bool) -> None:  # noqa: FBT001 - the expectation
    """Temporary failures are retried, redirects are not followed, and errors contain the status and the response."""
    endpoint.status, endpoint.body, endpoint.headers = status, b"sorry", {"Location": endpoint.url + "/elsewhere"}
    ending = failed(call(endpoint))
    assert (ending.error.type, ending.retriable) == (f"Http{status}", retriable)
    assert "sorry" in ending.error.message
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("120", 120 * SECOND),
        ("0", 0),
        ("00000000120", 120 * SECOND),
        ("86401", DAY),
        ("1000000", DAY),
        ("9" * 5_000, DAY),
        ("soon", 0),
        ("-1", 0),
        ("1.5", 0),
        ("1e3", 0),
        ("\u00b2", 0),
    ],
)
def test_an_endpoint_can_request_a_delay_in_seconds(endpoint: Endpoint, text: str, wait: int) -> None:
    """`Retry-After` in seconds is respected up to a day; an invalid value is ignored."""
    endpoint.status, endpoint.headers = 503, {"Retry-After": text}
    assert failed(call(endpoint)).wait_at_least == wait


@pytest.mark.parametrize("date", ["none", "garbage", "an hour ahead"])
def test_an_endpoint_can_request_a_delay_until_a_date(date: str) -> None:
    """A date in `Retry-After` is relative to the response's `Date` header or, without one, to the local clock."""
    of_the_response = to_datetime(NOW + HOUR) if date == "an hour ahead" else to_datetime(NOW)
    asked = format_datetime(of_the_response + timedelta(seconds=6), usegmt=True)
    told = {"none": "", "garbage": "Date: yesterday\r\n"}.get(
        date, f"Date: {format_datetime(of_the_response, usegmt=True)}\r\n"
    )
    text = f"HTTP/1.1 429 Too Many Requests\r\n{told}Retry-After: {asked}\r\nContent-Length: 0\r\n\r\n"
    with peer(answering(text.encode())) as other:
        ending = failed(call(Endpoint(f"http://127.0.0.1:{other.port}")))
    assert ending.wait_at_least == pytest.approx(6 * SECOND, abs=SECOND)


@pytest.mark.parametrize(
    ("content_type", "body", "result"),
    [
        ("text/plain; charset=iso-8859-1", b"caf\xe9", "caf\u00e9"),
        ('text/plain; charset="Windows-1252"', b"\x80 5", "\u20ac 5"),
        ("text/html;charset=Shift_JIS", "\u65e5\u672c".encode("shift_jis"), "\u65e5\u672c"),
        ("text/plain; charset=utf-16", "caf\u00e9".encode("utf-16"), "caf\u00e9"),
        ("text/plain; charset=utf-8", b"caf\xc3\xa9", "caf\u00e9"),
        ("text/plain", b"caf\xc3\xa9", "caf\u00e9"),
        ("text/plain; charset=x-unheard-of", b"caf\xe9", "caf\ufffd"),
        ("text/plain; charset=base64", b"Y2Fm", "Y2Fm"),
        ("text/plain; charset=unicode_escape", b"\\u0041", "\\u0041"),
        ("text/plain; charset=ascii", b"caf\xe9", "caf\ufffd"),
        ("application/json; charset=iso-8859-1", b'{"name":"caf\xc3\xa9"}', {"name": "caf\u00e9"}),
        ("application/json; charset=iso-8859-1", b'{"name":"caf\xe9"}', {"name": "caf\u00e9"}),
        ("application/problem+json; charset=utf-16-le", '{"a":1}'.encode("utf-16-le"), {"a": 1}),
    ],
)
def test_a_text_is_decoded_by_its_charset(endpoint: Endpoint, content_type: str, body: bytes, result: object) -> None:
    """Text without a known charset is read as UTF-8, and JSON is read as UTF-8 whenever possible."""
    endpoint.headers, endpoint.body = {"Content-Type": content_type}, body
    ending = call(endpoint)
    assert isinstance(ending, Succeeded)
    assert json.loads(ending.result) == result


def test_the_text_of_an_error_is_decoded_by_its_charset(endpoint: Endpoint) -> None:
    """The text of an error response is decoded by its charset."""
    endpoint.status, endpoint.headers = 400, {"Content-Type": "text/plain; charset=latin-1"}
    endpoint.body = b"ung\xfcltig"
    assert failed(call(endpoint)).error.message.endswith("ung\u00fcltig")


def test_a_response_that_is_too_large_fails_permanently(endpoint: Endpoint) -> None:
    """A response larger than the maximum size of a result is not read further and fails permanently."""
    endpoint.body = b"x" * (MAX_RESULT_BYTES + 1)
    ending = failed(call(endpoint))
    assert (ending.error.type, ending.retriable) == ("AnswerTooLarge", False)


def test_the_size_of_a_result_is_counted_in_utf8_bytes(endpoint: Endpoint) -> None:
    """The size limit of a result counts bytes of UTF-8."""
    endpoint.body = '"{}"'.format("\u00e9" * ((MAX_RESULT_BYTES - 2) // 2)).encode()
    assert call(endpoint) == Succeeded(endpoint.body)
    endpoint.body = '"{}"'.format("\u00e9" * (MAX_RESULT_BYTES // 2)).encode()
    assert failed(call(endpoint)).error.type == "AnswerTooLarge"


def test_a_call_to_an_unresponsive_endpoint_times_out(endpoint: Endpoint) -> None:
    """A call ends at the task's timeout, and the attempt fails and may be retried."""
    endpoint.silent = threading.Event()
    ending = failed(call(endpoint, seconds=1))
    assert ending.retriable
    assert "Timeout" in ending.error.type


def test_an_unreachable_endpoint_is_retried(endpoint: Endpoint) -> None:
    """A refused connection fails the attempt, and the next attempt can succeed."""
    endpoint.url = "http://127.0.0.1:1"
    assert failed(call(endpoint)).retriable


def test_a_private_endpoint_is_rejected_permanently(endpoint: Endpoint) -> None:
    """A private endpoint that the settings do not allow is not called, and the failure is permanent."""
    ending = failed(
        HttpRunner(DirectCaller(frozenset(), None, CLOCK)).run(HttpTarget(endpoint.url), work(url=endpoint.url))
    )
    assert (ending.error.type, ending.retriable) == ("DestinationRefused", False)
    assert not endpoint.requests


def test_an_endpoint_defers_run_with_a_202_status(endpoint: Endpoint) -> None:
    """A 202 status defers `run`; for other phases a 202 is an ordinary response."""
    endpoint.status = 202
    assert call(endpoint) == Deferred()
    assert call(endpoint, phase=Phase.PREPARE) == Succeeded(b"null")


@pytest.mark.parametrize("phase", list(Phase))
def test_each_phase_is_an_action(endpoint: Endpoint, phase: Phase) -> None:
    """Each phase is sent as `PUT` with `action=prepare`, `run`, `clean` or `rollback`."""
    call(endpoint, phase=phase)
    assert endpoint.requests[0][1] == f"/job?action={phase}"


def test_interim_responses_are_skipped_for_tasks_callbacks_and_queries() -> None:
    """Interim responses are skipped in calls for tasks, callbacks and queries alike."""
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    runner = HttpRunner(DirectCaller(frozenset({"127.0.0.1"}), None, CLOCK))
    with peer(answering(interim + b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7")) as other:
        url = f"http://127.0.0.1:{other.port}/"
        wanted = work(url=url)
        assert runner.run(HttpTarget(url), wanted) == Succeeded(b"7")
        assert runner.call_back(CallbackTarget(url), wanted) == Succeeded(b"null")
        assert runner.ask(HttpTarget(url), wanted.task, Query.STATUS, "nonce").body == b"7"
