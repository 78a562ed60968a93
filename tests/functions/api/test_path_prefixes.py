"""Tests of the API at the root of a host, and behind a path prefix that is unknown to the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import pytest

from duetime.contract.http.operation import reference_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functions.api.gateway import Answer, Gateway

HOST = "https://api.example.org"
LATER = {"type": "report", "delay_seconds": 600}
NODES = {"a": {"type": "report"}}
CRON = {"cron": "30 1 * * *", "task": {"type": "report", "target": {"kind": "handler"}}}
DAY = {"scheduled_after": "2026-11-20T00:00:00Z", "scheduled_before": "2026-11-21T00:00:00Z"}
CREATIONS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("POST", "/v1/tasks", LATER),
    ("POST", "/v1/tasks/", LATER),
    ("POST", "/v1/tasks", LATER),
    ("POST", "/v1/topologies", {"nodes": NODES}),
    ("PUT", "/v1/topologies/definitions/weekly:close", {"nodes": NODES}),
    ("POST", "/v1/topologies/definitions/weekly:close/runs", {}),
    ("POST", "/v1/schedules", {"name": "nightly:close", **CRON}),
    ("POST", "/v1/schedules/nightly:close/run", None),
    ("POST", "/v1/schedules/nightly:close/backfills", DAY),
    ("PUT", "/v1/calendars/uk:bank", {"dates": ["2026-12-25"]}),
    ("POST", "/v1/tasks/cancel", {"filter": {"type": "report", "state": "scheduled"}, "per_second": 1}),
)
"""All requests whose response has a `Location`, ordered so that each request finds the resources that it needs."""
# The function sees the prefix of a stage or of a custom domain's mapping in the path. It does not see a prefix that a
# proxy or the local stack removes.
SEEN = ("", "/prod", "/duetime", "/v1", "/teams/data/duetime")


def referred(base: str, reference: str, prefix: str) -> str:
    """The path to which a reference in a response leads a client; asserts that the path is behind the same prefix."""
    address = urlsplit(urljoin(base, reference))
    assert f"{address.scheme}://{address.netloc}" == HOST
    assert address.path.startswith(f"{prefix}/v1/"), address.path
    return address.path


def created(api: Gateway, prefix: str) -> Iterator[tuple[str, Answer]]:
    """The path and the response of each request that creates something."""
    for method, path, body in CREATIONS:
        answer = api.send(method, f"{prefix}{path}", body)
        assert answer.status in (201, 202), (path, answer.text)
        yield path, answer


@pytest.mark.parametrize("prefix", SEEN)
def test_a_location_resolves_to_the_new_resource_behind_any_prefix(api: Gateway, prefix: str) -> None:
    """A client that resolves `Location` against its request's URL can read the new resource, behind any prefix."""
    for path, answer in created(api, prefix):
        found = api.send("GET", referred(f"{HOST}{prefix}{path}", answer.headers["Location"], prefix))
        assert found.status == 200, (path, answer.headers["Location"])
        assert all(found.body[name] == answer.body[name] for name in {"id", "name"} & answer.body.keys())


@pytest.mark.parametrize("hidden", ["/_aws/execute-api/duetime-api", "/base", "/v1"])
def test_a_location_keeps_a_prefix_that_a_proxy_removes(api: Gateway, hidden: str) -> None:
    """If a proxy removes the prefix before the function, the resolved `Location` still has the prefix."""
    for path, answer in created(api, ""):
        address = referred(f"{HOST}{hidden}{path}", answer.headers["Location"], hidden)
        assert api.send("GET", address.removeprefix(hidden)).status == 200


@pytest.mark.parametrize("prefix", SEEN)
@pytest.mark.parametrize("index", ["/v1", "/v1/"])
def test_the_links_of_the_index_resolve_behind_any_prefix(api: Gateway, prefix: str, index: str) -> None:
    """The links of `GET /v1` lead to the OpenAPI document and the health check, behind any prefix."""
    links: dict[str, Any] = api.send("GET", f"{prefix}{index}").body["links"]
    for link in links.values():
        assert api.send("GET", referred(f"{HOST}{prefix}{index}", link, prefix)).status == 200


@pytest.mark.parametrize("prefix", SEEN)
def test_the_server_in_the_document_is_the_base_of_all_its_paths(api: Gateway, prefix: str) -> None:
    """The server in the OpenAPI document, resolved against the document's own URL, is the base of all its paths."""
    (server,) = api.send("GET", f"{prefix}/v1/openapi.json").body["servers"]
    assert urljoin(f"{HOST}{prefix}/v1/openapi.json", server["url"]).rstrip("/") == f"{HOST}{prefix}"


@pytest.mark.parametrize(
    ("path", "request_path", "reference"),
    [
        ("/v1/tasks/T", "/v1/tasks", "tasks/T"),
        ("/v1/tasks/T", "/v1/tasks/", "T"),
        ("/v1/tasks/T", "/prod/v1/tasks", "tasks/T"),
        ("/v1/tasks/T", "/v1/schedules/nightly/run", "../../tasks/T"),
        ("/v1/bulk-operations/B", "/v1/tasks/cancel", "../bulk-operations/B"),
        ("/v1/calendars/a:b", "/v1/calendars/a:b", "./a:b"),
        ("/v1/health", "/v1", "v1/health"),
        ("/v1/health", "/v1/", "health"),
        ("/v1", "/v1/health", "../v1"),
    ],
)
def test_a_reference_is_relative_to_the_request(path: str, request_path: str, reference: str) -> None:
    """A relative reference leads from one path to another path, even if its first segment has a colon like a scheme."""
    assert reference_to(path, request_path) == reference
    assert urljoin(f"{HOST}/p{request_path.removeprefix('/prod')}", reference) == f"{HOST}/p{path}"


def test_a_path_with_an_unknown_or_missing_version_returns_404(api: Gateway) -> None:
    """A path with an unknown version, or without a version, returns 404."""
    for path in ("/prod/v1x/tasks", "/prod/v2/tasks", "/v1/v2/tasks", "/prod/tasks"):
        assert api.send("GET", path).problem["code"] == "path_not_found"
