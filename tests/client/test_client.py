"""Tests the client's request for each call, and how the client reads the response."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from ssl import CERT_REQUIRED
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client, InvalidRequest, NotJson, Task, TimeWithoutZone, UnexpectedResponse
from duetime_client.http import http_options
from tests.adapters.targets.peers import answering, peer
from tests.client.deployment import NOW, Answer, Deployment

if TYPE_CHECKING:
    from duetime_client import NewTask


@dataclass(frozen=True)
class Invoice:
    """An object that is passed where JSON is expected."""

    number: str


def test_create_sends_only_the_given_fields(client: Client, deployment: Deployment) -> None:
    """Omitted fields are not sent, but an explicit null payload is sent."""
    client.tasks.create("report", payload=None, delay_seconds=60, tags={"team": "dba"})
    assert deployment.received[0].document == {
        "type": "report",
        "payload": None,
        "delay_seconds": 60,
        "tags": {"team": "dba"},
    }


def test_a_due_time_is_the_same_instant_in_any_time_zone(client: Client, deployment: Deployment) -> None:
    """A time is sent with its offset and fraction of a second, and is read back as the same instant."""
    at = datetime(2026, 12, 1, 9, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=9)))
    task = client.tasks.create("report", due_at=at)
    assert deployment.received[0].document["due_at"] == "2026-12-01T09:00:00.250000+09:00"
    assert task.due_at == at


def test_a_due_time_without_a_time_zone_is_rejected(client: Client, deployment: Deployment) -> None:
    """A time without a time zone is ambiguous and is refused before anything is sent."""
    with pytest.raises(TimeWithoutZone):
        client.tasks.create("report", due_at=datetime(2026, 12, 1))  # noqa: DTZ001 - what the test is about
    assert deployment.received == []


def test_a_payload_with_nan_is_rejected_before_it_is_sent(client: Client, deployment: Deployment) -> None:
    """A payload with NaN, which is not valid JSON, is refused before anything is sent."""
    with pytest.raises(NotJson, match=r"payload\.rate: JSON has no NaN"):
        client.tasks.create("report", payload={"rate": float("nan")})
    assert deployment.received == []


def test_loopback_addresses_bypass_the_proxy(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy from the environment is not used for loopback addresses."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Client(deployment.url) as client:
        assert client.tasks.create("report").state == "scheduled"


def test_clients_share_certificates_and_load_them_only_for_tls() -> None:
    """Certificates, which are slow to read, are read once per process and not at all for the local stack."""
    first, second = (http_options("https://example.org", {}, 1)["verify"] for _ in range(2))
    assert first is second
    assert first.get_ca_certs()
    assert first.verify_mode is CERT_REQUIRED
    assert http_options("https://localhost", {}, 1)["verify"].get_ca_certs()
    unused = http_options("http://localhost:4566", {}, 1)["verify"]
    assert (unused.get_ca_certs(), unused.verify_mode) == ([], CERT_REQUIRED)


def test_each_create_call_uses_a_new_idempotency_key(client: Client, deployment: Deployment) -> None:
    """Two create calls use different idempotency keys and create two tasks."""
    first, second = client.tasks.create("report"), client.tasks.create("report")
    keys = [request.headers["Idempotency-Key"] for request in deployment.received]
    assert first.id != second.id
    assert len(set(keys)) == 2


def test_creating_a_task_twice_with_a_key_returns_one_task(client: Client) -> None:
    """Creating a task twice with the same key returns the same task."""
    ids = {client.tasks.create("report", idempotency_key="monthly").id for _ in range(2)}
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        (NOW, "datetime is not JSON; write value.isoformat()"),
        (NOW.date(), "date is not JSON; write value.isoformat()"),
        (timedelta(minutes=5), "timedelta is not JSON; write int(value.total_seconds())"),
        ({"secret-value"}, "set is not JSON; write sorted(value)"),
        (b"secret-value", "bytes is not JSON; write base64.b64encode(value).decode()"),
        (Decimal("1.5"), "Decimal is not JSON; write str(value)"),
        (MappingProxyType({"secret-value": 1}), "mappingproxy is not JSON; write dict(value)"),
        (Invoice("secret-value"), "Invoice is not JSON; write client.tasks.of(TaskType(..., Invoice)).create(value)"),
        (object(), "object is not JSON; write numbers, text, lists and dicts"),
        (float("nan"), "JSON has no NaN and no infinity"),
        ({("a", 1): "secret-value"}, "a key is not text but tuple"),
    ],
)
def test_the_error_for_a_non_json_value_suggests_a_replacement(
    client: Client, deployment: Deployment, value: object, instead: str
) -> None:
    """If a value is not JSON, nothing is sent; the error names the field and a replacement, but not the value."""
    with pytest.raises(NotJson) as caught:
        client.tasks.create("report", payload={"rows": [1, value]})
    assert str(caught.value).startswith(f"payload.rows.1: {instead}")
    assert "secret-value" not in str(caught.value)
    assert deployment.received == []


def test_non_json_values_in_options_and_batches_are_reported_with_the_field(
    client: Client, deployment: Deployment
) -> None:
    """Values that are not JSON are also found in options, in a list that contains itself, and in one of many tasks."""
    with pytest.raises(NotJson, match=r"^timeout_seconds: timedelta is not JSON; write int\(value.total_seconds"):
        client.tasks.create("report", timeout_seconds=timedelta(minutes=5))  # type: ignore[arg-type]  # the mistake
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotJson, match=r"^payload.0: contains itself"):
        client.tasks.create("report", payload=endless)
    with pytest.raises(NotJson, match=r"^tasks.1.payload: set is not JSON"):
        client.tasks.create_batch([{"type": "report"}, {"type": "report", "payload": {1}}])
    assert deployment.received == []


def test_a_filter_accepts_any_collection(client: Client, deployment: Deployment) -> None:
    """A filter accepts any collection of states, such as a set."""
    list(client.tasks.list(state={"failed"}))  # type: ignore[arg-type]  # a set, whose order is irrelevant
    assert "state=failed" in deployment.received[-1].target


def test_a_batch_returns_a_result_at_the_position_of_each_task(client: Client) -> None:
    """A refused task in a batch is an error at the task's position in the results, and the other tasks are created."""
    results = client.tasks.create_batch([{"type": "report"}, {"type": "refused"}, {"type": "report"}])
    assert [type(result) for result in results] == [Task, InvalidRequest, Task]


def test_a_long_batch_is_split_into_requests_of_a_hundred_tasks(client: Client, deployment: Deployment) -> None:
    """More tasks than one request allows are sent in several requests, each with a key derived from its position."""
    tasks: list[NewTask] = [{"type": "report", "name": str(number)} for number in range(250)]
    results = client.tasks.create_batch(tasks, idempotency_key="load")
    assert [task.name for task in results if isinstance(task, Task)] == [str(number) for number in range(250)]
    assert [len(request.document["tasks"]) for request in deployment.received] == [100, 100, 50]
    assert [request.headers["Idempotency-Key"] for request in deployment.received] == ["load-0", "load-100", "load-200"]


def test_a_batch_response_of_the_wrong_length_raises_an_error(client: Client, deployment: Deployment) -> None:
    """If the number of results differs from the number of tasks, the client raises an error."""
    deployment.scripted.append(Answer(200, {"results": []}))
    with pytest.raises(UnexpectedResponse):
        client.tasks.create_batch([{"type": "report"}])


def test_get_reads_a_task_with_its_version(client: Client) -> None:
    """A task that is read has the ETag that later updates need."""
    created = client.tasks.create("report", payload={"month": 11})
    task = client.tasks.get(created.id)
    assert (task.payload, task.state, task.etag) == ({"month": 11}, "scheduled", '"1"')


def test_an_unknown_field_of_a_task_is_kept(client: Client, deployment: Deployment) -> None:
    """A task with an unknown field can be read, and the task's document contains the field."""
    created = client.tasks.create("report")
    deployment.tasks[created.id]["color"] = "blue"
    assert client.tasks.get(created.id).document["color"] == "blue"


def test_an_id_is_always_one_segment_of_the_url(client: Client, deployment: Deployment) -> None:
    """An id with a slash or a question mark cannot change the address of a request."""
    deployment.tasks["a/b?c"] = {**client.tasks.create("report").document, "id": "a/b?c"}
    assert client.tasks.get("a/b?c").id == "a/b?c"
    assert deployment.received[-1].target == "/stage/v1/tasks/a%2Fb%3Fc"


def test_list_reads_every_page(client: Client, deployment: Deployment) -> None:
    """A list of five tasks on pages of two is read completely, with the API's page tokens."""
    created = [client.tasks.create("report").id for _ in range(5)]
    assert [task.id for task in client.tasks.list()] == created
    assert [request.query.get("next_token") for request in deployment.received[5:]] == [None, ["2"], ["4"]]


def test_list_fetches_pages_only_on_demand(client: Client, deployment: Deployment) -> None:
    """Taking one task from a list sends only one request."""
    for _ in range(5):
        client.tasks.create("report")
    next(client.tasks.list())
    assert len(deployment.received) == 6


def test_list_sends_its_filters_on_every_page(client: Client, deployment: Deployment) -> None:
    """Filters are sent in the API's form, and are sent again with each page's token."""
    for _ in range(3):
        client.tasks.create("report")
    due_after = datetime(2026, 11, 21, tzinfo=UTC)
    tags = {"team": "a b:c"}
    list(client.tasks.list(state="failed", tags=tags, due_after=due_after, ids=["x", "y"], order="desc", page_size=10))
    queries = [request.query for request in deployment.received[3:]]
    assert queries[0] == {
        "state": ["failed"],
        "tag": ["team:a b:c"],
        "due_after": ["2026-11-21T00:00:00+00:00"],
        "ids": ["x,y"],
        "order": ["desc"],
        "limit": ["10"],
    }
    assert queries[1] == {**queries[0], "next_token": ["2"]}
    # A space is always encoded as %20 and never as +, because a signature depends on the spelling.
    assert "tag=team%3Aa%20b%3Ac&" in deployment.received[3].target


def test_an_empty_page_with_a_token_does_not_end_the_list(client: Client, deployment: Deployment) -> None:
    """If a filter leaves a page of a list empty, the following pages are still read."""
    task = client.tasks.create("report")
    deployment.scripted.append(Answer(200, {"tasks": [], "next_token": "0"}))
    assert [found.id for found in client.tasks.list(state="failed")] == [task.id]


def test_an_update_sends_only_the_given_fields_and_the_version(client: Client, deployment: Deployment) -> None:
    """An update is a PATCH request with the given fields and an If-Match header."""
    task = client.tasks.create("report", payload=1)
    changed = client.tasks.update(task.id, if_match=task.etag, priority="high")
    request = deployment.received[-1]
    assert (request.method, request.document, request.headers["If-Match"]) == ("PATCH", {"priority": "high"}, '"1"')
    assert (changed.priority, changed.payload, changed.version) == ("high", 1, 2)


def test_cancel_returns_the_cancelled_task(client: Client) -> None:
    """Cancelling a task returns the cancelled task."""
    assert client.tasks.cancel(client.tasks.create("report").id).state == "cancelled"


def test_following_a_task_ends_at_its_final_state(client: Client, deployment: Deployment) -> None:
    """Following a task yields the task at each poll and stops at the first final state."""
    task = client.tasks.create("report")
    deployment.states.extend(["scheduled", "running", "rolling_back", "failed", "succeeded"])
    states = [seen.state for seen in client.tasks.follow(task.id)]
    assert states == ["scheduled", "running", "rolling_back", "failed"]


def test_following_polls_slowly_until_due_then_with_growing_pauses(
    client: Client, deployment: Deployment, waits: list[float]
) -> None:
    """A task that is not due yet is polled every five seconds; a task that is due is polled more often at first."""
    deployment.states.extend(["scheduled", "scheduled", "running", "running", "succeeded"])
    ahead, due = client.tasks.create("report", delay_seconds=60), client.tasks.create("report", due_at=NOW)
    looks = client.tasks.follow(ahead.id)
    next(looks)
    next(looks)
    list(client.tasks.follow(due.id))
    assert waits == pytest.approx([5.0, 0.2, 0.3])


@pytest.mark.parametrize(
    "document",
    [None, [], "task", {"id": "x"}, {"id": "x", "state": "scheduled", "type": "t", "created_at": "?", "due_at": "?"}],
)
def test_an_invalid_response_raises_unexpected_response(
    client: Client, deployment: Deployment, document: object
) -> None:
    """Every kind of invalid response raises the same documented error."""
    deployment.scripted.append(Answer(200, document))
    with pytest.raises(UnexpectedResponse):
        client.tasks.get("x")


def test_interim_responses_are_skipped() -> None:
    """A proxy may send interim responses, but the final response counts (Source: RFC 9110, 15.2)."""
    interim = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    final = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"leases":[]}'
    with peer(answering((interim + final).encode())) as proxy, Client(f"http://127.0.0.1:{proxy.port}") as client:
        assert client.leases.acquire(["report"]) == []
