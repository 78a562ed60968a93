"""Tests of redaction over REST: callers who can only read get no redacted value, and no marker is stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.openapi.document import OPERATIONS
from duetime.contract.openapi.document import document as openapi_document
from duetime.domain.callers import Role
from duetime.domain.redaction import Redaction, marker
from duetime.environment_variables import Variable
from tests.functions.api.test_roles import CALLER, scoped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.functions.api.gateway import Gateway

GONE = marker()
CARD = "4111-1111"
PAYLOAD = {"card": CARD, "amount": 12.5, "of": [{"card": CARD}]}
SHOWN = {"card": GONE, "amount": 12.5, "of": [{"card": GONE}]}


@pytest.fixture
def writer(environ: dict[str, str], compose: Callable[[], None]) -> Gateway:
    """A caller with all rights, in a deployment with tokens that redacts card numbers in payments."""
    environ |= {Variable.AUTHENTICATION: "jwt", Variable.ADMINS: "root", Variable.REDACT: '{"pay*": ["card"]}'}
    compose()
    return scoped(None)


READER = scoped("duetime:reader")


def body_of(kind: str = "pay", **fields: object) -> dict[str, Any]:
    """The body for creating a task."""
    return {"type": kind, "payload": PAYLOAD, "allow_unknown_type": True, **fields}


def test_a_reader_gets_markers_in_place_of_redacted_values(writer: Gateway) -> None:
    """Readers get markers in place of redacted values, but see all values of other types. Writers see all values."""
    paid = writer.send("POST", "/v1/tasks", body_of()).body["id"]
    other = writer.send("POST", "/v1/tasks", body_of("report")).body["id"]
    path = f"/v1/tasks/{paid}"
    assert writer.send("GET", path).body["payload"] == PAYLOAD
    assert READER.send("GET", path).body == {**writer.send("GET", path).body, "payload": SHOWN}
    listed = READER.send("GET", "/v1/tasks", query="expand=payload").body["tasks"]
    assert {each["id"]: each["payload"] for each in listed} == {paid: SHOWN, other: PAYLOAD}


def test_an_administrator_gets_redacted_values_of_other_owners(writer: Gateway) -> None:
    """An administrator who reads another owner's tasks gets redacted values, as a reader does."""
    path = f"/v1/tasks/{writer.send('POST', '/v1/tasks', body_of()).body['id']}"
    shown = scoped(None, "root").send("GET", path, headers={"X-Duetime-Owner": CALLER})
    assert shown.body["payload"] == SHOWN


def test_schedules_topologies_and_definitions_are_redacted(writer: Gateway) -> None:
    """Payloads in schedules, topologies, definitions and lists are redacted for readers, too."""
    task = body_of(target={"kind": "http", "url": "https://example.org/", "body": {"json": PAYLOAD}})
    del task["allow_unknown_type"]
    del task["payload"]
    made = writer.send("POST", "/v1/schedules", {"name": "n", "rate": "1 hour", "task": {**task, "tags": {"a": "b"}}})
    assert made.status == 201, made.body
    node = body_of()
    graph = writer.send(
        "POST", "/v1/topologies", {"nodes": {"payload": node, "b": {**node, "depends_on": ["payload"]}}}
    )
    assert graph.status == 201, graph.body
    definition = {"nodes": {"a": {"type": "pay", "payload": PAYLOAD, "allow_unknown_type": True}}}
    kept = writer.send("PUT", "/v1/topologies/definitions/d", definition)
    assert kept.status == 201, kept.body
    paths = [
        "/v1/schedules/n",
        "/v1/schedules",
        f"/v1/tasks/{graph.body['id']}",
        f"/v1/topologies/{graph.body['id']}",
        "/v1/topologies/definitions/d",
    ]
    for path in paths:
        answer = READER.send("GET", path)
        assert answer.status == 200, path
        assert CARD not in answer.text, path
    # The response of a topology has no payloads.
    hidden = [path for path in paths if CARD not in writer.send("GET", path).text]
    assert hidden == [f"/v1/topologies/{graph.body['id']}"]


def test_the_redacted_response_of_a_reader_has_another_etag(writer: Gateway) -> None:
    """A reader's redacted response has a different ETag than a writer's response."""
    path = f"/v1/tasks/{writer.send('POST', '/v1/tasks', body_of()).body['id']}"
    whole, part = (caller.send("GET", path).headers["ETag"] for caller in (writer, READER))
    assert whole != part
    assert READER.send("GET", path, headers={"If-None-Match": part}).status == 304
    assert writer.send("GET", path, headers={"If-None-Match": part}).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/v1/tasks", body_of(payload=SHOWN), "payload.card"),
        ("POST", "/v1/tasks", body_of(payload=GONE), "payload"),
        ("PATCH", "/v1/tasks/{id}", {"payload": {"of": [SHOWN]}}, "payload.of[0].card"),
        ("POST", "/v1/schedules", {"name": "n", "rate": "1 hour", "task": body_of(payload=SHOWN)}, "task.payload.card"),
        ("POST", "/v1/topologies", {"nodes": {"a": body_of(payload=SHOWN)}}, "nodes.a.payload.card"),
    ],
)
def test_writing_back_a_redacted_payload_is_rejected(
    writer: Gateway, method: str, path: str, body: Mapping[str, Any], field: str
) -> None:
    """Writing back a redacted payload is refused with the field's name, and the stored payload does not change."""
    made = writer.send("POST", "/v1/tasks", body_of(delay_seconds=600)).body["id"]
    refused = writer.send(method, path.replace("{id}", made), body)
    assert refused.status in {400, 422}, refused.body
    assert "the marker of a hidden value" in refused.faults[field]
    assert writer.send("GET", f"/v1/tasks/{made}").body["payload"] == PAYLOAD


def test_only_the_task_with_a_marker_is_rejected_in_a_batch(writer: Gateway) -> None:
    """A task with a marker is refused, and the other tasks of its batch are created."""
    ends = writer.send("POST", "/v1/tasks/batch", {"tasks": [body_of(), body_of(payload=SHOWN)]}).body["results"]
    assert [each["status"] for each in ends] == [201, 422]


def test_a_text_that_looks_like_a_marker_is_stored(writer: Gateway) -> None:
    """A string that looks like a marker is stored, because only an object with the marker's field is a marker."""
    texts = {"a": "$redacted", "b": json.dumps(GONE)}
    made = writer.send("POST", "/v1/tasks", body_of(payload=texts))
    assert (made.status, made.body["payload"]) == (201, texts)


def test_a_type_shows_what_is_redacted(writer: Gateway) -> None:
    """Everyone who can read a type sees which of its fields are redacted."""
    writer.send("PUT", "/v1/types/pay", {"timeout_seconds": 5})
    assert READER.send("GET", "/v1/types/pay").body["redacted"] == ["card"]


def free_values(schema: Any, document: Mapping[str, Any], seen: set[str]) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """The names of all fields that can have any JSON, in a schema and in the schemas to which it refers."""
    if isinstance(schema, list):
        for each in schema:
            yield from free_values(each, document, seen)
    if not isinstance(schema, dict):
        return
    if (ref := schema.get("$ref")) is not None and ref not in seen:
        seen.add(ref)
        yield from free_values(document["components"]["schemas"][ref.rsplit("/", 1)[1]], document, seen)
    for name, each in schema.get("properties", {}).items():
        is_any = not {*each} - {"description", "title", "default", "examples"}
        if is_any or each.get("additionalProperties") is True:
            yield name
    for name, each in schema.items():
        if name not in {"example", "examples"}:
            yield from free_values(each, document, seen)


def test_every_field_that_readers_get_with_any_json_is_redacted() -> None:
    """Each response field that can hold arbitrary JSON is redacted for readers, or is listed here.

    The listed fields contain no user content.
    """
    document = json.loads(json.dumps(openapi_document()))
    found: set[str] = set()
    for operation in OPERATIONS:
        if operation.needs is Role.READER and not operation.is_public:
            responses = document["paths"][operation.path][operation.method.lower()]["responses"]
            found |= {*free_values(responses["200"], document, set())} if "200" in responses else set()
    # The nodes of a topology are objects, each with its own payload.
    harmless = {"defaults", "nodes"}
    policy = Redaction({"*": ["*"]})
    for name in found - harmless:
        for kind in ({}, {"type": "a"}):
            shown = policy.removed_from({**kind, "path": "b", name: {"card": CARD}})
            assert CARD not in json.dumps(shown), name
    assert {"payload", "result", "parameters", "json"} <= found
