"""What an integrator tries in the first hour, and that each answer helps to go on."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.functions.api.gateway import Gateway

TASKS = "/v1/tasks"
ID = "{id}"
"""Stands for the id of a task that exists."""
GOOD: Mapping[str, object] = {"type": "report", "delay_seconds": 60}


@dataclass(frozen=True)
class Tried:
    """A request, and what its answer must say."""

    method: str
    path: str
    status: int
    says: str = ""
    body: object = None
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | None = None
    is_base64: bool = False


def of(body: object, says: str, status: int = 422) -> Tried:
    """A creation by a body."""
    return Tried("POST", TASKS, status, says, body)


def typed(media_type: str, status: int, says: str = "") -> Tried:
    """A creation with a body that is declared so."""
    return Tried("POST", TASKS, status, says, GOOD, headers={"Content-Type": media_type})


def listing(query: str, says: str, status: int = 400) -> Tried:
    """A list by a query."""
    return Tried("GET", TASKS, status, says, query=query)


def raw(text: str, says: str, status: int = 400) -> Tried:
    """A creation by a text."""
    return Tried("POST", TASKS, status, says, raw=text)


FIRST_HOUR: Mapping[str, Tried] = {
    "the version": Tried("GET", "/v1", 200, "/v1/openapi.json"),
    "a path that is not there": Tried("GET", "/v1/docs", 404, "GET /v1"),
    "a slash too many": Tried("GET", "/v1/tasks/", 200),
    "a slash behind an id": Tried("GET", f"{TASKS}/{ID}/", 200),
    "a link checker": Tried("HEAD", "/v1/health", 200),
    "HEAD of a task": Tried("HEAD", f"{TASKS}/{ID}", 200),
    "curl -d without a type": typed("application/x-www-form-urlencoded", 415, "application/json"),
    "charset=utf-8": typed("application/json; charset=utf-8", 201),
    "another charset": typed("application/json; charset=iso-8859-1", 415, "charset=iso-8859-1"),
    "a parameter of OData": typed("application/json;odata.metadata=minimal", 415, "odata.metadata=minimal"),
    "a vendor's type": typed("application/vnd.api+json", 415, "application/json"),
    "any answer": Tried("GET", TASKS, 200, headers={"Accept": "application/xml"}),
    "gzip that says so": Tried(
        "POST",
        TASKS,
        201,
        headers={"Content-Encoding": "gzip"},
        raw=base64.b64encode(gzip.compress(json.dumps(GOOD).encode())).decode(),
        is_base64=True,
    ),
    "gzip that does not say so": Tried(
        "POST",
        TASKS,
        400,
        "Content-Encoding: gzip",
        raw=base64.b64encode(gzip.compress(b"{}")).decode(),
        is_base64=True,
    ),
    "brotli": Tried("POST", TASKS, 415, "gzip", GOOD, headers={"Content-Encoding": "br"}),
    "no body": raw("", "is empty"),
    "a trailing comma": raw('{"type": "a",}', "line 1, column"),
    "single quotes": raw("{'type': 'a'}", "line 1, column 2"),
    "a key twice": raw('{"type": "a", "type": "b"}', "appears more than once", 422),
    "a byte order mark": raw('\ufeff{"type": "a"}', "byte order mark"),
    "Latin-1": Tried("POST", TASKS, 400, "is not UTF-8", raw='{"type": "caf\ufffd"}', headers={"Content-Length": "16"}),
    "an array": of([], "should be an object, not a list"),
    "an id in lower case": Tried("GET", f"{TASKS}/{ID}", 200),
    "PUT of a task": Tried("PUT", f"{TASKS}/{ID}", 405, "this path takes GET, PATCH and DELETE", {}),
    "JSON Patch": Tried(
        "PATCH", f"{TASKS}/{ID}", 415, "merge-patch", [], headers={"Content-Type": "application/json-patch+json"}
    ),
    "state[]": listing("state[]=failed", "did you mean 'state'?"),
    "a parameter twice": listing("limit=1&limit=2", "takes one value"),
    "status": listing("status=failed", "did you mean 'state'?"),
    "page": listing("page=2", "did you mean 'next_token'?"),
    "sort": listing("sort=-created_at", "did you mean 'order'?"),
    "page size": listing("per_page=10", "did you mean 'limit'?"),
    "a cache buster": listing("_=1", "is not a known parameter"),
    "a limit of 1000": listing("limit=1000", "1 to 100"),
    "a tag without a value": listing("tag=team", "separated by a colon"),
    "a token of another list": listing("next_token=AAAA", "was not handed out for this list"),
    "a precondition without quotes": Tried(
        "PATCH", f"{TASKS}/{ID}", 400, 'such as "7"', {"name": "n"}, headers={"If-Match": "1"}
    ),
    "a precondition where none is checked": Tried(
        "POST", TASKS, 400, "not be checked", GOOD, headers={"If-None-Match": "*"}
    ),
    "a key where none is checked": Tried(
        "POST", f"{TASKS}/{ID}/pause", 400, "not be checked", headers={"Idempotency-Key": "k"}
    ),
    "delay: 5m": of({"type": "a", "delay": "5m"}, "did you mean 'delay_seconds'?"),
    "camel case": of({"type": "a", "delaySeconds": 5}, "did you mean 'delay_seconds'?"),
    "max_retries": of({"type": "a", "max_retries": 5}, "did you mean 'retry.max_attempts'?"),
    "url": of({"type": "a", "url": "https://example.org"}, "did you mean 'target.url'?"),
    "a number as text": of({"type": "a", "delay_seconds": "5"}, "should be a number, not text"),
    "30.0": of({"type": "a", "timeout_seconds": 30.0}, "", 201),
    "too long a timeout": of({"type": "a", "timeout_seconds": 3600}, "less than or equal to 840"),
    "a target without a kind": of({"type": "a", "target": {"url": "https://example.org"}}, "is required"),
    "an unknown kind": of({"type": "a", "target": {"kind": "webhook"}}, "'http'"),
    "a batch of none": Tried("POST", f"{TASKS}/batch", 422, "at least 1 item, not 0", {"tasks": []}),
    "a batch of 101": Tried("POST", f"{TASKS}/batch", 422, "at most 100 items, not 101", {"tasks": [GOOD] * 101}),
    "DELETE with a body": Tried("DELETE", f"{TASKS}/{ID}", 422, "is not a known field", {"reason": "why"}),
    "a verb without a body": Tried("POST", f"{TASKS}/{ID}/pause", 200),
    "a verb with an empty body": Tried("POST", f"{TASKS}/{ID}/pause", 200, raw=""),
}
AUTHORS_WORDS = ("valid string", "after validation", "utf-8-sig", "Input", "valid integer", "Extra inputs")


@pytest.mark.parametrize("name", FIRST_HOUR)
def test_the_first_hour_is_answered_helpfully(api: Gateway, name: str) -> None:
    """The status is right, the answer says what to do, and in nobody's jargon."""
    tried = FIRST_HOUR[name]
    id_ = api.create(GOOD)["id"]
    path = tried.path.replace(ID, id_.lower() if "lower case" in name else id_)
    answer = api.send(
        tried.method,
        path,
        tried.body,
        tried.headers,
        query=tried.query,
        raw=tried.raw,
        is_base64=tried.is_base64,
    )
    assert answer.status == tried.status, answer.text
    said = answer.text if answer.status < 400 else json.dumps(answer.problem, ensure_ascii=False)
    assert tried.says in said.replace('\\"', '"')
    assert not [word for word in AUTHORS_WORDS if word in said]
