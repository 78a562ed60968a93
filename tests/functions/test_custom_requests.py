"""Tests of HTTP targets with a custom request, from the REST API through the worker and the egress to the endpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.adapters.targets.egress import EgressCaller
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.invoked_functions import HttpServices
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, SECOND
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway
from tests.functions.receivers import Received, Receiver, receiving
from tests.functions.stack import Stack
from tests.grants import SENT_SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.task import Task

TOKEN = "MARK-b7a1"  # noqa: S105 - an example
"""A string that is part of each secret in this file, and that only the endpoint may receive."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP endpoint on the loopback address."""
    with receiving() as started:
        yield started


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions with a secret for endpoints; the worker's HTTP calls go through the egress function."""
    secrets = json.dumps({"crm": {"arn": SENT_SECRET, "hosts": ["127.0.0.1"]}})
    settings: dict[str, str] = {
        Variable.HTTP_ALLOW: "127.0.0.1",
        Variable.SIGNING_SECRET: "signing",
        Variable.HTTP_SECRETS: secrets,
    }
    made = Stack.faked(settings, {"signing": "c2VjcmV0" * 8, SENT_SECRET: TOKEN})
    composed(HttpServices).__dict__["caller"] = EgressCaller(
        lambda payload: json.dumps(made.call("egress", json.loads(payload))).encode(), window=0
    )
    yield made
    composition.use(None)


def run(stack: Stack, target: dict[str, Any], **fields: Any) -> Task:  # noqa: ANN401 - fields of a task
    """Create a task over REST, let the worker run it once, and read its record."""
    body = {"type": "report", "target": {"kind": "http", **target}, "retry": {"max_attempts": 2}, **fields}
    answer = Gateway().send("POST", "/v1/tasks", body)
    assert answer.status == 201, answer.text
    assert stack.work(Priority.NORMAL) == []
    found = composed(CoreServices).stores.tasks.read(TaskId.parse(answer.body["id"]))
    assert found is not None
    return found


def test_a_request_is_sent_as_it_is_described(stack: Stack, receiver: Receiver) -> None:
    """The request has the given method, headers, query and body, in which placeholders are replaced.

    duetime adds neither an action nor the envelope nor a signature.
    """
    task = run(
        stack,
        {
            "url": f"{receiver.url}/rows?a=1",
            "method": "PATCH",
            "headers": {"X-Run": "<duetime.task-id>/<duetime.attempt>", "user-agent": "reports"},
            "query": {"of": "<duetime.type> & co"},
            "body": {"json": {"day": "<duetime.task-id>", "n": [1]}},
        },
        payload="not sent",
    )
    (sent,) = receiver.requests
    assert (sent.method, sent.path) == ("PATCH", "/rows?a=1&of=report+%26+co")
    assert sent.json == {"day": str(task.id), "n": [1]}
    assert sent.headers["X-Run"] == f"{task.id}/1"
    assert (sent.headers["user-agent"], sent.headers["Content-Type"]) == ("reports", "application/json")
    assert sent.headers["Idempotency-Key"] == str(task.id)
    assert not [name for name in sent.headers if name.lower().startswith("webhook-")]
    assert task.state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("target", "payload", "content_type", "body"),
    [
        ({"method": "POST"}, {"text": "<duetime.type>"}, "application/json", b'{"text":"report"}'),
        ({"method": "POST"}, None, None, b""),
        ({"method": "DELETE"}, {"a": 1}, None, b""),
        (
            {"body": {"form": {"to": "<duetime.type> 1", "b": "2"}}},
            None,
            "application/x-www-form-urlencoded",
            b"to=report+1&b=2",
        ),
        ({"body": {"text": "run <duetime.attempt>"}}, None, "text/plain; charset=utf-8", b"run 1"),
        ({"body": {"base64": "AP8="}}, None, "application/octet-stream", b"\x00\xff"),
        ({"body": {"json": None}}, None, "application/json", b"null"),
        ({"body": {"text": "<a/>"}, "headers": {"content-type": "text/xml"}}, None, "text/xml", b"<a/>"),
    ],
)
def test_a_body_has_one_of_four_forms_or_is_the_payload(
    stack: Stack, receiver: Receiver, target: dict[str, Any], payload: object, content_type: str | None, body: bytes
) -> None:
    """A body can be JSON, a form, text or bytes. Without `body`, POST sends the payload, and DELETE sends no body."""
    run(stack, {"url": receiver.url, **target}, payload=payload)
    (sent,) = receiver.requests
    headers = {name.lower(): text for name, text in sent.headers.items()}
    assert (headers.get("content-type"), sent.body) == (content_type, body)


def test_headers_and_query_are_added_to_the_signed_request(stack: Stack, receiver: Receiver) -> None:
    """Without `method` and `body`, the request is the usual signed `PUT` with the added headers and query."""
    run(stack, {"url": receiver.url, "headers": {"X-Team": "dba"}, "query": {"a": "b"}, "auth": bearer()})
    (sent,) = receiver.requests
    assert (sent.method, sent.path) == ("PUT", "/?a=b&action=run")
    assert (sent.headers["X-Team"], sent.headers["Authorization"]) == ("dba", f"Bearer {TOKEN}")
    assert "webhook-signature" in sent.headers
    assert sent.json["type"] == "report"


@pytest.mark.parametrize(
    ("success", "status", "state", "error"),
    [
        (None, 202, State.SUCCEEDED, None),
        ([200, 404], 404, State.SUCCEEDED, None),
        ([200], 202, State.WAITING, "Http202"),
        ([201], 301, State.FAILED, "Http301"),
        ([503], 503, State.SUCCEEDED, None),
        ([200], 400, State.FAILED, "Http400"),
    ],
)
def test_only_the_listed_statuses_count_as_success(
    stack: Stack, receiver: Receiver, success: list[int] | None, status: int, state: State, error: str | None
) -> None:
    """Only the listed statuses count as success; other 2xx statuses are retried, and a 202 has no special meaning."""
    receiver.answers["POST", "/"] = (status, b'"told"')
    task = run(stack, {"url": receiver.url, "method": "POST", "success": success})
    assert (task.state, task.error and task.error.type) == (state, error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": "Mon, 23 Nov 2026 07:02:00 GMT", "Date": "Mon, 23 Nov 2026 07:00:30 GMT"}, 90),
    ],
)
def test_retry_after_is_honored(stack: Stack, receiver: Receiver, headers: dict[str, str], seconds: int) -> None:
    """`Retry-After` can be in seconds or a date.

    A date is compared with the response's `Date` header, so the endpoint's clock need not agree with duetime's.
    """
    receiver.judge = lambda _request: (429, b"")
    receiver.headers = headers
    task = run(stack, {"url": receiver.url, "method": "POST"})
    assert task.state is State.WAITING
    assert (seconds - 1) * SECOND <= task.next_at - stack.clock.now() <= (seconds + 1) * SECOND


@pytest.mark.parametrize(
    ("response", "result", "error"),
    [
        ({"keep": "none"}, "null", None),
        ({"max_bytes": 5}, None, "AnswerTooLarge"),
        ({"max_bytes": 5, "when_larger": "truncate"}, '"[1, 2"', None),
    ],
)
def test_keep_and_max_bytes_limit_what_is_kept_of_a_response(
    stack: Stack, receiver: Receiver, response: dict[str, Any], result: str | None, error: str | None
) -> None:
    """`keep` and `max_bytes` limit what is stored; a larger body either fails the attempt or is truncated."""
    receiver.answers["POST", "/"] = (200, b"[1, 2, 3]")
    task = run(stack, {"url": receiver.url, "method": "POST", "response": response})
    found = None if task.result is None or task.result.data is None else task.result.data.decode()
    assert (found, task.error and task.error.type) == (result, error)


@pytest.mark.parametrize("keep", ["body", "all"])
@pytest.mark.parametrize("character", [b"x", b'"', "\u00fc".encode()], ids=["plain", "escaped", "of_two_bytes"])
def test_a_body_is_truncated_so_that_its_result_is_not_too_large(
    stack: Stack, receiver: Receiver, character: bytes, keep: str
) -> None:
    """Even with the largest `max_bytes`, only as much of a string is stored as fits when encoded as JSON."""
    receiver.answers["GET", "/"] = (200, character * (MAX_RESULT_BYTES // len(character) + 1))
    response = {"keep": keep, "when_larger": "truncate", "max_bytes": MAX_RESULT_BYTES}
    task = run(stack, {"url": receiver.url, "method": "GET", "response": response})
    assert (task.state, task.result is None) == (State.SUCCEEDED, False)
    assert task.result is not None
    result = composed(CoreServices).stores.contents.fetch(task.id, task.result)
    assert MAX_RESULT_BYTES - 2 <= len(result) <= MAX_RESULT_BYTES
    kept = json.loads(result)
    text = kept if keep == "body" else kept["body"]
    assert set(text) == {character.decode()}


def test_keep_all_stores_the_status_headers_and_body_of_a_response(stack: Stack, receiver: Receiver) -> None:
    """`keep: all` stores the status, the body, and the headers except cookies; header names are in lower case."""
    receiver.headers = {"X-Rows": "3", "Set-Cookie": "session=1"}
    task = run(stack, {"url": receiver.url, "method": "GET", "response": {"keep": "all"}})
    assert task.result is not None
    result = json.loads(task.result.data or b"")
    assert (result["status"], result["body"], result["headers"]["x-rows"]) == (200, {}, "3")
    assert "set-cookie" not in result["headers"]


def bearer() -> dict[str, str]:
    """The authorization that sends the secret as a bearer token."""
    return {"secret": "crm", "scheme": "bearer"}


@pytest.mark.parametrize(
    ("auth", "secret", "header", "value"),
    [
        ({"scheme": "bearer"}, f" {TOKEN}\n", "Authorization", f"Bearer {TOKEN}"),
        ({"scheme": "header", "header": "X-Api-Key"}, TOKEN, "X-Api-Key", TOKEN),
        ({"scheme": "basic"}, f"ada:{TOKEN}", "Authorization", "Basic YWRhOk1BUkstYjdhMQ=="),
        (
            {"scheme": "basic"},
            json.dumps({"username": "ada", "password": TOKEN}),
            "Authorization",
            "Basic YWRhOk1BUkstYjdhMQ==",
        ),
    ],
)
def test_a_secret_is_not_shown_in_the_record_api_or_log(
    stack: Stack,
    receiver: Receiver,
    capsys: pytest.CaptureFixture[str],
    auth: dict[str, str],
    secret: str,
    header: str,
    value: str,
) -> None:
    """The record, the API and the log do not show a secret, even if the endpoint returns the secret in an error."""
    stack.secrets[SENT_SECRET] = secret
    receiver.judge = lambda request: (500, json.dumps(dict(request.headers)).encode())
    receiver.headers = {"X-Echo": value}
    target = {"url": receiver.url, "method": "POST", "auth": {"secret": "crm", **auth}, "response": {"keep": "all"}}
    task = run(stack, target, payload={"a": 1})
    (sent,) = receiver.requests
    assert sent.headers[header] == value
    receiver.judge = lambda request: (200, json.dumps(dict(request.headers)).encode())
    done = run(stack, target)
    assert done.state is State.SUCCEEDED
    assert done.result is not None
    assert b"[secret]" in (done.result.data or b"")
    shown = [
        Gateway().send("GET", f"/v1/tasks/{each.id}{path}").text for each in (task, done) for path in ("", "/attempts")
    ]
    written = [
        repr(task),
        repr(done),
        json.dumps(stack.cloud.dynamodb.scan(TableName=stack.environ[Variable.TABLE]), default=str),
    ]
    out = capsys.readouterr().out
    for text in (*shown, *written, out):
        assert TOKEN not in text
        assert "YWRhOk1BUkst" not in text
    assert '"secret":"crm"' in shown[0].replace(" ", "")


def test_a_secret_that_was_replaced_is_read_again_once(stack: Stack, receiver: Receiver) -> None:
    """After a response with status 401, the secret is read again, and if it has changed, the same attempt succeeds."""
    receiver.judge = lambda request: None if request.headers["Authorization"] == "Bearer new" else (401, b"")
    target = {"url": receiver.url, "method": "POST", "auth": bearer()}
    task = run(stack, target)
    assert (task.state, len(receiver.requests)) == (State.FAILED, 1)
    stack.secrets[SENT_SECRET] = "new"
    stack.clock.at += 10 * SECOND
    task = run(stack, target)
    assert (task.state, task.attempt, len(receiver.requests)) == (State.SUCCEEDED, 1, 3)


def token_server(receiver: Receiver, tokens: list[str]) -> None:
    """Let the receiver issue tokens, and accept only the latest token."""

    def judge(request: Received) -> tuple[int, bytes] | None:
        if request.path == "/token":
            tokens.append(f"{TOKEN}-{len(tokens)}")
            return 200, json.dumps({"access_token": tokens[-1], "token_type": "bearer", "expires_in": 3600}).encode()
        return None if request.headers["Authorization"] == f"Bearer {tokens[-1]}" else (401, b"")

    receiver.judge = judge


def test_a_token_is_fetched_with_client_credentials_and_kept(stack: Stack, receiver: Receiver) -> None:
    """Two tasks share an OAuth token; if the endpoint refuses the token, the same attempt fetches a new token."""
    tokens: list[str] = []
    client = {"client_id": "us", "client_secret": TOKEN, "token_url": f"{receiver.url}/token", "scope": "rows"}
    stack.secrets[SENT_SECRET] = json.dumps(client)
    token_server(receiver, tokens)
    target = {"url": f"{receiver.url}/rows", "method": "POST", "auth": {"secret": "crm", "scheme": "oauth_client"}}
    assert run(stack, target).state is State.SUCCEEDED
    assert run(stack, target).state is State.SUCCEEDED
    assert len(tokens) == 1
    (asked,) = [one for one in receiver.requests if one.path == "/token"]
    assert asked.headers["Authorization"] == "Basic dXM6TUFSSy1iN2Ex"
    assert asked.body == b"grant_type=client_credentials&scope=rows"
    tokens.append("revoked")
    stack.clock.at += MINUTE
    task = run(stack, target)
    assert (task.state, task.attempt, len(tokens)) == (State.SUCCEEDED, 1, 3)


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("not json", "is not a JSON object"),
        ('{"client_id": "us", "client_secret": "MARK-b7a1"}', "needs the string fields"),
        (
            '{"client_id": "us", "client_secret": "MARK-b7a1", "token_url": "http://example.org/MARK-b7a1"}',
            "not an https URL",
        ),
        (
            '{"client_id": "us", "client_secret": "MARK-b7a1", "token_url": "https://169.254.169.254/MARK-b7a1"}',
            "AddressForbidden",
        ),
    ],
)
def test_a_token_that_cannot_be_fetched_fails_the_attempt(
    stack: Stack, receiver: Receiver, secret: str, told: str
) -> None:
    """The error states the reason without the secret, and a token URL must satisfy the same rules as a target's URL."""
    stack.secrets[SENT_SECRET] = secret
    task = run(stack, {"url": receiver.url, "method": "POST", "auth": {"secret": "crm", "scheme": "oauth_client"}})
    assert task.error is not None
    assert (task.state, task.error.type) == (State.WAITING, "SecretUnavailable")
    assert told in task.error.message
    assert TOKEN not in task.error.message
    assert receiver.requests == []


def test_a_task_fails_if_its_secret_is_restricted_to_other_owners(stack: Stack, receiver: Receiver) -> None:
    """If a secret is restricted to other owners after a task was created, the task fails when it runs."""
    target = {"url": receiver.url, "method": "POST", "auth": bearer()}
    task_id = Gateway().create({"type": "report", "target": {"kind": "http", **target}})["id"]
    one: dict[str, Any] = {"arn": SENT_SECRET, "hosts": ["127.0.0.1"], "owners": ["somebody"]}
    stack.environ[Variable.HTTP_SECRETS] = json.dumps({"crm": one})
    assert stack.work(Priority.NORMAL) == []
    task = composed(CoreServices).stores.tasks.read(TaskId.parse(task_id))
    assert task is not None
    assert task.error is not None
    assert (task.state, task.error.type) == (State.FAILED, "SecretRefused")
    assert receiver.requests == []
