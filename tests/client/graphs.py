"""A deployment that implements the API's contract for topologies in memory; each read advances a topology by a step."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.client.deployment import Received

BEGAN = "2026-11-21T11:59:58Z"
ENDED = "2026-11-21T12:00:00Z"
TERMINAL = frozenset({"succeeded", "failed", "rolled_back", "cancelled"})


class GraphDeployment(Deployment):
    """Implements topologies in memory, by their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: deque[Mapping[str, Any]] = deque()
        """The changes that each read makes to a topology; `nodes` contains the node changes by name."""
        self.graphs: dict[str, dict[str, Any]] = {}

    def answer(self, request: Received) -> Answer:
        """Return the deployment's response to a request."""
        path = urlsplit(request.target).path.removeprefix("/stage/v1/")
        kind, *rest = path.split("/")
        if self.scripted or kind != "topologies":
            return super().answer(request)
        self.received.append(request)
        match request.method, [unquote(each) for each in rest]:
            case "POST", []:
                return Answer(201, self.begun(request.document, request.headers["Idempotency-Key"]))
            case "GET", []:
                return Answer(200, {"topologies": list(self.graphs.values()), "next_token": None})
            case "GET", [task_id] if task_id in self.graphs:
                return Answer(200, self.looked_at(task_id))
            case "POST", [task_id, "retry" | "cancel" | "pause" | "resume"] if task_id in self.graphs:
                return Answer(200, self.tasks[task_id])
            case _:
                return problem(404, "task_not_found", "there is no such task")

    def begun(self, body: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Create the task of a new topology."""
        task = self.create({"type": "topology", "payload": {"nodes": body["nodes"]}}, key)
        empty = {"task_id": None, "state": "blocked", "reason": None, "percent": 0, "expected_seconds": None}
        times = {"started_at": None, "finished_at": None, "when": None}
        nodes = {
            name: {
                **empty,
                **times,
                "type": node["type"],
                "depends_on": node.get("depends_on", []),
                "trigger_rule": "always",
            }
            for name, node in body["nodes"].items()
        }
        head = {"id": task["id"], "state": "running", "name": body.get("name"), "created_at": BEGAN, "run": 1}
        rest = {"requested_action": None, "error": None, "on_failure": "stop", "percent": 0, "version": 1}
        path = {"nodes": [next(iter(nodes))], "seconds": 1.0}
        self.graphs[task["id"]] = {
            **head,
            **rest,
            "started_at": BEGAN,
            "finished_at": None,
            "critical_path": path,
            "nodes": nodes,
        }
        return task

    def looked_at(self, task_id: str) -> dict[str, Any]:
        """Return the topology after one more step than at the last read."""
        graph = self.graphs[task_id]
        step = self.looks.popleft() if self.looks else {}
        for name, changes in step.get("nodes", {}).items():
            graph["nodes"][name] |= changes
        graph |= {name: value for name, value in step.items() if name != "nodes"}
        if graph["state"] in TERMINAL:
            graph["finished_at"] = ENDED
        graph["counts"] = Counter(node["reason"] or node["state"] for node in graph["nodes"].values())
        return graph
