from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.composition import Platform
from duetime.environment_variables import Variable
from duetime_local.emulator.lambda_warm_up import NOTHING
from functions.api.handler import handler
from tests.functions.api.gateway import Context, Gateway

if TYPE_CHECKING:
    from tests.fakes.session import FakeSession

GOOD = {"type": "report", "delay_seconds": 60}


@pytest.mark.parametrize(
    "path", ["/v1//", "/v1/task", "/v1/tasks//", "/v1/tasks/a/b", "/v2/tasks", "/", "/v1/tasks/ä/ö", "/v1/\x00"]
)
def test_an_unknown_path_returns_a_404_problem(api: Gateway, path: str) -> None:
    """A request to an unknown path returns a 404 problem."""
    answer = api.send("GET", path)
    assert (answer.status, answer.problem["code"]) == (404, "path_not_found")


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize("id_", ["\x00", "a\x00b", "\ufffd", "\U0001f600", "\\", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "日本"])
def test_an_invalid_task_id_returns_404(api: Gateway, method: str, id_: str) -> None:
    """A request for a task returns 404 for any string that cannot be a task id."""
    answer = api.send(method, f"/v1/tasks/{id_}", {"name": "x"} if method == "PATCH" else None)
    assert (answer.status, answer.problem["status"]) == (404, 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/tasks", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/v1/tasks", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX", "GET, HEAD, PATCH, DELETE, OPTIONS"),
        ("PUT", "/v1/tasks/batch", "POST, OPTIONS"),
        ("POST", "/v1/health", "GET, HEAD, OPTIONS"),
        ("TRACE", "/v1/openapi.json", "GET, HEAD, OPTIONS"),
        ("BREW", "/v1/tasks", "GET, HEAD, POST, OPTIONS"),
    ],
)
def test_an_unsupported_method_returns_405_with_the_supported_methods(
    api: Gateway, method: str, path: str, allowed: str
) -> None:
    """A method that a path does not support returns 405, and `Allow` lists the supported methods."""
    answer = api.send(method, path)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    assert answer.problem["code"] == "method_unsupported"


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "", "json"]
)
def test_a_body_whose_type_is_not_json_in_utf_8_returns_415(api: Gateway, media_type: str) -> None:
    """A body whose declared type is not JSON in UTF-8 returns 415."""
    answer = api.send("POST", "/v1/tasks", GOOD, {"Content-Type": media_type})
    assert (answer.status, answer.problem["code"]) == (415, "media_type_unsupported")
    assert api.listed() == []


@pytest.mark.parametrize(
    "media_type", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
def test_the_json_media_type_is_accepted_in_any_case_and_with_charset(api: Gateway, media_type: str) -> None:
    """The media type for JSON is accepted in any case and with `charset=utf-8`."""
    assert api.send("POST", "/v1/tasks", GOOD, {"Content-Type": media_type}).status == 201


def test_a_base64_body_is_decoded(api: Gateway) -> None:
    """A body that the gateway marks as Base64 is decoded, and a request whose body is wrongly marked returns 400."""
    encoded = base64.b64encode(json.dumps({**GOOD, "name": "Zürich"}, ensure_ascii=False).encode()).decode()
    assert api.send("POST", "/v1/tasks", raw=encoded, is_base64=True).body["name"] == "Zürich"
    for raw in ("{}", "%%%", encoded[:-3] + "ä", base64.b64encode(b'{"type": "\xff"}').decode()):
        answer = api.send("POST", "/v1/tasks", raw=raw, is_base64=True)
        assert (answer.status, answer.problem["code"], list(answer.faults)) == (400, "body_unreadable", ["body"])


BAD_BODIES: list[tuple[str | None, int, str]] = [
    (None, 400, "body"),
    ("", 400, "body"),
    ("{", 400, "body"),
    ("\x00", 400, "body"),
    ("[]", 422, "body"),
    ('"text"', 422, "body"),
    ("{}", 422, "type"),
    ('{"type": "a", "payload": ' + "[" * 100_000, 422, "payload"),
    ('{"type": "a", "payload": ' + '{"a":' * 100_000 + "1" + "}" * 100_001, 422, "payload"),
    ("[" * 100_000, 422, "body"),
    ('{"type": "a", "payload": {"n": ' + "9" * 5_000 + "}}", 422, "payload.n"),
    ('{"type": "a", "delay_seconds": ' + "9" * 5_000 + "}", 422, "delay_seconds"),
    ('{"type": "a", "payload": ' + "9" * 39 + "}", 422, "payload"),
    ('{"type": "a", "payload": [NaN]}', 422, "payload[0]"),
    ('{"type": "a", "delay_seconds": NaN}', 422, "delay_seconds"),
    ('{"type": "a", "delay_seconds": Infinity}', 422, "delay_seconds"),
    ('{"type": "a", "payload": 1e400}', 422, "payload"),
    ('{"type": "a", "delay_seconds": 1e400}', 422, "delay_seconds"),
    (r'{"type": "a\ud800"}', 422, "type"),
    (r'{"type": "a", "payload": {"x": "\udc00"}}', 422, "payload.x"),
    (r'{"type": "a", "payload": {"\ud800": 1}}', 422, r"payload.\ud800"),
    (r'{"type": "a", "\ud800": 1}', 422, r"\ud800"),
    ('{"type": "a", "payload": "\ud800"}', 422, "payload"),
    ('{"type": "a", "type": "a"}', 422, "type"),
    ('{"type": "' + "t" * 500_000 + '"}', 422, "type"),
    ('{"type": "a", "name": "' + "n" * 500_000 + '"}', 422, "name"),
    ('{"type": "a", "' + "k" * 500_000 + '": 1}', 422, "k" * 64 + "…"),
    (json.dumps({"type": "a", "payload": "x" * 1_048_576}), 422, "payload"),
    (json.dumps({"type": "a", "payload": "x" * 5_242_880}), 413, "body"),
    (r'{"type": "a", "name": "\u0000"}', 422, "name"),
    (r'{"type": "a", "tags": {"a": "\u0000"}}', 422, "tags.a"),
    ('{"type": "a", "target": {"kind": "http", "url": "http://a:b@example.org"}}', 422, "target.url"),
    ('{"type": "a", "lock": {"key": "x", "holder": 1}}', 422, "lock.holder"),
    ('{"type": "a", "__proto__": {}}', 422, "__proto__"),
]


@pytest.mark.parametrize(("raw", "status", "named"), BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_an_error_for_an_invalid_body_names_the_field_and_changes_nothing(
    api: Gateway, raw: str | None, status: int, named: str
) -> None:
    """An invalid body returns a 4xx error that names the field, and changes no task."""
    task = api.create({**GOOD, "name": "kept"})
    created = api.send("POST", "/v1/tasks", raw=raw)
    assert (created.status, list(created.faults)) == (status, [named])
    patch = raw.replace('"type": "a"', '"name": "n"').replace('"type"', '"name"') if raw else raw
    changed = api.send("PATCH", f"/v1/tasks/{task['id']}", raw=patch)
    assert 400 <= changed.status < 500
    assert changed.problem["errors"]
    batch = api.send("POST", "/v1/tasks/batch", raw='{"tasks": [' + (raw or "") + "]}")
    assert batch.status in (400, 413, 422) or batch.body["results"][0]["status"] == 422
    assert api.send("GET", f"/v1/tasks/{task['id']}").body == task
    assert api.listed() == [task["id"]]


@pytest.mark.parametrize(
    ("method", "query", "headers", "named"),
    [
        ("POST", "dry_run=true", {}, "dry_run"),
        ("POST", "", {"Idempotency-Key": "\x00"}, "Idempotency-Key"),
        ("POST", "", {"X-Duetime-Owner": "#"}, "X-Duetime-Owner"),
        ("GET", "limit=" + "9" * 5_000, {}, "limit"),
        ("GET", "next_token=" + "A" * 5_000, {}, "next_token"),
        ("GET", "ids=../../etc/passwd", {}, "ids"),
        ("GET", "state=%ed%a0%80", {}, "query"),
        ("GET", "&".join(f"p{number}=1" for number in range(1_000)), {}, "query"),
    ],
)
def test_an_invalid_query_parameter_or_header_is_named_in_the_error(
    api: Gateway, method: str, query: str, headers: dict[str, str], named: str
) -> None:
    """An invalid query parameter or header returns a 400 error that names the parameter or header."""
    answer = api.send(method, "/v1/tasks", GOOD if method == "POST" else None, headers, query=query)
    assert (answer.status, list(answer.faults)) == (400, [named])
    assert api.listed() == []


@pytest.mark.parametrize(("method", "header"), [("GET", "If-None-Match"), ("PATCH", "If-Match")])
def test_an_unreadable_precondition_returns_400(api: Gateway, method: str, header: str) -> None:
    """A request with an unreadable precondition returns 400, and the precondition is not treated as met."""
    task = api.create(GOOD)
    for value in ("1", '"1', "\x00", '"1" or "2"', '"' + "1" * 5_000 + '"'):
        body = {"name": "x"} if method == "PATCH" else None
        answer = api.send(method, f"/v1/tasks/{task['id']}", body, {header: value})
        assert (answer.status, list(answer.faults)) == (400, [header])
    assert api.send("GET", f"/v1/tasks/{task['id']}").body == task


def test_the_health_check_needs_no_store(api: Gateway, environ: dict[str, str]) -> None:
    """The health check needs neither an owner nor the table."""
    environ.clear()
    answer = api.send("GET", "/v1/health")
    assert (answer.status, answer.body["status"]) == (200, "ok")
    assert answer.body["version"]


def test_the_document_is_served(api: Gateway) -> None:
    """The OpenAPI document is returned as JSON and describes the document's own path."""
    answer = api.send("GET", "/v1/openapi.json")
    assert (answer.status, answer.body["openapi"]) == (200, "3.1.0")
    assert "/v1/openapi.json" in answer.body["paths"]


def test_an_unforeseen_error_returns_a_500_problem_without_details(
    api: Gateway, environ: dict[str, str], session: FakeSession, caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen error returns a problem with status 500 and without details, and only the log has the reason."""
    session.client("dynamodb").delete_table(TableName=environ[Variable.TABLE])
    answer = api.send("POST", "/v1/tasks", GOOD)
    assert (answer.status, answer.problem["code"], answer.faults) == (500, "internal", {})
    assert "Table" not in answer.text
    assert "Traceback" not in answer.text
    assert "ResourceNotFoundException" in vars(caplog.records[-1])["error"]


def test_an_unreachable_store_returns_a_503_problem_with_retry_after(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store cannot be reached, the response is a problem with status 503 and the header `Retry-After`."""
    unreachable = "http://127.0.0.1:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL", unreachable)
    session = boto3.Session("testing", "testing", region_name="us-east-1")
    composition.use(Platform(environ=environ, clients=Clients(session)))
    answer = Gateway().send("POST", "/v1/tasks", GOOD)
    assert (answer.status, answer.problem["code"], answer.headers["Retry-After"]) == (503, "unavailable", "1")
    assert unreachable not in answer.text
    composition.use(None)


def test_the_document_is_not_built_when_the_function_starts() -> None:
    """A cold start loads neither the OpenAPI document nor the models' schemas."""
    late = "'openapi' in m"
    script = f"import sys, functions.api.handler; print([m for m in sys.modules if {late}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    loaded: list[Any] = json.loads(done.stdout.replace("'", '"'))
    assert not [
        name for name in loaded if name.startswith(("duetime.contract.", "aws_lambda_powertools.event_handler"))
    ]


@pytest.mark.usefixtures("api")
def test_the_start_event_of_the_local_stack_returns_204() -> None:
    """The event that the local stack sends at startup returns 204.

    Otherwise, `duetime doctor` would report an error.
    """
    assert handler(json.loads(NOTHING), Context())["statusCode"] == 204  # type: ignore[arg-type] # as in `Gateway`
