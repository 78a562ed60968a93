from __future__ import annotations

import json
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from duetime.contract.http.openapi import document
from duetime.contract.http.problems import KINDS, problem_of
from duetime.contract.http.routes import OPERATIONS as DECLARED
from duetime.contract.tasks.encoding import entry, json_text, task_text
from duetime.contract.tasks.queries import TaskListQuery
from duetime.contract.tasks.responses import BatchResponse, PageResponse
from duetime.domain.errors import KeyReused
from tests.contract.test_answers import DONE
from tests.contract.test_decoding import BAD_FIELDS
from tests.contract.test_reports import BAD_REPORTS, GOOD_REPORTS
from tests.domain.factories import task

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]


MODELS = {"notice": "Notification", "heartbeat": "Heartbeat", "progress": "ProgressReport", "reject_fields": "NoFields"}
REPORTS = ("NoFields", "Notification", "NotifiedError", "Heartbeat", "ProgressReport")
# JSON Schema knows no control characters and no offsets, and Python's `$` forgives a line's end.
CODE_ALONE_SEES = (
    "2026-12-01T09:00:00",
    "nul\x00",
    "\x9b31m",
    {"team": "a\x00"},
    "report\n",
    "https://me:secret@example.org",
)


def fits(model: str, value: object) -> bool:
    """Whether the document says that a value is of a model."""
    return bool(OAS31Validator({**DOCUMENT, "$ref": f"#/components/schemas/{model}"}).is_valid(value))


def test_the_document_is_valid() -> None:
    """The document is OpenAPI 3.1 by its validator, and plain JSON."""
    OpenAPIV31SpecValidator(json.loads(json.dumps(DOCUMENT, allow_nan=False))).validate()
    assert DOCUMENT["openapi"] == "3.1.0"


def test_every_method_of_every_path_is_described() -> None:
    """The document has the operations that requests are routed by, no more and no fewer."""
    described = {
        (f"{method.upper()} {path}", operation["operationId"])
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    assert described == {(operation.route, operation.id) for operation in DECLARED}


def test_every_field_of_a_request_is_described() -> None:
    """Each field of a body and each parameter of a list has a type or a choice, and says what it is for."""
    for model in ("TaskCreate", "TaskPatch", "Notification", "Heartbeat", "ProgressReport", "AttemptResponse"):
        for name, field in SCHEMAS[model]["properties"].items():
            assert field.get("description") or "$ref" in field, name
    (listing,) = [operation for operation in OPERATIONS if operation["operationId"] == "listTasks"]
    parameters = {one["name"]: one for one in listing["parameters"] if one["in"] == "query"}
    assert set(parameters) == set(TaskListQuery.model_fields)
    assert all(one["description"] and one["schema"] for one in parameters.values())


def test_unknown_fields_are_documented_to_be_refused() -> None:
    """Every object that a client sends is closed in the document, as it is in the code."""
    for model in ("TaskCreate", "TaskPatch", "TaskBatch", "Retry", "HttpTarget", "HandlerTarget", *REPORTS):
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
        ("createTask", {"Idempotency-Key", "X-Duetime-Owner"}, {"ETag", "Location", "Idempotent-Replayed"}),
        ("getTask", {"If-None-Match", "X-Duetime-Owner"}, {"ETag", "Cache-Control"}),
        ("changeTask", {"If-Match", "X-Duetime-Owner"}, {"ETag"}),
    ],
)
def test_headers_are_described(operation_id: str, headers: set[str], answered: set[str]) -> None:
    """The headers that a request may carry and an answer has are part of the document."""
    (operation,) = [one for one in OPERATIONS if one["operationId"] == operation_id]
    assert {one["name"] for one in operation["parameters"] if one["in"] == "header"} == headers
    success: dict[str, Any] = next(answer for status, answer in operation["responses"].items() if int(status) < 300)
    assert set(success["headers"]) == answered | {"Request-Id"}


def test_answers_are_as_described() -> None:
    """Tasks at any point of their life, pages, batches and problems are what the document says they are."""
    problem = problem_of(KeyReused(), "urn:duetime:request:abc")
    batch = BatchResponse(results=[{"status": 201, "task": entry(DONE)}, {"status": 422, "problem": problem}])
    page = PageResponse(tasks=[entry(task()), entry(DONE)], next_token=None)
    assert fits("BatchResponse", json.loads(json_text(batch)))
    assert fits("PageResponse", json.loads(json_text(page)))
    assert fits("Problem", problem)
    for each in (task(), DONE):
        answered = json.loads(task_text(each))
        assert fits("TaskResponse", answered)
        assert not fits("TaskResponse", answered | {"version": "7"})


def test_reports_are_refused_as_described() -> None:
    """What the document says of a notification, a heartbeat and a progress report is what the code does."""
    for name, body in GOOD_REPORTS:
        assert fits(MODELS[name], body), body
    wrongly_allowed = [
        body for name, body, _ in BAD_REPORTS if "\\u0000" not in json.dumps(body) and fits(MODELS[name], body)
    ]
    assert wrongly_allowed == []


def test_a_wait_a_force_and_what_they_answer_are_described() -> None:
    """Parameters and second statuses of creating and cancelling are part of the document."""
    found = {one["operationId"]: one for one in OPERATIONS}
    for id_, parameter, statuses in (
        ("createTask", "wait", {"201", "202"}),
        ("cancelTask", "force", {"200", "202"}),
        ("pauseTask", None, {"200", "202"}),
        ("rollBackTask", None, {"202"}),
    ):
        names = [one["name"] for one in found[id_]["parameters"] if one["in"] == "query"]
        assert names == ([parameter] if parameter else [])
        assert {status for status in found[id_]["responses"] if status < "300"} == statuses
    assert found["pauseTask"]["requestBody"]["required"] is False


def test_bodies_are_refused_as_described() -> None:
    """What the document allows is what the code accepts: the least and the fullest body, and none of the bad ones."""
    full = {
        "type": "report",
        "payload": [1],
        "delay_seconds": 1.5,
        "priority": "low",
        "target": {
            "kind": "http",
            "url": "https://example.org/",
            "phases": ["prepare", "clean", "rollback"],
            "queries": ["status"],
        },
        "retry": {"max_attempts": 1},
        "timeout_seconds": 5,
        "deadline_seconds": 7,
        "rollback": True,
        "callback_url": "https://example.org/ended",
        "name": "n",
        "tags": {"a": "b"},
    }
    assert fits("TaskCreate", {"type": "report"})
    assert fits("TaskCreate", full)
    assert fits("TaskBatch", {"tasks": [full]})
    assert fits("TaskPatch", {"name": ""})
    assert not fits("TaskPatch", {})
    assert not fits("TaskCreate", {"type": "report", "at": "2026-12-01T09:00:00Z", "delay_seconds": 0})
    wrongly_allowed = [
        (field, value)
        for field, value, _ in BAD_FIELDS
        if value not in CODE_ALONE_SEES and fits("TaskCreate", {"type": "report", field: value})
    ]
    assert wrongly_allowed == []
