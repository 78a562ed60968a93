"""Tests of queries to a task's endpoint, over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.targets import http_target
from duetime.adapters.targets.http_messages import Call
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway
from tests.functions.receivers import Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP endpoint on the loopback address."""
    with receiving() as started:
        yield started


@pytest.fixture
def api(environ: dict[str, str], compose: Callable[[], None]) -> Gateway:
    """A gateway to a deployment that may call the loopback address."""
    environ[Variable.HTTP_ALLOW] = "127.0.0.1"
    compose()
    return Gateway()


def asked_of(api: Gateway, url: str, queries: list[str]) -> str:
    """Create a task with these queries, and return the path for querying its target."""
    target = {"kind": "http", "url": url, "queries": queries}
    task = api.create({"type": "report", "delay_seconds": 3600, "target": target})
    assert task["target"]["queries"] == queries
    return f"/v1/tasks/{task['id']}/query"


def test_a_query_passes_on_the_endpoints_status_and_json(api: Gateway, receiver: Receiver) -> None:
    """A query sends `GET url?action=status` with the task id, and passes on the response's status and JSON."""
    receiver.answers["GET", "/job?team=dba&action=status"] = (200, b'{"rows": [1, 2.50]}')
    path = asked_of(api, f"{receiver.url}/job?team=dba", ["status", "summary"])
    answer = api.send("POST", path, {"action": "status"})
    assert (answer.status, answer.body) == (200, {"status": 200, "body": {"rows": [1, 2.5]}})
    assert answer.headers["Cache-Control"] == "no-store"
    (request,) = receiver.requests
    assert request.headers["Duetime-Task"] == path.split("/")[3]


@pytest.mark.parametrize(
    ("status", "text", "body"),
    [
        (404, b"", None),
        (500, b"went wrong", "went wrong"),
        (302, b"", None),
        (200, b"NaN", "NaN"),
        (200, b"\xff", "\ufffd"),
    ],
)
def test_errors_redirects_and_other_responses_are_passed_on(
    api: Gateway, receiver: Receiver, status: int, text: bytes, body: object
) -> None:
    """Error responses, redirects and responses that are not JSON are passed on, too."""
    receiver.answers["GET", "/?action=progress"] = (status, text)
    answer = api.send("POST", asked_of(api, f"{receiver.url}/", ["progress"]), {"action": "progress"})
    assert (answer.status, answer.body) == (200, {"status": status, "body": body})


def test_two_queries_have_different_ids(api: Gateway, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queries have different ids, because a receiver that deduplicates by id would not answer the second query."""
    ids: list[str] = []

    def kept(**fields: Any) -> Call:  # noqa: ANN401 - fields of Call
        ids.append(fields["id"])
        return Call(**fields)

    monkeypatch.setattr(http_target, "Call", kept)
    path = asked_of(api, receiver.url, ["status"])
    for _ in range(2):
        assert api.send("POST", path, {"action": "status"}).status == 200
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    "target", [{"kind": "handler"}, {"kind": "http", "url": "https://example.org/", "queries": ["progress"]}]
)
def test_a_query_that_the_target_does_not_list_is_a_conflict(api: Gateway, target: dict[str, object]) -> None:
    """A query that the target does not list is a conflict that names the query. Handlers have no queries."""
    task = api.create({"type": "report", "delay_seconds": 3600, "target": target})
    answer = api.send("POST", f"/v1/tasks/{task['id']}/query", {"action": "status"})
    assert (answer.status, answer.problem["code"]) == (409, "query_not_offered")
    assert "'status'" in answer.problem["detail"]


@pytest.mark.parametrize(
    "body", [{}, {"action": "run"}, {"action": ""}, {"action": None}, {"action": "status", "x": 1}]
)
def test_an_error_for_an_invalid_query_names_the_field(
    api: Gateway, receiver: Receiver, body: dict[str, object]
) -> None:
    """A query with an invalid action or an unknown field is refused, and the endpoint is not called."""
    answer = api.send("POST", asked_of(api, receiver.url, ["status"]), body)
    assert (answer.status, answer.problem["code"]) == (422, "fields_invalid")
    assert list(answer.faults) == ["x" if "x" in body else "action"]
    assert receiver.requests == []


def test_a_query_for_another_owners_task_returns_404(api: Gateway, receiver: Receiver) -> None:
    """A query for another owner's task returns 404, and the endpoint is not called."""
    path = asked_of(api, receiver.url, ["status"])
    answer = api.send("POST", path, {"action": "status"}, headers={"X-Duetime-Owner": "mallory"})
    assert (answer.status, answer.problem["code"]) == (404, "task_not_found")
    assert receiver.requests == []


def test_a_query_returns_502_if_nothing_listens_at_the_endpoint(api: Gateway) -> None:
    """If no server listens at the endpoint's address, a query returns 502 with an error code."""
    answer = api.send("POST", asked_of(api, "http://127.0.0.1:1/", ["status"]), {"action": "status"})
    assert (answer.status, answer.problem["code"]) == (502, "target_unreachable")


def test_a_query_with_a_response_that_is_too_large_returns_502(api: Gateway, receiver: Receiver) -> None:
    """A query whose response is larger than 64 KB returns 502, and the response is not passed on."""
    receiver.answers["GET", "/?action=summary"] = (200, b"x" * 65_537)
    answer = api.send("POST", asked_of(api, f"{receiver.url}/", ["summary"]), {"action": "summary"})
    assert (answer.status, answer.problem["code"]) == (502, "target_unreachable")


def test_a_query_to_an_endpoint_that_does_not_answer_returns_504(
    api: Gateway, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query of an endpoint that does not answer in time returns 504 with its own code."""
    monkeypatch.setattr(http_target, "QUERY_TIMEOUT", 200)
    receiver.seconds = 5
    answer = api.send("POST", asked_of(api, receiver.url, ["status"]), {"action": "status"})
    assert (answer.status, answer.problem["code"]) == (504, "target_timeout")


def test_a_query_returns_503_if_the_signing_secret_cannot_be_read(
    environ: dict[str, str], compose: Callable[[], None], api: Gateway, receiver: Receiver
) -> None:
    """If the signing secret cannot be read, a query returns 503, and the endpoint is not called."""
    environ[Variable.SIGNING_SECRET] = "gone"
    compose()
    answer = api.send("POST", asked_of(api, receiver.url, ["status"]), {"action": "status"})
    assert (answer.status, answer.problem["code"]) == (503, "unavailable")
    assert receiver.requests == []
