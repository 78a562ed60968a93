"""Tests of topology definitions over REST: versions, preconditions, parameters and runs."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.schedules import ScheduleServices
from duetime.domain.schedules.occurrences import Occurrence
from duetime.services.schedules.occurrence_tasks import Due
from duetime.services.tasks.creation_rules import payload_name
from tests.clocks import NOW

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

PATH = "/v1/topologies/definitions"
NIGHTLY = f"{PATH}/nightly"
NODES: dict[str, Any] = {
    "fetch": {
        "type": "report",
        "payload": {"from": "s3://<duetime.parameters.region>/in", "rows": "<duetime.parameters.rows>"},
    },
    "report": {"type": "report", "depends_on": ["fetch"], "payload": "<duetime.task-id>"},
}
PARAMETERS: dict[str, Any] = {
    "region": {"type": "string", "enum": ["eu", "us"], "default": "eu"},
    "rows": {"type": "integer", "description": "How many."},
}
BODY: dict[str, Any] = {
    "description": "Of all regions",
    "parameters": PARAMETERS,
    "nodes": NODES,
    "timeout_seconds": 600,
}


def put(api: Gateway, **changes: Any) -> Any:  # noqa: ANN401 - a reply
    """Put a definition with some fields replaced."""
    return api.send("PUT", NIGHTLY, {**BODY, **changes})


def conditional(when: str) -> dict[str, Any]:
    """The definition's nodes, with a condition on the second node."""
    return {**NODES, "report": {**NODES["report"], "when": when}}


def test_a_condition_with_an_unknown_parameter_is_rejected(api: Gateway) -> None:
    """A condition with an unknown parameter is refused, and the error names the node."""
    refused = put(api, nodes=conditional("parameters.regions == 'eu'"))
    assert (refused.status, refused.body["errors"][0]["field"]) == (422, "nodes.report.when")
    assert "unknown parameter 'regions'; there are region, rows" in refused.body["errors"][0]["reason"]
    assert put(api, nodes=conditional("parameters.region == 'eu'")).status == 201
    made = api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 1}})
    assert made.status == 201, made.body
    plain = {"nodes": {"a": {"type": "report"}, "b": {"type": "report", "depends_on": ["a"], "when": "parameters.x"}}}
    for path, body in (
        ("/v1/topologies", plain),
        ("/v1/tasks", {"type": "topology", "target": {"kind": "topology"}, "payload": plain}),
    ):
        refused = api.send("POST", path, body)
        assert refused.status == 422, refused.body
        assert "there are none" in refused.body["errors"][0]["reason"]
    inline = {
        "inner": {
            "type": "topology",
            "target": {"kind": "topology"},
            "payload": {"nodes": conditional("parameters.region")},
        }
    }
    assert put(api, nodes=inline).body["errors"][0]["field"] == "nodes.inner.payload.nodes.report.when"


def test_each_change_of_a_definition_adds_a_version(api: Gateway) -> None:
    """Each change to a definition adds a version that can be read permanently, and equal content adds no version."""
    first = put(api)
    assert (first.status, first.location, first.headers["ETag"]) == (201, NIGHTLY, '"1"')
    again = put(api, nodes=dict(reversed(NODES.items())))
    assert (again.status, again.headers["ETag"], again.body["version"]) == (200, '"1"', 1)
    assert put(api, description="Other").headers["ETag"] == '"2"'
    assert api.send("GET", NIGHTLY).body["description"] == "Other"
    earlier = api.send("GET", NIGHTLY, query="version=1")
    assert earlier.status == 200, earlier
    assert (earlier.body, earlier.headers["ETag"]) == (first.body, '"1"')
    assert [each["version"] for each in api.send("GET", f"{NIGHTLY}/versions").body["versions"]] == [2, 1]
    listed = api.send("GET", PATH).body["definitions"]
    assert [(each["name"], each["version"], each["description"]) for each in listed] == [("nightly", 2, "Other")]
    assert api.send("GET", NIGHTLY, query="version=3").status == 404


def test_a_change_with_an_earlier_etag_returns_412(api: Gateway) -> None:
    """A change with an earlier ETag in `If-Match` returns 412, and `If-None-Match: *` replaces no definition."""
    tag = put(api).headers["ETag"]
    put(api, description="Other")
    late = api.send("PUT", NIGHTLY, BODY, {"if-match": tag})
    assert (late.status, late.problem["code"]) == (412, "version_mismatch")
    assert api.send("DELETE", NIGHTLY, headers={"if-match": tag}).status == 412
    taken = api.send("PUT", NIGHTLY, BODY, {"if-none-match": "*"})
    assert (taken.status, taken.problem["code"]) == (412, "definition_exists")
    assert api.send("GET", NIGHTLY).body["description"] == "Other"


def test_a_deletion_removes_all_versions_of_a_definition(api: Gateway) -> None:
    """A deletion removes all versions.

    A new definition continues the version numbers, and does not match earlier ETags.
    """
    tag = put(api).headers["ETag"]
    put(api, description="Other")
    assert api.send("DELETE", NIGHTLY).body["version"] == 2
    assert {api.send("GET", path).status for path in (NIGHTLY, f"{NIGHTLY}/versions")} == {404}
    assert (api.send("DELETE", NIGHTLY).status, api.send("GET", PATH).body["definitions"]) == (404, [])
    assert api.send("PUT", NIGHTLY, BODY, {"if-match": tag}).status == 412
    again = put(api)
    assert (again.status, again.body["version"]) == (201, 4)
    assert [each["version"] for each in api.send("GET", f"{NIGHTLY}/versions").body["versions"]] == [4]
    assert api.send("GET", NIGHTLY, query="version=1").status == 404


def test_two_versions_are_compared_field_by_field(api: Gateway) -> None:
    """The differences between two versions list each changed field with both values."""
    put(api)
    put(api, nodes={**NODES, "report": {"type": "report", "depends_on": ["fetch"], "delay_seconds": 5}}, description="")
    assert api.send("GET", f"{NIGHTLY}/diff", query="from=1&to=2").body == {
        "from": 1,
        "to": 2,
        "changes": [
            {"path": "description", "from": "Of all regions", "to": ""},
            {"path": "nodes.report.payload", "from": "<duetime.task-id>"},
            {"path": "nodes.report.delay_seconds", "to": 5},
        ],
    }
    assert api.send("GET", f"{NIGHTLY}/diff", query="from=1").body["to"] == 2
    assert api.send("GET", f"{NIGHTLY}/diff").status == 400


def test_a_run_shows_the_definitions_version_and_parameters(api: Gateway) -> None:
    """A run shows the definition's version and its parameters, and lists can filter runs by definition."""
    put(api)
    put(api, nodes={"other": {"type": "report"}})
    made = api.send("POST", f"{NIGHTLY}/runs", {"version": 1, "parameters": {"rows": 7}, "tags": {"a": "b"}})
    assert (made.status, made.location) == (201, f"/v1/topologies/{made.body['id']}")
    run = {"name": "nightly", "version": 1, "parameters": {"region": "eu", "rows": 7}}
    assert made.body["target"] == {"kind": "topology", "definition": run}
    assert made.body["payload"]["nodes"]["fetch"]["payload"] == {"from": "s3://eu/in", "rows": 7}
    assert made.body["payload"]["nodes"]["report"]["payload"] == "<duetime.task-id>"
    assert made.body["notify_within_seconds"] == 600
    assert api.send("GET", f"/v1/topologies/{made.body['id']}").body["definition"] == run
    latest = api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 1}}).body
    assert (latest["target"]["definition"]["version"], [*latest["payload"]["nodes"]]) == (2, ["other"])
    api.send("POST", "/v1/topologies", {"nodes": {"a": {"type": "report"}}})
    listed = api.send("GET", "/v1/topologies", query="definition=nightly").body["topologies"]
    assert {each["id"] for each in listed} == {made.body["id"], latest["id"]}


def test_a_task_with_a_definition_target_is_a_run_of_the_definition(api: Gateway) -> None:
    """Creating a task whose target is a definition is the same as running the definition."""
    put(api)
    target = {"kind": "topology", "definition": {"name": "nightly", "parameters": {"rows": 3, "region": "us"}}}
    made = api.send("POST", "/v1/tasks", {"type": "topology", "target": target})
    assert made.status == 201
    assert made.body["payload"]["nodes"]["fetch"]["payload"] == {"from": "s3://us/in", "rows": 3}
    changed = api.send(
        "PATCH", f"/v1/tasks/{made.body['id']}", {"target": {"definition": {"parameters": {"region": "eu"}}}}
    )
    assert changed.body["payload"]["nodes"]["fetch"]["payload"] == {"from": "s3://eu/in", "rows": 3}
    refused = api.send("PATCH", f"/v1/tasks/{made.body['id']}", {"payload": {"nodes": {}}})
    assert (refused.status, [*refused.faults]) == (422, ["payload"])
    both = api.send("POST", "/v1/tasks", {"type": "topology", "target": target, "payload": {"nodes": {}}})
    assert (both.status, [*both.faults]) == (422, ["payload"])


def test_a_repeated_run_returns_the_first_run_even_if_the_definition_changed(api: Gateway) -> None:
    """Repeating a run with the same key returns the first run, even if the definition was changed or deleted."""
    put(api)
    key = {"idempotency-key": "k"}
    made = api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 7}}, key)
    put(api, parameters={}, nodes={"other": {"type": "report"}})
    again = api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 7}}, key)
    assert (again.status, again.body["id"]) == (201, made.body["id"])
    api.send("DELETE", NIGHTLY)
    assert api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 7}}, key).body["id"] == made.body["id"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "parameters.rows"),
        ({"parameters": {"rows": "7"}}, 422, "parameters.rows"),
        ({"parameters": {"rows": True}}, 422, "parameters.rows"),
        ({"parameters": {"rows": 7, "region": "mars"}}, 422, "parameters.region"),
        ({"parameters": {"rows": 7, "color": "red"}}, 422, "parameters.color"),
        ({"parameters": {"rows": 7}, "version": 9}, 422, "version"),
        ({"parameters": {"rows": 7}, "nodes": {}}, 422, "nodes"),
        ({"parameters": {"rows": 7}, "payload": 1}, 422, "payload"),
    ],
)
def test_an_invalid_definition_run_is_rejected_with_the_field(api: Gateway, body: Any, status: int, field: str) -> None:  # noqa: ANN401 - JSON
    """An error for an invalid run names the field, and no task is created."""
    put(api)
    refused = api.send("POST", f"{NIGHTLY}/runs", body)
    assert (refused.status, [*refused.faults]) == (status, [field])
    assert api.listed() == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nodes": {"a": {"type": "report", "payload": "<duetime.parameters.color>"}}}, "nodes.a.payload"),
        ({"nodes": {"a": {"type": "report", "name": "<duetime.parameters.region>"}}}, "nodes.a.name"),
        ({"nodes": {"a": {"type": "report", "payload": {"<duetime.parameters.region>": 1}}}}, "nodes.a.payload"),
        ({"nodes": {"a": {"type": "report", "payload": "<duetime.other>"}}}, "nodes.a.payload"),
        ({"nodes": {"a": {"type": "report", "depends_on": ["a"]}}}, "nodes.a.depends_on"),
        ({"nodes": {}}, "nodes"),
        ({"parameters": {"1": {}}, "nodes": {"a": {"type": "report"}}}, "parameters"),
        ({"parameters": {"a": {"type": "text"}}, "nodes": {"a": {"type": "report"}}}, "parameters.a.type"),
        (
            {"parameters": {"a": {"type": "integer", "default": "x"}}, "nodes": {"a": {"type": "report"}}},
            "parameters.a",
        ),
        ({"parameters": {"a": {"enum": []}}, "nodes": {"a": {"type": "report"}}}, "parameters.a.enum"),
        ({"name": "weekly"}, "name"),
    ],
)
def test_a_definition_that_no_run_could_use_is_rejected(api: Gateway, changes: dict[str, Any], field: str) -> None:
    """A definition that could never be run is refused by field name, and no version is created."""
    refused = put(api, **changes)
    assert refused.status == 422
    assert any(each.startswith(field) for each in refused.faults), refused.faults
    assert api.send("GET", NIGHTLY).status == 404


def test_running_a_missing_definition_returns_404_or_422(api: Gateway) -> None:
    """Running a missing definition returns 404 by its path, and 422 with the field by a task's target."""
    missing = api.send("POST", f"{NIGHTLY}/runs", {})
    assert (missing.status, missing.problem["code"]) == (404, "definition_not_found")
    target = {"kind": "topology", "definition": {"name": "nightly"}}
    refused = api.send("POST", "/v1/tasks", {"type": "topology", "target": target})
    assert (refused.status, [*refused.faults]) == (422, ["target.definition.name"])


def test_a_definition_that_a_schedule_runs_is_not_deleted(api: Gateway) -> None:
    """A definition that a schedule runs cannot be deleted."""
    put(api)
    target = {"kind": "topology", "definition": {"name": "nightly", "parameters": {"rows": 1}}}
    wrong = {"kind": "topology", "definition": {"name": "nightly"}}
    schedule = {"name": "daily", "cron": "0 2 * * *", "task": {"type": "topology", "target": wrong}}
    refused = api.send("POST", "/v1/schedules", schedule)
    assert (refused.status, [*refused.faults]) == (422, ["task.target.definition.parameters.rows"])
    made = api.send("POST", "/v1/schedules", {**schedule, "task": {"type": "topology", "target": target}})
    assert made.status == 201
    assert made.body["task"]["target"]["definition"] == {"name": "nightly", "version": None, "parameters": {"rows": 1}}
    used = api.send("DELETE", NIGHTLY)
    assert (used.status, used.problem["code"]) == (409, "definition_in_use")
    run = api.send("POST", "/v1/schedules/daily/run")
    assert run.body["target"]["definition"] == {
        "name": "nightly",
        "version": 1,
        "parameters": {"region": "eu", "rows": 1},
    }
    changed = api.send("PATCH", "/v1/schedules/daily", {"task": {"target": {"definition": {"version": 1}}}})
    assert changed.body["task"]["target"]["definition"] == {"name": "nightly", "version": 1, "parameters": {"rows": 1}}
    api.send("DELETE", "/v1/schedules/daily")
    assert api.send("DELETE", NIGHTLY).status == 200


@pytest.mark.parametrize("size", [1, 2_000], ids=["in the record", "outside the record"])
def test_a_definition_that_a_node_of_a_schedules_graph_runs_is_not_deleted(api: Gateway, size: int) -> None:
    """A definition that only a node, at any depth, of a schedule's own graph runs cannot be deleted."""
    put(api)
    definition = {"name": "nightly", "parameters": {"rows": 1}}
    inner = {"nodes": {"run": {"type": "topology", "target": {"kind": "topology", "definition": definition}}}}
    large = [sha256(bytes([number % 256])).hexdigest() for number in range(size)]
    nodes = {
        "report": {"type": "report", "payload": large},
        "inner": {"type": "topology", "target": {"kind": "topology"}, "payload": inner},
    }
    task = {"type": "topology", "target": {"kind": "topology"}, "payload": {"nodes": nodes}}
    made = api.send("POST", "/v1/schedules", {"name": "daily", "cron": "0 2 * * *", "task": task})
    assert made.status == 201, made.body
    used = api.send("DELETE", NIGHTLY)
    assert (used.status, used.problem["code"]) == (409, "definition_in_use")
    api.send("DELETE", "/v1/schedules/daily")
    assert api.send("DELETE", NIGHTLY).status == 200


def test_an_occurrence_placed_twice_has_the_graph_of_the_recorded_version(api: Gateway) -> None:
    """If two processes place an occurrence with different versions, its graph is from the version in its record."""
    large = [sha256(bytes([number])).hexdigest() for number in range(40)]
    put(api, parameters={}, nodes={"old": {"type": "report", "payload": large}})
    target = {"kind": "topology", "definition": {"name": "nightly"}}
    daily = {"name": "daily", "cron": "0 2 * * *", "task": {"type": "topology", "target": target}}
    assert api.send("POST", "/v1/schedules", daily).status == 201
    planner = composed(ScheduleServices).expander.planner
    tasks, stored = planner.occurrence_tasks, planner.stores.schedules.read("local", "daily")[0]
    assert stored is not None
    occurrence = Occurrence(NOW, NOW, NOW, "2026-11-21T02:30:00")
    older = tasks.task_of(stored)
    put(api, parameters={}, nodes={"new": {"type": "report", "payload": large}})
    newer = tasks.task_of(stored)
    late = planner.stores.contents.keep(stored.id_of(occurrence), payload_name(older.target), older.payload)
    made = tasks.produce(stored, Due(occurrence), newer)
    assert (late.is_outside, late.name != made.payload.name) == (True, True)
    tasks.produce(stored, Due(occurrence), older)
    found = api.send("GET", f"/v1/tasks/{made.id}").body
    assert (found["target"]["definition"]["version"], [*found["payload"]["nodes"]]) == (2, ["new"])


def test_a_version_that_is_written_after_a_deletion_is_not_shown(api: Gateway) -> None:
    """A version that is written late, after a deletion, is not shown, and is removed by the next deletion."""
    first = put(api).body["version"]
    definitions = composed(CoreServices).stores.definitions
    copied, _ = definitions.read("local", "nightly")
    assert copied is not None
    api.send("DELETE", NIGHTLY)
    definitions.keep_earlier("local", copied)
    put(api)
    assert [each["version"] for each in api.send("GET", f"{NIGHTLY}/versions").body["versions"]] == [first + 2]
    assert api.send("GET", NIGHTLY, query=f"version={first}").status == 404
    api.send("DELETE", NIGHTLY)
    assert definitions.list_earlier("local", "nightly") == []


def test_a_run_that_replaces_another_by_unique_key_keeps_its_id(api: Gateway) -> None:
    """A run that replaces a run with the same unique key keeps the earlier id, and has the new parameters and graph."""
    put(api)
    unique = {"unique": {"key": "import", "on_conflict": "replace"}, "delay_seconds": 600}
    made = api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 1}, **unique}).body
    again = api.send("POST", f"{NIGHTLY}/runs", {"parameters": {"rows": 2, "region": "us"}, **unique})
    assert (again.status, again.body["id"]) == (200, made["id"])
    found = api.send("GET", f"/v1/tasks/{made['id']}").body
    assert found["payload"]["nodes"]["fetch"]["payload"] == {"from": "s3://us/in", "rows": 2}
    assert found["target"]["definition"]["parameters"] == {"region": "us", "rows": 2}
