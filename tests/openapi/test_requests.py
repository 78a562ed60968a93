"""Tests that the document's requests fit the API, so that each field can be used and each example is accepted."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.openapi.document import OPERATIONS, document
from tests.hostile.corpus import BODIES, Corpus
from tests.hostile.grounds import InProcess
from tests.hostile.world import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from _pytest.mark import ParameterSet

    from duetime.contract.http.operation import Operation
    from duetime_testing.fakes.tables import Table

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document("none")))
JSON = "application/json"
INVALID = {400, 422}
BY_SETTINGS = {"arn"}
"""Fields whose values depend on the deployment's settings, which allow no values in these tests."""
TIMINGS = {"cron", "rate", "interval", "dates", "permanent"}
TIMED = {"createSchedule", "previewSchedule"}
FAILED = {"outcome": "failed", "error": {"type": "NoSpace"}}
NOTICES = "http://127.0.0.1:9/z"
GOES_WITH: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("reportOutcome", "error"): FAILED,
    ("reportOutcome", "retriable"): FAILED,
    **{("putIntakeRule", name): {"create": {"task": {"type": "echo"}}} for name in ("pattern", "owner", "description")},
    ("putIntakeRule", "cancel"): {"cancel": {"fields": {"tags.a": "id"}}},
    ("putIntakeRule", "signal"): {"signal": {"name": "order.paid"}},
    ("renewLease", "message"): {"percent": 5},
    **{
        (operation, "expect_duration_factor"): {"task": {"type": "echo", "notify_on": {"to": NOTICES, "failed": True}}}
        for operation in ("createSchedule", "updateSchedule", "previewSchedule")
    },
    ("createTopology", "nodes"): {
        "nodes": {"list": {"type": "echo"}, "a": {"type": "echo", "depends_on": ["list"]}},
    },
}
"""Other fields that a field needs in the same body."""
BESIDE: Mapping[tuple[str, ...], Mapping[str, Any]] = {
    ("notify_on", "to"): {"failed": True},
    ("filter", "schedule"): {"type": "echo"},
}
"""Other fields that a field needs in the object around the field."""
Path = tuple[str, ...]
Schema = dict[str, Any]


@dataclass(frozen=True)
class Shared:
    """An API that uses AWS fakes, with ids of existing resources by parameter name, and a copy of the tables."""

    grounds: InProcess
    known: dict[str, Any]
    tables: dict[str, Table]


@pytest.fixture(scope="module")
def shared() -> Shared:
    """Build an API once for all tests, because building takes longer than a test."""
    grounds = InProcess()
    with grounds.used():
        known = furnished(grounds)
    return Shared(grounds, known, grounds.tables())


@pytest.fixture
def grounds(shared: Shared) -> Iterator[InProcess]:
    """Return the API with a few resources of every kind that no other test has changed."""
    with shared.grounds.used():
        shared.grounds.restore(shared.tables)
        yield shared.grounds


def resolved(schema: Schema) -> Schema:
    """Return a schema, or the schema to which it refers."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if not name:
        return schema
    return {**DOCUMENT["components"]["schemas"][name], **{key: each for key, each in schema.items() if key != "$ref"}}


def choices(schema: Schema) -> list[Schema]:
    """Return the forms that a value can have."""
    found = resolved(schema)
    return [form for each in found.get("anyOf") or found.get("oneOf") or () for form in choices(each)] or [found]


def fields(schema: Schema, at: Path = ()) -> Iterator[tuple[Path, Schema, Schema]]:
    """Return each field of an object at any depth, with its path, its schema, and the object around it."""
    for form in choices(schema):
        for name, field in form.get("properties", {}).items():
            yield (*at, name), field, form
            yield from fields(field, (*at, name))
        if isinstance(form.get("additionalProperties"), dict) and at:
            yield from fields(form["additionalProperties"], (*at, "a"))


def least(schema: Schema) -> Any:  # noqa: ANN401 - any JSON
    """Return the smallest value of a schema, with only its required parts."""
    return values(schema)[0]


def values(schema: Schema) -> list[Any]:
    """Return values that fit a schema, including its examples."""
    found: list[Any] = [*resolved(schema).get("examples", ())]
    for form in choices(schema):
        found += [*form.get("examples", ()), *form.get("enum", ()), *([form["const"]] if "const" in form else ())]
        if "properties" in form:
            found.append({name: least(form["properties"][name]) for name in form.get("required", ())})
        elif form.get("type") == "array":
            found.append([least(form["items"])] if form.get("minItems") else [])
        elif form.get("type") == "string" and "enum" not in form and "pattern" not in form:
            found.append("x" * max(1, form.get("minLength", 0)))
        else:
            least_number = form.get("minimum", 0)
            found += {"boolean": [True, False], "integer": [least_number], "number": [least_number]}.get(
                str(form.get("type")), [None, {}]
            )
    return found


def model_of(operation: Operation) -> Schema:
    """Return the model for an operation's body."""
    content = DOCUMENT["paths"][operation.path][operation.method.lower()]["requestBody"]["content"]
    return resolved(content[JSON]["schema"])


def base_of(operation: Operation, path: Path) -> dict[str, Any]:
    """Return the smallest body into which a field can be put."""
    required = model_of(operation).get("required", ())
    found: dict[str, Any] = {name: BODIES[operation.id][name] for name in required}
    if operation.id in TIMED and not TIMINGS & set(path):
        found["cron"] = "0 4 * * *"
    return copy.deepcopy({**found, **GOES_WITH.get((operation.id, path[0]), {})})


def body_of(operation: Operation, path: Path, value: object, around: Schema) -> dict[str, Any]:
    """Return the smallest body with a value in a field, in an object that has this field."""
    body = inner = base_of(operation, path)
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    least_around = least({"properties": around["properties"], "required": around.get("required", [])})
    inner.update({name: each for name, each in least_around.items() if name not in inner or name == "kind"})
    inner.update(BESIDE.get(path[-2:], {}))
    inner[path[-1]] = value
    return body


def candidates(operation: Operation, path: Path, field: Schema) -> list[Any]:
    """Return candidate values that the schema may accept."""
    good = BODIES.get(operation.id, {}).get(path[0])
    return [*([good] if len(path) == 1 and good is not None else []), *values(field)]


def faults(grounds: InProcess, known: dict[str, Any], operation: Operation, body: object) -> dict[str, str]:
    """Return the refused fields, each with the reason."""
    request = Corpus(0, known).good(operation, existing=1)
    answer = grounds.api.send(request.method, request.path, body)
    return {one["field"]: one["reason"] for one in answer.body["errors"]} if answer.status in INVALID else {}


WITH_BODY = [one for one in OPERATIONS if one.body is not None]
PLACES = [
    (operation, index, path, field, around)
    for operation in WITH_BODY
    for index, (path, field, around) in enumerate(fields(model_of(operation)))
    if path[-1] not in BY_SETTINGS and field.get("const") != "pull"
]
"""The fields in every body, each with its number in the body and the object around the field."""


def cases(places: Sequence[tuple[Operation, int, Path, Schema, Schema]]) -> list[ParameterSet]:
    """Return a case for each field."""
    return [
        pytest.param(operation, path, field, around, id=f"{operation.id}-{'.'.join(path)}-{index}")
        for operation, index, path, field, around in places
    ]


def furnished(grounds: InProcess) -> dict[str, Any]:
    """Create resources of every kind, including those that examples name, and return ids by parameter name."""
    found = grounds.fresh_world()
    grounds.api.send("PUT", "/v1/calendars/uk-holidays", {"weekdays": ["sun"]})
    grounds.api.send("POST", "/v1/schedules", {"name": "daily", "cron": "0 4 * * *", "task": {"type": "echo"}})
    parameters = {"parameters": {"region": {"default": "eu"}}}
    grounds.api.send("PUT", "/v1/topologies/definitions/daily", {**parameters, "nodes": {"a": {"type": "echo"}}})
    return {**found, "name": ["daily"], "task_id": found["task_id"][:1]}


@pytest.fixture
def known(shared: Shared) -> dict[str, Any]:
    """Return ids of existing resources."""
    return shared.known


@pytest.mark.parametrize(("operation", "path", "field", "around"), cases(PLACES))
def test_at_least_one_value_of_each_field_is_accepted(
    grounds: InProcess, known: dict[str, Any], operation: Operation, path: Path, field: Schema, around: Schema
) -> None:
    """At least one value of each field is accepted, so the document has no field that is always refused."""
    name = ".".join(path)
    told = []
    for value in candidates(operation, path, field):
        refused = faults(grounds, known, operation, body_of(operation, path, value, around))
        mine = {place: why for place, why in refused.items() if place.startswith(name) or name.startswith(f"{place}.")}
        if not mine:
            return
        told.append((value, mine))
    raise AssertionError(told)


@pytest.mark.parametrize(
    ("operation", "path", "field", "around"), cases([each for each in PLACES if resolved(each[3]).get("examples")])
)
def test_each_example_of_a_field_is_accepted(
    grounds: InProcess, known: dict[str, Any], operation: Operation, path: Path, field: Schema, around: Schema
) -> None:
    """A body that contains a field's example is not refused because of this field."""
    name = ".".join(path)
    # The deployment's settings decide which ARNs may be called.
    for value in (each for each in resolved(field).get("examples", ()) if not str(each).startswith("arn:")):
        refused = faults(grounds, known, operation, body_of(operation, path, value, around))
        assert not {place: why for place, why in refused.items() if place.startswith(name)}, value


@pytest.mark.parametrize(
    "operation", [one for one in WITH_BODY if "examples" in model_of(one)], ids=lambda operation: operation.id
)
def test_each_example_of_a_body_is_accepted(grounds: InProcess, known: dict[str, Any], operation: Operation) -> None:
    """A body model's examples are accepted; an operation's own examples were recorded when the operation succeeded."""
    for body in model_of(operation)["examples"]:
        assert faults(grounds, known, operation, body) == {}


READ_BY = {"getSwitch": {"scope": ["type"], "name": ["mail"]}}
"""Values for parameters whose names mean something else in other operations."""
_ELSEWHERE = {"getBulkOperation", "getPurge", "getSummary", "listSummaryOwners"}
READING = [one for one in OPERATIONS if one.method == "GET" and one.id not in _ELSEWHERE]
"""All read operations, except those for objects that only long requests create and for counts that only the stream
creates.
"""


@pytest.mark.parametrize("operation", READING, ids=lambda operation: operation.id)
def test_a_get_request_with_a_current_etag_returns_304(
    grounds: InProcess, known: dict[str, Any], operation: Operation
) -> None:
    """Each GET response has an ETag, and a request with this ETag gets a 304 without a body."""
    names = {**known, "name": [NAMES[0]], "topology_id": known["topology_id"][:1], **READ_BY.get(operation.id, {})}
    request = Corpus(0, names).good(operation, existing=1)
    first = grounds.api.send("GET", request.path, query=request.query)
    assert first.status == HTTPStatus.OK, request
    again = grounds.api.send("GET", request.path, None, {"If-None-Match": first.headers["ETag"]}, query=request.query)
    assert (again.status, again.text) == (304, "")
    other = grounds.api.send("GET", request.path, None, {"If-None-Match": '"another"'}, query=request.query)
    assert other.status == HTTPStatus.OK
