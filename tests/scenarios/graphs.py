"""Helpers for topology scenarios: they create topologies, control them and look up their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scenarios.scenario import HOUR, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

PATH = "/v1/topologies"
DIAMOND: dict[str, dict[str, Any]] = {
    "top": {"type": PLAIN},
    "left": {"type": PLAIN, "depends_on": ["top"]},
    "right": {"type": PLAIN, "depends_on": ["top"]},
    "bottom": {"type": PLAIN, "depends_on": ["left", "right"]},
}


class Graphs(Scenario):
    """A scenario about one topology.

    Attributes:
        topology: the id of the topology's task, once the topology has been submitted.
        ran: the nodes whose targets were called to run, in order.
        undone: the nodes whose targets were called to roll back, in order.
    """

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.topology = ""
        self.ran: list[str] = []
        self.undone: list[str] = []

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - a handler gets it
        """Note the node whose target is called, then behave as the scenario says."""
        if key := self.key_of(context.task_id):
            {"run": self.ran, "rollback": self.undone}.get(phase, []).append(key)
        return super().act(phase, context, payload)

    def key_of(self, task_id: str) -> str:
        """The node that a task belongs to; empty if the task is not a node."""
        node_ref = self.record(task_id).node_ref
        return node_ref.key if node_ref else ""

    def submit(self, nodes: dict[str, dict[str, Any]], **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create the topology."""
        made = self.ask("POST", PATH, {"nodes": nodes, **fields})
        assert made.status == 201, made.body
        self.topology = str(made.body["id"])
        return self.topology

    def until_answered(self, action: str) -> None:
        """Pause, resume or cancel the topology; repeat the request while its response is a 5xx."""
        for _ in range(20):
            if self.ask("POST", f"{PATH}/{self.topology}/{action}").status < 500:
                return
            self.run(2 * SECOND)

    def whole(self) -> Task:
        """The topology's own task."""
        return self.record(self.topology)

    def node(self, key: str) -> Task:
        """The node's task in the current run."""
        run_state = self.topologies.store.read(self.whole().id)
        assert run_state is not None
        return self.record(run_state.task_id(key).text)

    def has_node(self, key: str) -> bool:
        """Whether a node has a task in the current run."""
        run_state = self.topologies.store.read(self.whole().id)
        return run_state is not None and self.watching.record(run_state.task_id(key).text) is not None

    def run_until_ended(self, within: Millis = HOUR) -> Task:
        """Let time pass until the topology has ended and its follow-up is done."""
        assert self.run_until(lambda: self.whole().finished_at is not None, within, SECOND), self.whole()
        return self.whole()

    def executions(self) -> dict[str, str]:
        """The statuses of the topology's executions, keyed by attempt fence."""
        return {each.name.rpartition("-")[2]: str(each.status) for each in self.states.executions.values()}
