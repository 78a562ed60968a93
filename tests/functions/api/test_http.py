"""Tests of HTTP details that integrators expect: methods, paths, headers, and preconditions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest

from duetime.contract.http.operation import IF_MATCH, KEY
from duetime.contract.openapi.document import OPERATIONS
from duetime.domain.tasks.attempt_results import Succeeded
from duetime.environment_variables import Variable
from tests.functions.api.world import closed_by_a_worker, ended_by_a_worker

if TYPE_CHECKING:
    from duetime.contract.http.operation import Operation
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

GOOD = {"type": "report", "delay_seconds": 60}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
VALUES = {
    "key_id": "0" * 20,
    "link_id": "0" * 20,
    "token": "dtl",
    "task_id": "01M7XZ8CGJ0013P2ZBN3YDT3DX",
    "topology_id": "01M7XZ8CGJ0013P2ZBN3YDT3DX",
    "operation_id": "01M7XZ8CGJ0013P2ZBN3YDT3DX",
    "backfill_id": "01M7XZ8CGJ0013P2ZBN3YDT3DX",
    "group_id": "group",
    "lease_id": "lease",
    "key": "key",
    "name": "name",
    "scope": "type",
    "owner": "ann",
    "step": "step",
}


def changing(header: str) -> list[Operation]:
    """The operations that change something and do not support this header."""
    return [
        one
        for one in OPERATIONS
        if one.method != "GET" and not one.is_safe and header not in [taken.name for taken in one.headers]
    ]


def test_head_returns_the_status_and_headers_of_get_without_a_body(api: Gateway) -> None:
    """HEAD returns the same status and headers as GET, and no body."""
    task = api.create(GOOD)
    for path in ("/v1", "/v1/health", "/v1/openapi.json", "/v1/tasks", f"/v1/tasks/{task['id']}"):
        got, head = api.send("GET", path), api.send("HEAD", path)
        assert (head.status, head.text) == (200, "")
        assert head.headers.keys() == got.headers.keys()
        assert head.headers.get("ETag") == got.headers.get("ETag")
    missing = api.send("HEAD", "/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX")
    assert (missing.status, missing.text) == (404, "")


def test_head_returns_405_for_a_path_without_get(api: Gateway) -> None:
    """HEAD returns 405 for a path that supports only POST."""
    answer = api.send("HEAD", "/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX/pause")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST, OPTIONS")


def test_an_error_for_an_unsupported_method_lists_the_supported_methods(api: Gateway) -> None:
    """An error for an unsupported method lists the supported methods in a sentence."""
    answer = api.send("PUT", "/v1/schedules/nightly")
    assert answer.problem["detail"] == "this path takes GET, PATCH and DELETE"
    assert answer.headers["Allow"] == "GET, HEAD, PATCH, DELETE, OPTIONS"


def test_options_lists_the_methods_of_a_path(api: Gateway, environ: dict[str, str]) -> None:
    """OPTIONS needs no credentials, because browsers send it first, and lists a path's methods without a body."""
    environ[Variable.AUTHENTICATION] = "jwt"
    assert api.send("GET", "/v1/tasks").status == 401
    answer = api.send("OPTIONS", "/v1/tasks")
    assert (answer.status, answer.text, answer.headers["Allow"]) == (204, "", "GET, HEAD, POST, OPTIONS")
    assert api.send("OPTIONS", "/v1/nothing").status == 404


def test_ratelimit_policy_shows_the_gateways_rate(api: Gateway, environ: dict[str, str]) -> None:
    """If the gateway's rate is known, `RateLimit-Policy` shows the requests per second as in the IETF draft."""
    assert "RateLimit-Policy" not in api.send("GET", "/v1/tasks").headers
    environ[Variable.REQUESTS_PER_SECOND] = "500"
    assert api.send("GET", "/v1/tasks").headers["RateLimit-Policy"] == '"stage";q=500;w=1'


def test_a_path_may_end_with_one_slash(api: Gateway) -> None:
    """A path may end with one slash, but not with two slashes."""
    created = api.send("POST", "/v1/tasks/", GOOD)
    assert created.status == 201
    assert api.send("GET", f"/v1/tasks/{created.body['id']}/").body == created.body
    assert api.send("GET", "/v1/tasks//").status == 404


def test_the_version_path_links_to_the_description_and_the_health_check(api: Gateway) -> None:
    """`GET /v1` links to the API's description and health check."""
    for path in ("/v1", "/v1/"):
        answer = api.send("GET", path)
        assert answer.status == 200
        for link in (answer.body["links"]["openapi"], answer.body["links"]["health"]):
            assert api.send("GET", urljoin(path, link)).status == 200
        assert answer.body["documentation"].startswith("docs/reference/api.md")


def test_an_error_for_an_unknown_path_names_the_version_path(api: Gateway) -> None:
    """An error for an unknown path names `GET /v1`."""
    assert "GET /v1" in api.send("GET", "/v1/nothing").problem["detail"]


def test_task_ids_in_paths_are_case_insensitive(api: Gateway) -> None:
    """Task ids in paths are case-insensitive."""
    task = api.create(GOOD)
    path = f"/v1/tasks/{task['id'].lower()}"
    assert api.send("GET", path).body == task
    assert api.send("POST", f"{path}/pause").body["state"] == "paused"


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "If-Unmodified-Since", "Idempotency-Key"])
def test_a_precondition_that_an_operation_does_not_support_is_rejected(api: Gateway, name: str) -> None:
    """Operations that change something refuse, by name, preconditions and idempotency keys that they do not support."""
    for operation in changing(name):
        path = operation.path.format(**VALUES)
        answer = api.send(operation.method, path, {}, {name: '"7"'})
        assert (answer.status, list(answer.faults)) == (400, [name]), operation.id
        assert "not" in answer.faults[name]


def test_reads_accept_preconditions_that_have_no_effect(api: Gateway) -> None:
    """Reads, and queries by POST, accept preconditions, which have no effect."""
    ignored = {"If-Match": '"7"', "Idempotency-Key": "k"}
    assert api.send("GET", "/v1/tasks", headers=ignored).status == 200
    assert api.send("POST", "/v1/schedules/preview", {"cron": "0 * * * *"}, ignored).status == 200
    task = api.create(GOOD)
    asked = api.send("POST", f"/v1/tasks/{task['id']}/query", {"action": "progress"}, ignored)
    assert (asked.status, asked.problem["code"]) == (409, "query_not_offered")


def test_each_header_is_supported_by_at_least_one_operation() -> None:
    """At least one operation supports each of these headers, so that the tests for supported headers have cases."""
    assert any(IF_MATCH in one.headers for one in OPERATIONS)
    assert any(KEY in one.headers for one in OPERATIONS)


def test_a_repeated_creation_has_the_header_idempotent_replayed(api: Gateway) -> None:
    """Only the response to a repeated creation has the header `Idempotent-Replayed`."""
    key = {"Idempotency-Key": "order-4711"}
    first, again = api.send("POST", "/v1/tasks", GOOD, key), api.send("POST", "/v1/tasks", GOOD, key)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in api.send("POST", "/v1/tasks", GOOD).headers


def test_a_batch_is_marked_as_replayed_only_if_all_tasks_existed(api: Gateway) -> None:
    """The response to a batch has `Idempotent-Replayed` only if all tasks of the batch already existed."""
    key = {"Idempotency-Key": "order-4711"}
    sent = [
        api.send("POST", "/v1/tasks/batch", {"tasks": tasks}, key)
        for tasks in ([GOOD], [GOOD], [GOOD, GOOD], [GOOD, GOOD], [{"type": 5}])
    ]
    assert ["Idempotent-Replayed" in answer.headers for answer in sent] == [False, True, False, True, False]


def test_every_operation_with_an_idempotency_key_marks_replayed_responses(api: Gateway) -> None:
    """For each operation with an idempotency key, a repeat returns the first response and `Idempotent-Replayed`."""
    of_none = {"filter": {"type": "none"}}
    by_tag = {"filter": {"tags": {"a": "b"}}}
    period = {"scheduled_after": "2026-11-01T00:00:00Z", "scheduled_before": "2026-11-01T02:00:00Z"}
    bodies: dict[str, dict[str, Any] | None] = {
        "/v1/tasks": GOOD,
        "/v1/tasks/batch": {"tasks": [GOOD]},
        "/v1/tasks/cancel": of_none,
        "/v1/tasks/update": {**of_none, "update": {"name": "x"}},
        "/v1/tasks/retry": of_none,
        "/v1/tasks/delete": of_none,
        "/v1/topologies": {"nodes": {"a": {"type": "report"}}},
        "/v1/schedules": {"name": "nightly", "cron": "0 * * * *", "task": {"type": "report"}},
        "/v1/topologies/definitions/{name}/runs": {},
        "/v1/schedules/{name}/run": None,
        "/v1/groups/{group_id}/cancel": None,
        "/v1/groups/{group_id}/retry": None,
        "/v1/schedules/pause": by_tag,
        "/v1/schedules/resume": by_tag,
        "/v1/schedules/{name}/backfills": period,
        "/v1/signals": {"name": "order.paid"},
    }
    assert set(bodies) == {one.path for one in OPERATIONS if KEY in one.headers}
    api.send("PUT", "/v1/groups/group", {})
    api.send("PUT", "/v1/topologies/definitions/nightly", {"nodes": {"a": {"type": "report"}}})
    for path, body in bodies.items():
        sent = [
            api.send("POST", path.format(name="nightly", group_id="group"), body, {"Idempotency-Key": path})
            for _ in "12"
        ]
        assert sent[0].status < 300, sent[0].text
        assert (sent[1].status, sent[1].body) == (sent[0].status, sent[0].body), path
        assert [answer.headers.get("Idempotent-Replayed") for answer in sent] == [None, "true"], path


def test_every_response_has_a_request_id(api: Gateway) -> None:
    """Every response has a `Request-Id`, and a problem's `instance` ends with this id."""
    good, bad = api.send("GET", "/v1/health"), api.send("GET", "/v1/nothing")
    assert good.headers["Request-Id"].startswith("request-")
    assert bad.problem["instance"] == f"urn:duetime:request:{bad.headers['Request-Id']}"
    assert good.headers["Request-Id"] != bad.headers["Request-Id"]


def test_a_valid_traceparent_is_returned_in_the_response(api: Gateway) -> None:
    """A valid `traceparent` is returned in the response, and an invalid `traceparent` is omitted."""
    assert api.send("GET", "/v1/health", headers={"traceparent": TRACE}).headers["traceparent"] == TRACE
    for value in ("", "00-abc", TRACE + "\r\nSet-Cookie: a=b", TRACE.upper()):
        assert "traceparent" not in api.send("GET", "/v1/health", headers={"traceparent": value}).headers


def test_a_202_response_has_retry_after(api: Gateway) -> None:
    """A response with status 202 has the header `Retry-After`."""
    answer = api.send("POST", "/v1/tasks", GOOD, query="wait_seconds=1")
    assert (answer.status, answer.headers["Retry-After"]) == (202, "2")
    assert "Retry-After" not in api.send("POST", "/v1/tasks", GOOD).headers


def test_a_read_of_an_open_task_has_retry_after(api: Gateway, clock: StandingClock) -> None:
    """The response to a read of an open task has `Retry-After`, even with status 304.

    For several tasks, the header has the earliest time; for ended tasks, the header is omitted.
    """
    soon, late = (api.create({"type": "report", "delay_seconds": delay})["id"] for delay in (7.2, 3600))
    path, both = f"/v1/tasks/{soon}", f"ids={late},{soon}"
    read = api.send("GET", path)
    assert read.headers["Retry-After"] == "8"
    assert api.send("GET", path, headers={"If-None-Match": read.headers["ETag"]}).headers["Retry-After"] == "8"
    assert api.send("GET", f"/v1/tasks/{late}").headers["Retry-After"] == "30"
    assert api.send("GET", "/v1/tasks", query=both).headers["Retry-After"] == "8"
    clock.at += 7_200
    ended_by_a_worker(soon, clock, Succeeded(b"1"))
    assert "Retry-After" not in api.send("GET", path).headers
    assert api.send("GET", "/v1/tasks", query=both).headers["Retry-After"] == "30"
    assert "Retry-After" not in api.send("GET", "/v1/tasks", query=f"ids={soon}").headers
    assert "Retry-After" not in api.send("GET", "/v1/tasks").headers


def test_caches_must_revalidate_an_ended_task(api: Gateway, clock: StandingClock) -> None:
    """Caches must revalidate an ended task, so that a read after a retry is never stale."""
    task = api.create({"type": "report"})
    closed_by_a_worker(ended_by_a_worker(task["id"], clock, Succeeded(b"1")), clock)
    path = f"/v1/tasks/{task['id']}"
    read = api.send("GET", path)
    assert read.headers["Cache-Control"] == "private, no-cache"
    again = api.send("GET", path, headers={"If-None-Match": read.headers["ETag"]})
    assert (again.status, again.text, again.headers["Cache-Control"]) == (304, "", "private, no-cache")


def test_a_get_of_the_document_with_its_current_etag_returns_304(api: Gateway) -> None:
    """A GET of the OpenAPI document with its current ETag returns 304."""
    read = api.send("GET", "/v1/openapi.json")
    etag = read.headers["ETag"]
    for known in (etag, f'"x", {etag}', f"W/{etag}", "*"):
        again = api.send("GET", "/v1/openapi.json", headers={"If-None-Match": known})
        assert (again.status, again.text, again.headers["ETag"]) == (304, "", etag)
    assert api.send("GET", "/v1/openapi.json", headers={"If-None-Match": '"x"'}).status == 200
    malformed = api.send("GET", "/v1/openapi.json", headers={"If-None-Match": "x"})
    assert (malformed.status, list(malformed.faults)) == (400, ["If-None-Match"])


def test_each_fault_of_a_problem_has_a_field_reason_and_code(api: Gateway) -> None:
    """Each fault in a problem has a field, a reason and a code."""
    answer = api.send("POST", "/v1/tasks", {"delay_seconds": "5", "color": 1})
    assert json.loads(answer.text)["errors"] == [
        {"field": "delay_seconds", "reason": "should be a number, not text", "code": "wrong_type"},
        {"field": "type", "reason": "is required", "code": "required"},
        {"field": "color", "reason": "is not a known field", "code": "unknown_field"},
    ]
