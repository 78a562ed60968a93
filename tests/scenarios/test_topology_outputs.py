"""The results of chosen nodes are part of their topology's result."""

from __future__ import annotations

from typing import Any

from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import PLAIN

LARGE = [f"row {number}" for number in range(2_000)]
NODES: dict[str, dict[str, Any]] = {
    "count": {"type": PLAIN},
    "rows": {"type": PLAIN, "depends_on": ["count"]},
    "never": {"type": PLAIN, "depends_on": ["count"], "trigger_rule": "one_failed"},
}


class Outputs(Graphs):
    """A scenario whose nodes have results.

    Attributes:
        results: the result of each node.
    """

    def __init__(self) -> None:
        super().__init__()
        self.results: dict[str, Any] = {"count": 3, "rows": LARGE}

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return the node's result."""
        super().act(phase, context, payload)
        return self.results.get(self.key_of(context.task_id))

    def result(self) -> Any:  # noqa: ANN401 - any JSON
        """The result of the topology's task."""
        return self.ask("GET", f"/v1/tasks/{self.topology}").body["result"]


def test_a_topology_has_the_outputs_of_its_nodes() -> None:
    """A topology's outputs contain the chosen nodes' results, and null for a node that did not run."""
    with Outputs() as graphs:
        graphs.submit(NODES, outputs=["rows", "never"])
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.result()["outputs"] == {"rows": LARGE, "never": None}
        assert graphs.ask("GET", f"/v1/topologies/{graphs.topology}").body["outputs"] == ["rows", "never"]


def test_outputs_that_are_too_large_fail_the_topology() -> None:
    """Results that are too large together fail the topology with `OutputsTooLarge`."""
    with Outputs() as graphs:
        graphs.results = {"count": "x" * 200_000, "rows": "y" * 200_000}
        graphs.submit(NODES, outputs=["count", "rows"])
        ended = graphs.run_until_ended()
        assert ended.error is not None
        assert (ended.state, ended.error.type) == ("failed", "OutputsTooLarge")
