from __future__ import annotations

import io
import json
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from random import Random
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.stub import ANY, Stubber

from duetime.adapters.targets.egress import Egress, EgressCaller, EgressFailed, LambdaInvocation
from duetime.adapters.targets.http_messages import (
    EGRESS_FAILED,
    EGRESS_UNAVAILABLE,
    Call,
    HttpResponse,
    NoResponse,
    Reply,
    calls_in,
    packed_call,
    packed_calls,
)
from duetime.adapters.targets.http_target import HttpRunner
from duetime.domain.tasks.attempt_results import NotSent
from duetime.domain.tasks.targets import HttpTarget
from duetime_common.limits import MAX_UPLOAD_BYTES
from tests.adapters.clouds import EXECUTOR
from tests.adapters.targets.works import work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_lambda import LambdaClient

SLOW_WINDOW = 2.0
"""The collection window in seconds, in which even a busy machine starts ten calls; a group of ten is sent at once."""
LONG = 30.0
"""A wait in seconds that ends a test whose call would never end."""


class Echo:
    """A caller that records each request and responds with it.

    Attributes:
        let_go: the event that releases waiting calls.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.let_go = threading.Event()

    def call(self, call: Call) -> Reply:
        """Respond with the call's id; the call's body says whether to wait for `let_go` and whether to fail."""
        self.calls.append(call)
        facts = json.loads(call.body or b"{}")
        if facts.get("waits"):
            self.let_go.wait(LONG)
        if facts.get("fails"):
            return NoResponse("Boom", call.id, retriable=False)
        return HttpResponse(200, "7", b"\xff" + call.id.encode())


class Function:
    """The egress function, called in this process, with a count of its invocations."""

    def __init__(self, caller: Echo) -> None:
        self.egress = Egress(caller, EXECUTOR)
        self.sizes: list[int] = []

    def __call__(self, payload: bytes) -> bytes:
        """Invoke the function."""
        event = json.loads(payload)
        self.sizes.append(len(event["calls"]))
        return json.dumps(self.egress.answer(event)).encode()


def at_once(caller: EgressCaller, calls: Sequence[Call]) -> list[Reply]:
    """Make calls at the same time, each in its own thread."""
    ready = threading.Barrier(len(calls))

    def make(call: Call) -> Reply:
        ready.wait()
        return caller.call(call)

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(make, calls))


def calls(count: int, **fields: Any) -> list[Call]:  # noqa: ANN401 - fields of Call
    """Return calls to arbitrary addresses."""
    return [Call(f"id-{number}", "PUT", "https://example.org/", **fields) for number in range(count)]


def test_simultaneous_calls_share_an_invocation() -> None:
    """Ten threads share an invocation, and each thread gets the reply to the thread's own call."""
    function = Function(Echo())
    replies = at_once(EgressCaller(function, SLOW_WINDOW), calls(10))
    assert function.sizes == [10]
    assert replies == [HttpResponse(200, "7", b"\xff" + f"id-{number}".encode()) for number in range(10)]


def test_a_call_arrives_unchanged_except_for_its_time_limit() -> None:
    """The call arrives unchanged except for a slightly shorter time limit, so that the response returns in time."""
    echo = Echo()
    given = Call("id", "PUT", "https://e.org/?a=b", {"X": "1"}, b'{"t":"\xc3\xa9"}', seconds=60, most=7, owner="me")
    assert isinstance(EgressCaller(Function(echo)).call(given), HttpResponse)
    (made,) = echo.calls
    assert (made.id, made.method, made.url, made.headers, made.body, made.most) == (
        given.id,
        given.method,
        given.url,
        given.headers,
        given.body,
        given.most,
    )
    assert (made.owner, made.seconds) == ("me", 59.5)


@pytest.mark.slow
def test_an_invocation_takes_at_most_ten_calls() -> None:
    """Fifteen simultaneous calls are sent in two invocations, because an invocation takes at most ten."""
    function = Function(Echo())
    replies = at_once(EgressCaller(function, SLOW_WINDOW), calls(15))
    assert sorted(function.sizes) == [5, 10]
    assert len(set(map(str, replies))) == 15


@pytest.mark.slow
def test_an_invocation_stays_within_the_size_limit_of_lambda() -> None:
    """Calls with payloads of a megabyte each are spread over as many invocations as they need."""
    payloads: list[bytes] = []
    function = Function(Echo())

    def invoke(payload: bytes) -> bytes:
        payloads.append(payload)
        return function(payload)

    body = json.dumps("x" * 1_048_570).encode()
    replies = at_once(
        EgressCaller(invoke, SLOW_WINDOW),
        [Call(f"id-{n}", "PUT", "https://e.org/", body=b'{"p":' + body + b"}") for n in range(10)],
    )
    assert all(isinstance(reply, HttpResponse) for reply in replies)
    assert sum(function.sizes) == 10
    assert max(map(len, payloads)) < 6_000_000


def test_different_owners_and_time_limits_do_not_share_an_invocation() -> None:
    """A slow endpoint does not delay other owners, and only calls with similar time limits share an invocation."""
    echo = Echo()
    function = Function(echo)
    slow = Call("slow", "PUT", "https://e.org/", seconds=2 * LONG, body=b'{"waits": true}', owner="stranger")
    other = Call("other", "PUT", "https://e.org/", seconds=LONG, owner="me")
    quick = Call("quick", "PUT", "https://e.org/", seconds=2 * LONG, owner="me")
    caller = EgressCaller(function, 0.2)
    with ThreadPoolExecutor(3) as threads:
        waiting = threads.submit(caller.call, slow)
        assert all(
            isinstance(one.result(), HttpResponse) for one in [threads.submit(caller.call, c) for c in (other, quick)]
        )
        # At this point, the slow call has not ended.
        assert not waiting.done()
        echo.let_go.set()
        assert isinstance(waiting.result(), HttpResponse)
    assert function.sizes == [1, 1, 1]


@pytest.mark.slow
def test_an_error_in_one_call_is_reported_only_to_its_caller() -> None:
    """An error in one call is reported, unchanged, only to the thread that made the call."""
    function = Function(Echo())
    (good,) = calls(1, seconds=LONG)
    replies = at_once(
        EgressCaller(function, SLOW_WINDOW),
        [good, Call("bad", "PUT", "https://e.org/", body=b'{"fails": true}', seconds=LONG)],
    )
    assert replies == [HttpResponse(200, "7", b"\xffid-0"), NoResponse("Boom", "bad", retriable=False)]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"null",
        b"{}",
        b'{"replies": []}',
        b'{"replies": [{}]}',
        b'{"replies": [1]}',
        b'{"errorMessage": "x"}',
        b"<",
    ],
)
def test_an_invalid_response_payload_fails_the_call(answer: bytes) -> None:
    """An invalid response payload is a failure that may be retried."""
    reply = EgressCaller(lambda _payload: answer).call(calls(1)[0])
    assert isinstance(reply, NoResponse)
    assert (reply.kind, reply.retriable) == ("EgressFailed", True)


def test_a_lost_response_fails_at_the_time_limit() -> None:
    """If an invocation does not respond, its calls fail at their time limit."""
    over = threading.Event()

    def invoke(_payload: bytes) -> bytes:
        over.wait(2 * LONG)
        return b""

    began = time.monotonic()
    replies = at_once(EgressCaller(invoke), calls(3, seconds=0.5))
    took = time.monotonic() - began
    over.set()
    assert replies == [NoResponse("Timeout", "the endpoint did not answer within 0.5 s")] * 3
    assert 0.5 <= took < LONG


def test_a_failed_invocation_does_not_affect_the_next() -> None:
    """A failed invocation does not affect the next invocation."""
    function = Function(Echo())
    failing = [EgressFailed("TooManyRequestsException")]

    def invoke(payload: bytes) -> bytes:
        if failing:
            raise failing.pop()
        return function(payload)

    caller = EgressCaller(invoke)
    first, second = caller.call(calls(1)[0]), caller.call(calls(1)[0])
    assert first == NoResponse("EgressFailed", "the call could not be handed on: TooManyRequestsException")
    assert isinstance(second, HttpResponse)


def _throttle(stubber: Stubber) -> None:
    stubber.add_client_error("invoke", "TooManyRequestsException", "Rate exceeded for arn:aws:lambda:x", 429)


def _crash(stubber: Stubber) -> None:
    body = io.BytesIO(b'{"errorMessage": "secret"}')
    answer = {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": body}
    stubber.add_response("invoke", answer, {"FunctionName": "egress", "Payload": ANY})


@pytest.mark.parametrize("crashes", [False, True], ids=["returns", "crashes"])
def test_an_invocation_reports_the_function_version_that_ran(*, crashes: bool) -> None:
    """The function's name and version, without the alias, are reported even if the function has crashed."""
    client = boto3.client("lambda", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")  # noqa: S106 - none
    executed: list[str] = []
    answer = {"StatusCode": 200, "Payload": io.BytesIO(b"{}"), "ExecutedVersion": "17"}
    with Stubber(client) as stubber:
        stubber.add_response("invoke", answer | ({"FunctionError": "Unhandled"} if crashes else {}))
        invoke = LambdaInvocation(client, "billing:live", executed.append)
        with pytest.raises(EgressFailed) if crashes else nullcontext():
            invoke(b"{}")
    assert executed == ["billing:17"]


@pytest.mark.parametrize(("happens", "named"), [(_throttle, "TooManyRequestsException"), (_crash, "Unhandled")])
def test_a_failed_invocation_names_the_error_without_internal_details(
    happens: Callable[[Stubber], None], named: str
) -> None:
    """The failure names the AWS error, but contains no ARN and none of the function's output."""
    client = boto3.client("lambda", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")  # noqa: S106 - none
    with Stubber(client) as stubber:
        happens(stubber)
        reply = EgressCaller(LambdaInvocation(client, "egress")).call(calls(1)[0])
        stubber.assert_no_pending_responses()
    assert isinstance(reply, NoResponse)
    assert named in reply.message
    assert "arn" not in reply.message
    assert "secret" not in reply.message


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ("TooManyRequestsException", EGRESS_UNAVAILABLE),
        ("ResourceConflictException", EGRESS_UNAVAILABLE),
        ("AccessDeniedException", EGRESS_UNAVAILABLE),
        ("ServiceException", EGRESS_FAILED),
        (EndpointConnectionError(endpoint_url="x"), EGRESS_UNAVAILABLE),
        (ConnectTimeoutError(endpoint_url="x"), EGRESS_UNAVAILABLE),
        (ReadTimeoutError(endpoint_url="x"), EGRESS_FAILED),
        (ConnectionClosedError(endpoint_url="x"), EGRESS_FAILED),
    ],
    ids=str,
)
def test_only_a_call_that_was_provably_not_sent_is_reported_unsent(refusal: str | Exception, kind: str) -> None:
    """A call is reported as not sent only if the invocation or the connection was refused."""
    error = ClientError({"Error": {"Code": refusal}}, "Invoke") if isinstance(refusal, str) else refusal

    class Client:
        def invoke(self, **_request: object) -> None:
            raise error

    caller = EgressCaller(LambdaInvocation(cast("LambdaClient", Client()), "egress"))
    reply = caller.call(calls(1)[0])
    assert isinstance(reply, NoResponse)
    assert (reply.kind, reply.retriable) == (kind, True)
    ending = HttpRunner(caller).run(HttpTarget("https://example.org"), work(url="https://example.org"))
    assert isinstance(ending, NotSent) == (kind == EGRESS_UNAVAILABLE)


def test_an_event_without_calls_makes_no_call() -> None:
    """An event without calls, which only warms up the function, makes no call."""
    assert Egress(Echo(), EXECUTOR).answer({"calls": []}) == {"replies": []}
    assert calls_in({"calls": []}) == []


@pytest.mark.slow
def test_a_body_of_the_largest_upload_fits_into_one_invocation() -> None:
    """Five megabytes that do not compress arrive unchanged, raw and as base64 in JSON, within Lambda's 6 MB."""
    data = Random(1).randbytes(MAX_UPLOAD_BYTES)  # noqa: S311 - an example, not a secret
    headers = {f"X-{number}": "h" * 500 for number in range(8)}
    for body in (data, b'{"payload": "' + b64encode(data) + b'"}'):
        event = packed_calls([packed_call(Call("1", "PUT", "https://example.org/", headers, body), 60)])
        assert len(event) < 6 * 1024 * 1024
        (call,) = calls_in(json.loads(event))
        assert call.body == body
