"""Which version of a topology definition each occurrence of a schedule runs, even after the definition changes."""

from __future__ import annotations

from typing import Any

from tests.scenarios.scenario import MINUTE, PLAIN
from tests.scenarios.schedules import Schedules
from tests.simulation import works

DEFINITION = "/v1/topologies/definitions/import"
RATE = "5 minutes"


class DefinitionRuns(Schedules):
    """A scenario about a schedule that runs a definition."""

    def put(self, node: str, **fields: Any) -> int:  # noqa: ANN401 - JSON
        """Store a definition whose only node has this name, with a payload outside the record; return the version."""
        payload = {"region": "<duetime.parameters.region>", "rows": works.LARGE}
        parameters = {"region": {"default": "eu"}}
        body = {"parameters": parameters, "nodes": {node: {"type": PLAIN, "payload": payload}}, **fields}
        stored = self.ask("PUT", DEFINITION, body)
        assert stored.status in {200, 201}, stored.body
        return int(stored.body["version"])

    def make_schedule(self, **definition: Any) -> None:  # noqa: ANN401 - JSON
        """Create a schedule that runs the definition every five minutes."""
        target = {"kind": "topology", "definition": {"name": "import", **definition}}
        self.make(rate=RATE, task={"type": "import", "target": target})

    def versions(self) -> list[tuple[int, str]]:
        """The version and the first node of each run, in order of occurrences."""
        runs = [self.ask("GET", f"/v1/tasks/{task.id}").body for task in self.placed()]
        return [(run["target"]["definition"]["version"], next(iter(run["payload"]["nodes"]))) for run in runs]


def test_an_occurrence_runs_the_definition_version_of_its_placement() -> None:
    """Occurrences placed before a change to the definition keep their graph; later occurrences have the new graph."""
    with DefinitionRuns() as scenario:
        scenario.put("before")
        scenario.make_schedule(parameters={"region": "us"})
        scenario.run(6 * MINUTE)
        scenario.put("after")
        scenario.run(12 * MINUTE)
        versions = scenario.versions()
        assert set(versions) == {(1, "before"), (2, "after")}
        assert versions == sorted(versions)
        nodes = [task for task in scenario.watching.tasks() if task.node_ref is not None]
        asked = scenario.ask("GET", f"/v1/tasks/{nodes[0].id}").body
        assert asked["payload"]["region"] == "us"
        assert asked["schedule"]["name"] == "nightly"


def test_a_schedule_with_a_pinned_version_runs_only_that_version() -> None:
    """A schedule with a pinned version runs that version even if later versions exist."""
    with DefinitionRuns() as scenario:
        scenario.put("before")
        scenario.make_schedule(version=1)
        scenario.put("after")
        scenario.run(11 * MINUTE)
        assert set(scenario.versions()) == {(1, "before")}


def test_a_schedule_without_a_newly_required_parameter_is_paused() -> None:
    """If a new version needs a parameter that the schedule does not set, the schedule is paused and says why."""
    with DefinitionRuns() as scenario:
        scenario.put("before")
        scenario.make_schedule()
        scenario.run(6 * MINUTE)
        scenario.put("after", parameters={"region": {}, "rows": {"type": "integer"}})
        scenario.run(12 * MINUTE)
        found = scenario.schedule()
        assert found["state"] == "paused"
        assert "target.definition.parameters" in found["paused_reason"]
        assert set(scenario.versions()) == {(1, "before")}


def test_a_runs_conditions_use_the_parameters_of_the_run() -> None:
    """A run's conditions can use the run's parameters, alone or with parents' results, even in a sub-topology."""
    with DefinitionRuns() as scenario:
        nodes = {
            "load": {"type": PLAIN},
            "clean": {"type": PLAIN, "depends_on": ["load"], "when": "parameters.full"},
            "send": {"type": PLAIN, "depends_on": ["load"], "when": "parents.load.result == parameters.wanted"},
        }
        parameters = {"full": {"type": "boolean", "default": False}, "wanted": {"default": "done"}}
        stored = scenario.ask("PUT", DEFINITION, {"nodes": nodes, "parameters": parameters})
        assert stored.status == 201, stored.body
        scenario.target = lambda _phase, _context: "done"
        ran = []
        for values in ({}, {"full": True, "wanted": "other"}):
            made = scenario.ask("POST", f"{DEFINITION}/runs", {"parameters": values}).body["id"]
            scenario.run(MINUTE)
            shown = scenario.ask("GET", f"/v1/topologies/{made}").body
            assert shown["state"] == "succeeded"
            ran.append({key for key, node in shown["nodes"].items() if node["state"] == "succeeded"})
        assert ran == [{"load", "send"}, {"load", "clean"}]
        target = {"kind": "topology", "definition": {"name": "import", "parameters": {"full": True}}}
        outer = scenario.ask("POST", "/v1/topologies", {"nodes": {"inner": {"type": "topology", "target": target}}})
        scenario.run(MINUTE)
        inner = scenario.ask("GET", f"/v1/topologies/{outer.body['id']}").body["nodes"]["inner"]["task_id"]
        nodes = scenario.ask("GET", f"/v1/topologies/{inner}").body["nodes"]
        assert {key for key, node in nodes.items() if node["state"] == "succeeded"} == {"load", "clean", "send"}
