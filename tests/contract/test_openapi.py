from __future__ import annotations

import json
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from duetime.contract.openapi import document
from duetime.contract.problems import KINDS
from duetime.contract.queries import TaskListQuery
from duetime.contract.routes import METHODS

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]


def test_the_document_is_valid() -> None:
    """The document is OpenAPI 3.1 by its validator, and plain JSON."""
    OpenAPIV31SpecValidator(json.loads(json.dumps(DOCUMENT, allow_nan=False))).validate()
    assert DOCUMENT["openapi"] == "3.1.0"


def test_every_method_of_every_path_is_described() -> None:
    """The document has the paths and methods that requests are routed by, no more and no fewer."""
    described = {path: {method.upper() for method in methods} for path, methods in DOCUMENT["paths"].items()}
    assert described == {path: set(methods) for path, methods in METHODS.items()}


def test_every_field_of_a_request_is_described() -> None:
    """Each field of a body and each parameter of a list has a type or a choice, and says what it is for."""
    for model in ("TaskCreate", "TaskPatch"):
        for name, field in SCHEMAS[model]["properties"].items():
            assert field.get("description") or "$ref" in field, name
    (listing,) = [operation for operation in OPERATIONS if operation["operationId"] == "listTasks"]
    parameters = {one["name"]: one for one in listing["parameters"] if one["in"] == "query"}
    assert set(parameters) == set(TaskListQuery.model_fields)
    assert all(one["description"] and one["schema"] for one in parameters.values())


def test_unknown_fields_are_documented_to_be_refused() -> None:
    """Every object that a client sends is closed in the document, as it is in the code."""
    for model in ("TaskCreate", "TaskPatch", "TaskBatch", "Retry", "HttpTarget", "HandlerTarget"):
        assert SCHEMAS[model]["additionalProperties"] is False


def test_a_change_has_no_defaults() -> None:
    """The document does not say that a change resets what it leaves out."""
    assert not any("default" in field for field in SCHEMAS["TaskPatch"]["properties"].values())


def test_every_problem_is_described_somewhere() -> None:
    """Each code that a described path can answer stands in the document, as problem+json."""
    told = json.dumps(OPERATIONS)
    elsewhere = {"path_unknown", "method_unsupported"}
    assert {kind.code for kind in KINDS.values() if f"`{kind.code}`" not in told} == elsewhere
    for operation in OPERATIONS:
        for status, answer in operation["responses"].items():
            is_problem = int(status) >= 400
            assert not is_problem or list(answer["content"]) == ["application/problem+json"]


@pytest.mark.parametrize(
    ("operation_id", "headers", "answered"),
    [
        ("createTask", {"Idempotency-Key", "X-Duetime-Owner"}, {"ETag", "Location"}),
        ("getTask", {"If-None-Match", "X-Duetime-Owner"}, {"ETag", "Cache-Control"}),
        ("changeTask", {"If-Match", "X-Duetime-Owner"}, {"ETag"}),
    ],
)
def test_headers_are_described(operation_id: str, headers: set[str], answered: set[str]) -> None:
    """The headers that a request may carry and an answer has are part of the document."""
    (operation,) = [one for one in OPERATIONS if one["operationId"] == operation_id]
    assert {one["name"] for one in operation["parameters"] if one["in"] == "header"} == headers
    success: dict[str, Any] = next(answer for status, answer in operation["responses"].items() if int(status) < 300)
    assert set(success["headers"]) == answered
