from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from duetime.contract.http.problems import KINDS, problem_of
from duetime.contract.openapi.document import OPERATIONS as DECLARED
from duetime.contract.openapi.document import document
from duetime.contract.tasks.encoding import entry, json_text, task_text
from duetime.contract.tasks.queries import TaskListQuery
from duetime.contract.tasks.responses import TaskBatchResult, TaskPage
from duetime.domain.errors import KeyReused
from tests.contract.test_actions import BAD_REPORTS, GOOD_REPORTS
from tests.contract.test_answers import DONE
from tests.contract.test_decoding import BAD_FIELDS
from tests.domain.factories import task

if TYPE_CHECKING:
    from collections.abc import Iterator

# The tests use the document in the form that clients receive.
DOCUMENT = json.loads(json.dumps(document(), allow_nan=False))
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]


MODELS = {
    "notice": "OutcomeReport",
    "heartbeat": "HeartbeatReport",
    "progress": "ProgressReport",
    "reject_fields": "EmptyRequest",
}
REPORTS = ("EmptyRequest", "OutcomeReport", "ReportedError", "HeartbeatReport", "ProgressReport")
# JSON Schema cannot express control characters and offsets, and Python's `$` allows a newline at the end.
CODE_ALONE_SEES = (
    "2026-12-01T09:00:00",
    "nul\x00",
    "\x9b31m",
    {"team": "a\x00"},
    "report\n",
    "https://me:secret@example.org",
    {"to": "https://example.org"},
    {"key": "a", "mode": "shared", "max_holders": 1},
    [{"key": "a"}, {"key": "a", "mode": "shared"}],
    {"to": "arn:aws:sns:eu-west-1:123456789012:alerts.fifo", "failed": True},
    {"to": "arn:aws:sqs:eu-west-1:123456789012:alerts", "failed": True},
)


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON
    """Return every schema within other schemas, at any depth."""
    if isinstance(value, dict):
        yield value
        for name, each in value.items():
            if name not in ("examples", "properties"):
                yield from schemas_in(each)
        for each in value.get("properties", {}).values():
            yield from schemas_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from schemas_in(each)


def resolved(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response, which may be a reference to a response shared by operations."""
    shared: dict[str, Any] = DOCUMENT["components"]["responses"]
    return shared[response["$ref"].rpartition("/")[2]] if "$ref" in response else response


def says_in_words(report: object) -> bool:
    """Return whether a report is refused for mutually exclusive fields, which are documented only in descriptions."""
    if not isinstance(report, dict) or "outcome" not in report:
        return False
    needless = {"succeeded": {"error", "retriable"}, "failed": {"result"}}
    return bool(needless[report["outcome"]] & set(report)) or (report["outcome"] == "failed" and "error" not in report)


def fits(model: str, value: object) -> bool:
    """Return whether a value validates against a model of the document."""
    return bool(OAS31Validator({**DOCUMENT, "$ref": f"#/components/schemas/{model}"}).is_valid(value))


def test_the_document_is_valid() -> None:
    """The document passes the OpenAPI 3.1 validator and is plain JSON."""
    OpenAPIV31SpecValidator(DOCUMENT).validate()
    assert DOCUMENT["openapi"] == "3.1.0"


def test_every_method_of_every_path_is_described() -> None:
    """The document has exactly the operations to which requests are routed."""
    described = {
        (f"{method.upper()} {path}", operation["operationId"])
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    assert described == {(operation.route, operation.id) for operation in DECLARED}


def test_every_field_of_a_request_is_described() -> None:
    """Each field of a body has a description or a reference, and each parameter of a list has a description."""
    for model in ("TaskCreate", "TaskUpdate", "OutcomeReport", "HeartbeatReport", "ProgressReport", "Attempt"):
        for name, field in SCHEMAS[model]["properties"].items():
            assert field.get("description") or "$ref" in field, name
    (listing,) = [operation for operation in OPERATIONS if operation["operationId"] == "listTasks"]
    parameters = {one["name"]: one for one in listing["parameters"] if one["in"] == "query"}
    assert set(parameters) == set(TaskListQuery.model_fields)
    assert all(one["description"] and one["schema"] for one in parameters.values())


def test_every_request_object_is_closed_in_the_document() -> None:
    """In the document, as in the code, no object in a request allows additional fields."""
    parts = ("RetryPolicyInput", "HttpTargetInput", "HandlerTargetInput")
    for model in ("TaskCreate", "TaskUpdate", "TaskBatchCreate", *parts, *REPORTS):
        assert SCHEMAS[model]["additionalProperties"] is False


def test_updates_have_no_defaults_in_the_document() -> None:
    """The document has no defaults for updates, which would say that updates reset omitted fields."""
    assert not any("default" in field for field in SCHEMAS["TaskUpdate"]["properties"].values())


def test_every_problem_is_in_the_document() -> None:
    """Each problem code is in the document with an example, and in the enumeration of codes."""
    told = json.dumps(DOCUMENT)
    # The code `subscriptions_full` only refuses messages over a WebSocket connection, not requests.
    codes = ({kind.code for kind in KINDS.values()} | {"internal"}) - {"subscriptions_full"}
    assert {code for code in codes if f"`{code}`" not in told} == set()
    assert set(DOCUMENT["components"]["examples"]) == codes == set(SCHEMAS["ProblemCode"]["enum"])
    assert SCHEMAS["Problem"]["properties"]["code"]["$ref"].endswith("/ProblemCode")


def test_every_operation_documents_its_problems() -> None:
    """Every operation documents problems such as 401 and 500, also in the gateway's form if the gateway may respond."""
    for operation in OPERATIONS:
        refusals = {status: resolved(one) for status, one in operation["responses"].items() if status[0] not in "23"}
        callers = set() if operation.get("security") == [] else {"401", "403"}
        assert {"429", "500", "default"} | callers <= set(refusals)
        for status, answer in refusals.items():
            is_the_gateways = status in {"401", "403", "413", "429", "500", "503", "504", "default"}
            model = "ApiError" if is_the_gateways else "Problem"
            types = ["application/problem+json", *(["application/json"] if is_the_gateways else [])]
            assert list(answer["content"]) == types
            assert all(one["schema"]["$ref"].endswith(f"/{model}") for one in answer["content"].values())
    assert fits("ApiError", {"message": "Forbidden"})
    assert fits("ApiError", DOCUMENT["components"]["examples"]["forbidden"]["value"])
    assert not fits("ApiError", {"error": "Forbidden"})


def types_of(schema: Any) -> list[str]:  # noqa: ANN401 - a schema
    """Return the types that a value can have."""
    return [each["type"] for each in schema.get("anyOf", [schema])]


def test_clients_can_express_every_body() -> None:
    """The document has no constructs that generators drop: maps declare their values' types, and choices have types."""
    found = list(schemas_in(DOCUMENT["components"]["schemas"]))
    assert not any({"patternProperties", "if", "then", "else", "not", "default"} & set(each) for each in found)
    for each in found:
        choices = [choice for name in ("oneOf", "anyOf") for choice in each.get(name, ())]
        assert all({"type", "$ref", "enum", "const", "items"} & set(choice) for choice in choices), each
    for model in ("TaskCreate", "TaskUpdate", "TopologyCreate", "OpenTaskFilter", "TaskTemplateInput"):
        tags = SCHEMAS[model]["properties"]["tags"]
        value = {"anyOf": [{"type": "string"}, {"type": "null"}]} if model == "TaskUpdate" else {"type": "string"}
        assert tags["type"] == "object"
        assert types_of(tags["additionalProperties"]) == types_of(value)
        assert tags["propertyNames"]["pattern"]


def test_defaults_are_documented_in_descriptions() -> None:
    """Defaults are in descriptions and not in schemas, because clients would send the defaults in schemas."""
    parameters = [one for operation in OPERATIONS for one in operation["parameters"]]
    assert not any("default" in one["schema"] for one in parameters)
    limits = [one["description"] for one in parameters if one["name"] == "limit"]
    assert all("Default: " in limit for limit in limits)
    assert SCHEMAS["TaskCreate"]["properties"]["timeout_seconds"]["description"].endswith("Default: 60.")


def test_parameters_are_sent_as_generators_send_them() -> None:
    """A list in a query is a repeated parameter, and required parameters are marked."""
    for operation in DECLARED:
        described = DOCUMENT["paths"][operation.path][operation.method.lower()]["parameters"]
        in_query = {one["name"]: one for one in described if one["in"] == "query"}
        fields = operation.query.model_fields if operation.query else {}
        assert {name for name, one in in_query.items() if one.get("required")} == {
            field.alias or name for name, field in fields.items() if field.is_required()
        }
        assert all(one["explode"] for one in in_query.values() if one["schema"].get("type") == "array")


def test_descriptions_are_written_for_users() -> None:
    """Descriptions contain no docstring sections, explain their values, and mark extensible enumerations."""
    told = json.dumps(DOCUMENT)
    assert not any(section in told for section in ("Attributes:", "Raises:", "Args:"))
    assert "`skip`: the occurrence does not run." in SCHEMAS["OverlapPolicy"]["description"]
    assert SCHEMAS["TaskState"]["description"].endswith("Later versions may add values.")


def test_every_field_has_a_description() -> None:
    """Every field of a request or response has a description, directly or by reference."""
    bare = [
        (model, name)
        for model, schema in SCHEMAS.items()
        for name, field in schema.get("properties", {}).items()
        if not field.get("description") and "$ref" not in field
    ]
    assert bare == []
    named = [schema["description"] for schema in SCHEMAS.values() if "description" in schema]
    assert len(named) == len(SCHEMAS)


def test_a_deployments_document_has_its_credentials_and_address() -> None:
    """A deployment's document has the deployment's address and credentials, and each operation's role."""
    for authentication, scheme in (("iam", "sigv4"), ("jwt", "bearer"), ("none", None)):
        found = document(authentication)
        assert found["security"] == ([{scheme: []}] if scheme else [])
        assert list(found["components"]["securitySchemes"]) == ([scheme] if scheme else [])
        assert found["paths"]["/v1/tasks"]["get"]["security"] == ([{scheme: ["reader"]}] if scheme else [])
        assert found["paths"]["/v1/dispatch"]["get"]["security"] == ([{scheme: ["operator"]}] if scheme else [])
        assert found["paths"]["/v1/health"]["get"]["security"] == []
    assert DOCUMENT["security"] == [{"sigv4": []}, {"bearer": []}, {"key": []}]
    with_keys = document("iam", keys=True)
    assert with_keys["paths"]["/v1/keys"]["get"]["security"] == [{"sigv4": ["admin"]}, {"key": ["admin"]}]
    assert [each["url"] for each in with_keys["servers"]] == ["..", "../key"]
    assert document("none", keys=True)["security"] == []
    (server,) = DOCUMENT["servers"]
    for prefix in ("https://api.example.org", "http://127.0.0.1:4566/_aws/execute-api/a1b2"):
        base = urljoin(f"{prefix}/v1/openapi.json", server["url"])
        assert base.rstrip("/") == prefix


def test_every_tag_is_used_and_described() -> None:
    """Operations and webhooks have one tag each, and every tag is used and described."""
    webhooks = [one for methods in DOCUMENT["webhooks"].values() for one in methods.values()]
    assert {len(operation["tags"]) for operation in [*OPERATIONS, *webhooks]} == {1}
    used = {tag for operation in [*OPERATIONS, *webhooks] for tag in operation["tags"]}
    assert used == {tag["name"] for tag in DOCUMENT["tags"]}
    assert all(tag["description"].endswith(".") for tag in DOCUMENT["tags"])


@pytest.mark.parametrize(
    ("operation_id", "headers", "answered"),
    [
        (
            "createTask",
            {"Idempotency-Key", "Idempotency-Key-Seconds", "traceparent", "X-Duetime-Lease", "X-Duetime-Owner"},
            {"ETag", "Location", "Idempotent-Replayed"},
        ),
        ("getTask", {"If-None-Match", "X-Duetime-Owner"}, {"ETag", "Cache-Control", "Retry-After"}),
        ("updateTask", {"If-Match", "X-Duetime-Owner"}, {"ETag"}),
    ],
)
def test_headers_are_described(operation_id: str, headers: set[str], answered: set[str]) -> None:
    """The document contains the headers of requests and responses."""
    (operation,) = [one for one in OPERATIONS if one["operationId"] == operation_id]
    assert {one["name"] for one in operation["parameters"] if one["in"] == "header"} == headers
    success: dict[str, Any] = next(answer for status, answer in operation["responses"].items() if int(status) < 300)
    assert set(success["headers"]) == answered | {"Request-Id"}


def test_responses_are_valid_by_the_document() -> None:
    """New and failed tasks, pages, batches and problems validate against the document."""
    problem = problem_of(KeyReused(), "urn:duetime:request:abc")
    batch = TaskBatchResult(results=[{"status": 201, "task": entry(DONE)}, {"status": 422, "problem": problem}])
    query = {"tag": ["team:dba"], "due_after": "1970-01-01T00:00:00Z"}
    applied = TaskListQuery.model_validate(query).applied(2, None)
    assert applied["filters"] == {"due_after": ["1970-01-01T00:00:00.000Z"], "tag": ["team:dba"]}
    entries: Any = [entry(task()), entry(DONE)]
    page = TaskPage(tasks=entries, applied=applied, next_token=None)
    assert fits("TaskBatchResult", json.loads(json_text(batch)))
    assert fits("TaskPage", json.loads(json_text(page)))
    assert fits("Problem", problem)
    for each in (task(), DONE):
        answered = json.loads(task_text(each))
        assert fits("Task", answered)
        assert not fits("Task", answered | {"version": "7"})


def test_reports_are_rejected_as_documented() -> None:
    """For notifications, heartbeats and progress reports, the document refuses what the code refuses."""
    for name, body in GOOD_REPORTS:
        assert fits(MODELS[name], body), body
    wrongly_allowed = [
        body for name, body, _ in BAD_REPORTS if "\\u0000" not in json.dumps(body) and fits(MODELS[name], body)
    ]
    assert [body for body in wrongly_allowed if not says_in_words(body)] == []


def test_query_parameters_and_alternative_statuses_are_described() -> None:
    """The parameters and statuses of creating, cancelling, pausing and rolling back are in the document."""
    found = {one["operationId"]: one for one in OPERATIONS}
    for id_, parameters, statuses in (
        ("createTask", ["estimate", "wait_seconds"], {"200", "201", "202"}),
        ("cancelTask", [], {"200", "202"}),
        ("pauseTask", [], {"200", "202"}),
        ("rollbackTask", [], {"202"}),
    ):
        names = [one["name"] for one in found[id_]["parameters"] if one["in"] == "query"]
        assert names == parameters
        assert {status for status in found[id_]["responses"] if status < "300"} == statuses
    assert found["pauseTask"]["requestBody"]["required"] is False


def test_bodies_are_rejected_as_documented() -> None:
    """The document accepts the smallest and the fullest body, and refuses bodies that the code refuses."""
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
        "notify_within_seconds": 7,
        "rollback_on_failure": True,
        "callback_url": "https://example.org/ended",
        "notify_on": {"to": "https://example.org/alerts", "failed": True, "late_seconds": 300, "running_seconds": 600},
        "name": "n",
        "tags": {"a": "b"},
    }
    assert fits("TaskCreate", {"type": "report"})
    assert fits("TaskCreate", full)
    assert fits("TaskBatchCreate", {"tasks": [full]})
    assert fits("TaskUpdate", {"name": ""})
    assert not fits("TaskUpdate", {})
    assert "At most one of `due_at` and `delay_seconds` can be given." in SCHEMAS["TaskCreate"]["description"]
    wrongly_allowed = [
        (field, value)
        for field, value, _ in BAD_FIELDS
        if value not in CODE_ALONE_SEES and fits("TaskCreate", {"type": "report", field: value})
    ]
    assert wrongly_allowed == []
