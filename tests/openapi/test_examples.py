"""Tests that the OpenAPI document's examples are complete, valid under the schemas, and recorded from the API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from openapi_schema_validator import OAS31Validator

from duetime.contract.openapi.document import FILE, OPERATIONS, document
from tests.openapi.recording import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document()))
ITSELF = "getOpenApiDocument"
RARE = {(name, "202") for name in ("resumeTopology", "pauseSchedulesByTag", "resumeSchedulesByTag", "sendSignal")}
"""Responses that only occur with very many topology nodes, schedules, or tasks that wait for an event."""
GATEWAYS = {"401", "403", "413", "429"}
"""Statuses that, for some operations, only the gateway returns."""


def operations() -> Iterator[dict[str, Any]]:
    """Return every operation, and every request by the scheduler."""
    for part in ("paths", "webhooks"):
        for methods in DOCUMENT[part].values():
            yield from methods.values()


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the contents of a request and of its responses, with their places and descriptions."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"request {media_type}", content
    for status, response in operation["responses"].items():
        name = response.get("$ref", "").rpartition("/")[2]
        found = DOCUMENT["components"]["responses"][name] if name else response
        for media_type, content in found.get("content", {}).items():
            yield f"{status} {media_type}", content


def values(content: dict[str, Any]) -> list[Any]:
    """Return a content's examples."""
    named = [
        DOCUMENT["components"]["examples"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
        for one in content.get("examples", {}).values()
    ]
    return [*([content["example"]] if "example" in content else []), *(one["value"] for one in named)]


def test_the_examples_equal_the_responses_of_the_api() -> None:
    """Recording the examples again changes nothing; run `make docs` if this test fails."""
    assert recorded() == FILE.read_text(encoding="utf-8")


def test_every_request_and_every_success_has_an_example() -> None:
    """Every request, every success that is not rare, and every kind of problem response has an example."""
    bare = [
        (operation["operationId"], where.partition(" ")[0])
        for operation in operations()
        for where, content in contents(operation)
        if not values(content) and where[0] in "r2" and operation["operationId"] != ITSELF
    ]
    assert set(bare) <= RARE
    for operation in operations():
        for where, content in contents(operation):
            is_of_ours = where.endswith("problem+json") and where[:3] not in GATEWAYS
            assert not is_of_ours or values(content), (operation["operationId"], where)


@pytest.mark.parametrize("operation", list(operations()), ids=lambda operation: operation["operationId"])
def test_examples_fit_their_schemas(operation: dict[str, Any]) -> None:
    """Each example is valid under its schema, and a problem has the status of its response."""
    for where, content in contents(operation):
        validator = OAS31Validator({**DOCUMENT, **content["schema"]})
        for value in values(content):
            validator.validate(value)
            if "problem" in where and where[0] != "d":
                assert str(value["status"]) == where.partition(" ")[0]


def test_examples_belong_only_to_existing_operations() -> None:
    """Every recorded example belongs to an operation that still exists under its name."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    assert set(stored["operations"]) == {operation.id for operation in OPERATIONS} - {ITSELF}
    assert set(stored["webhooks"]) <= set(DOCUMENT["webhooks"])
    assert set(stored["problems"]) == set(DOCUMENT["components"]["schemas"]["ProblemCode"]["enum"])
