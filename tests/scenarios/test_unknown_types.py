"""Types without a known handler are refused, unless the request allows them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from duetime.environment_variables import Variable
from tests.scenarios.scenario import PLAIN, Scenario
from tests.simulation.account import PULLED
from tests.simulation.endpoints import URL

LATER = {"type": "later", "allow_unknown_type": True}


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a scenario, once begun
    """A deployment with a handler for only one type."""
    types = ModuleType("types_of_a_scenario")
    types.TYPES = (PLAIN,)  # type: ignore[attr-defined]  # set when the layers are built
    monkeypatch.setitem(sys.modules, types.__name__, types)
    with Scenario() as scenario:
        scenario.environ[Variable.HANDLER_TYPES] = types.__name__
        yield scenario


def faults(reply: Any) -> dict[str, str]:  # noqa: ANN401 - see `scenario.py`
    """The errors in a response with status 422."""
    assert (reply.status, reply.body["code"]) == (422, "fields_invalid")
    return {fault["field"]: fault["reason"] for fault in reply.body["errors"]}


def test_the_error_for_an_unknown_type_lists_the_known_types(scenario: Scenario) -> None:
    """The error for an unknown type lists the known types, which have a handler or are pulled."""
    (reason,) = [faults(scenario.ask("POST", "/v1/tasks", {"type": "later"}))["type"]]
    assert all(text in reason for text in (repr("later"), repr(PLAIN), repr(PULLED), "allow_unknown_type"))
    assert scenario.ask("GET", "/v1/tasks").body["tasks"] == []
    batch = scenario.ask("POST", "/v1/tasks/batch", {"tasks": [{"type": PLAIN}, {"type": "later"}, LATER]})
    assert [each["status"] for each in batch.body["results"]] == [201, 422, 201]
    assert batch.body["results"][1]["problem"]["errors"][0]["field"] == "tasks[1].type"


@pytest.mark.parametrize(
    "body",
    [{"type": PLAIN}, {"type": PULLED}, {"type": "any", "target": {"kind": "http", "url": URL}}, LATER],
    ids=["handled", "pulled", "http", "allowed"],
)
def test_types_with_handlers_or_pull_workers_are_accepted(scenario: Scenario, body: dict[str, Any]) -> None:
    """Types with a handler or pull workers, HTTP targets and explicitly allowed types are accepted."""
    assert scenario.ask("POST", "/v1/tasks", {**body, "delay_seconds": 3600}).status == 201


def test_nodes_are_checked_alike_in_every_kind_of_request(scenario: Scenario) -> None:
    """Nodes are checked in the same way in a topology, task, batch, schedule or change."""
    graph: dict[str, Any] = {"nodes": {"fetch": {"type": PLAIN}, "later": {"type": "later", "depends_on": ["fetch"]}}}
    task = {"type": "nightly", "target": {"kind": "topology"}, "payload": graph}
    node = "payload.nodes.later.type"
    assert list(faults(scenario.ask("POST", "/v1/topologies", graph))) == ["nodes.later.type"]
    assert list(faults(scenario.ask("POST", "/v1/tasks", task))) == [node]
    batch = scenario.ask("POST", "/v1/tasks/batch", {"tasks": [task]}).body["results"][0]
    assert [fault["field"] for fault in batch["problem"]["errors"]] == [f"tasks[0].{node}"]
    schedule = {"name": "nightly", "cron": "0 * * * *", "task": task}
    assert list(faults(scenario.ask("POST", "/v1/schedules", schedule))) == [f"task.{node}"]
    graph["nodes"]["later"]["allow_unknown_type"] = True
    made = scenario.ask("POST", "/v1/tasks", {**task, "delay_seconds": 3600})
    assert made.status == 201
    graph["nodes"]["later"]["allow_unknown_type"] = False
    changed = scenario.ask("PATCH", f"/v1/tasks/{made.body['id']}", {"payload": graph})
    assert list(faults(changed)) == [node]


def test_a_nonpublic_address_is_rejected_in_nodes(scenario: Scenario) -> None:
    """An address that is not public is also refused in nodes."""
    inside = {"type": "any", "target": {"kind": "http", "url": "https://127.0.0.1/"}}
    task = {"type": "nightly", "target": {"kind": "topology"}, "payload": {"nodes": {"a": inside}}}
    assert list(faults(scenario.ask("POST", "/v1/tasks", task))) == ["payload.nodes.a.target.url"]


def test_schedules_and_nodes_of_unknown_types_are_rejected(scenario: Scenario) -> None:
    """Templates are checked in the same way as tasks, but only if a change contains the task."""
    schedule = {"name": "hourly", "cron": "0 * * * *"}
    unknown = {"type": "later"}
    assert list(faults(scenario.ask("POST", "/v1/schedules", {**schedule, "task": unknown}))) == ["task.type"]
    assert scenario.ask("POST", "/v1/schedules", {**schedule, "task": LATER}).status == 201
    assert scenario.ask("PATCH", "/v1/schedules/hourly", {"cron": "30 * * * *"}).status == 200
    assert list(faults(scenario.ask("PATCH", "/v1/schedules/hourly", {"task": {"type": "other"}}))) == ["task.type"]
    nodes = scenario.ask("POST", "/v1/topologies", {"nodes": {"first": unknown}})
    assert list(faults(nodes)) == ["nodes.first.type"]
    assert scenario.ask("POST", "/v1/topologies", {"nodes": {"first": LATER}}).status == 201


def test_any_type_is_accepted_if_handlers_were_not_imported() -> None:
    """If the handlers were not imported at build time, any type is accepted."""
    with Scenario() as scenario:
        assert scenario.ask("POST", "/v1/tasks", {"type": "later", "delay_seconds": 3600}).status == 201


def test_every_deployment_handles_the_probe_type(scenario: Scenario) -> None:
    """With any handlers, a probe is accepted, fails twice as requested, and then succeeds."""
    body = {"type": "duetime.probe", "payload": {"fail_times": 2}, "retry": {"initial_seconds": 1}}
    created = scenario.ask("POST", "/v1/tasks", body)
    assert created.status == 201
    path = f"/v1/tasks/{created.body['id']}"
    assert scenario.run_until(lambda: scenario.record(created.body["id"]).is_terminal)
    result = scenario.ask("GET", path).body["result"]
    assert (result["attempt"], result["fence"], bool(result["process"])) == (3, 3, True)
    assert result["ended_at_ms"] >= result["started_at_ms"]
