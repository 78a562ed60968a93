"""Users who create topologies of a few nodes, and cancel, pause, retry and delete them."""

from __future__ import annotations

from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import MAX_TOPOLOGY_LEVELS
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.simulation import works
from tests.simulation.node_watching import is_by_user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.users import Users

PATH = "/v1/topologies"
_ANSWERED = range(200, 500)
_DEFINITION, _DEFINED = "simulated", 3
"""The prefix of the definitions' names, and a number N, where one in N topologies runs a definition."""
_LARGE = 0.03
"""The fraction of topologies with about a hundred nodes."""
_FEW = 10
_NESTED = 0.15
"""The fraction of nodes, except the first of each topology, that are topologies themselves."""
_MAPPED = 0.1
"""The fraction of the other nodes with parents that run once for each item in a list."""
_TYPES = [works.PLAIN, works.PLAIN, works.UNDONE, works.PHASED]
IF_SUCCEEDED, NEVER, BROKEN = "parents.{}.outcome == 'succeeded'", "parents.{}.result == 'never'", "parents.{}.outcome"
CONDITIONS = (IF_SUCCEEDED, IF_SUCCEEDED, NEVER, BROKEN)
"""Conditions on a parent: one that requires its success, one that is always false, and one that is not boolean."""
_RULES = [TriggerRule.ALL_SUCCESS] * 6 + list(TriggerRule)


class TopologyUsers:
    """Users' actions on topologies, at random times."""

    def __init__(self, simulation: FaultSimulation, users: Users) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self.users = users
        self.made: list[str] = []
        self._keys = count(1)

    def use(self, until: Millis) -> None:
        """Act at random until this time."""
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 60 * SECOND))
            if not self.made or (self.random.random() < 0.5 and len(self.made) < 4):
                self._create()
            else:
                self._control(self._one_of(self.random.choice(self.made)))

    def _create(self) -> None:
        number = next(self._keys)
        path, body, headers = PATH, self._body(), {"Idempotency-Key": f"topology-{number}"}
        version = self._defined(f"{_DEFINITION}-{number % 2}", body) if number % _DEFINED == 0 else None
        if version is not None:
            path = f"{PATH}/definitions/{_DEFINITION}-{number % 2}/runs"
            body = {"parameters": {"number": number}, "delay_seconds": body["delay_seconds"]}
        for _ in range(4):
            answer = self.users.ask("POST", path, body, headers=headers)
            if answer is not None and answer.status in _ANSWERED:
                self.simulation.watching.check(answer.status == 201, f"a topology was answered {answer.body}")
                if version is not None:
                    found = answer.body["target"]["definition"]["version"], answer.body["payload"]["nodes"]["n0"]
                    wanted = (version, number) == (found[0], found[1]["payload"])
                    self.simulation.watching.check(wanted, f"a run of version {version} is {found}")
                self.made.append(answer.body["id"])
                self.simulation.watching.accepted_topologies.append(answer.body["id"])
                return
            self.simulation.take(2 * SECOND)

    def _defined(self, name: str, body: dict[str, Any]) -> int | None:
        """Store the graph as the next version of a definition.

        Return the version's number, or `None` if there is no response.
        """
        nodes = {**body["nodes"], "n0": {**body["nodes"]["n0"], "payload": "<duetime.parameters.number>"}}
        graph = {key: body[key] for key in ("on_failure", "timeout_seconds")}
        definition = {**graph, "nodes": nodes, "parameters": {"number": {"type": "integer"}}}
        for _ in range(4):
            answer = self.users.ask("PUT", f"{PATH}/definitions/{name}", definition)
            if answer is not None and answer.status in {200, 201}:
                return int(answer.body["version"])
        return None

    def _body(self) -> dict[str, Any]:
        pick = self.random.choice
        on_failure = pick(["stop", "continue", "continue", "rollback"])
        # A rollback ends at a node that cannot be rolled back.
        types = [works.UNDONE, works.UNDONE, works.PHASED] if on_failure == "rollback" else _TYPES
        is_large = self.random.random() < _LARGE
        size = self.random.randint(60, 120) if is_large else self.random.randint(3, 8)
        return {
            **self._graph(on_failure, types, size),
            "timeout_seconds": pick([None, None, None, 240]),
            "delay_seconds": pick([0, 0, 30]),
        }

    def _graph(self, on_failure: str, types: Sequence[str], size: int, level: int = 1) -> dict[str, Any]:
        """A graph of this many nodes, some of which may be topologies themselves."""
        pick, is_large = self.random.choice, size > _FEW
        nodes: dict[str, Any] = {}
        for number in range(size):
            parents = [key for key in nodes if self.random.random() < (0.02 if is_large else 0.4)]
            nodes[f"n{number}"] = {
                "type": pick(types),
                "payload": pick([None, {"any": "json"}, works.LARGE]),
                "depends_on": parents,
                "trigger_rule": pick(_RULES).value,
                "inputs": [parent for parent in parents if self.random.random() < 0.3],
                "retry": {"max_attempts": pick([1, 2, 3]), "initial_seconds": 1},
                "timeout_seconds": 60,
                "notify_within_seconds": 60,
            }
            if self.random.random() < 0.1:
                on_timeout = pick(["fail", "reject", "approve"])
                nodes[f"n{number}"]["target"] = {"kind": "approval", "timeout_seconds": 60, "on_timeout": on_timeout}
                nodes[f"n{number}"]["type"] = "approval"
            elif number and level < MAX_TOPOLOGY_LEVELS and self.random.random() < _NESTED:
                graph = self._graph(on_failure, types, self.random.randint(1, 4), level + 1)
                nodes[f"n{number}"] |= {"target": {"kind": "topology"}, "type": "part", "inputs": [], "payload": graph}
                nodes[f"n{number}"].pop("notify_within_seconds")
            elif parents and level < MAX_TOPOLOGY_LEVELS and self.random.random() < _MAPPED:
                rule = pick([TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE, TriggerRule.NONE_FAILED]).value
                nodes[f"n{number}"] |= {"map": self._map(pick(parents)), "inputs": [], "trigger_rule": rule}
            # A node that does not depend on its parents' results cannot have a condition.
            if parents and nodes[f"n{number}"]["trigger_rule"] != TriggerRule.ALWAYS and self.random.random() < 0.25:
                nodes[f"n{number}"]["when"] = pick(CONDITIONS).format(pick(parents))
        return {"nodes": nodes, "on_failure": on_failure}

    def _map(self, parent: str) -> dict[str, Any]:
        """A map node over three items, or sometimes over a value that is not a list."""
        pick, outcome = self.random.choice, f"parents.{parent}.outcome"
        over = pick([f"[{outcome}, `2`, `3`]"] * 5 + [outcome])
        return {"over": over, "max_parallel": pick([None, 1, 2]), "tolerated_failures": pick([0, 0, 1])}

    def _one_of(self, topology: str) -> str:
        """A topology, or one of the topologies among its nodes."""
        inner = sorted(self.simulation.topologies.inner_topologies_of(topology))
        return self.random.choice(inner) if inner and self.random.random() < 0.3 else topology

    def _control(self, topology: str) -> None:
        path = f"{PATH}/{topology}"
        asked = [partial(self._ask, topology, verb) for verb in ("cancel", "pause", "resume")]
        calls: list[Callable[[], object]] = [*asked, partial(self._retry, topology)]
        self.simulation.topologies.controlled.add(topology)
        calls += [partial(self._decide, topology)] * 4
        calls += [calls[3], partial(self.users.ask, "GET", path), partial(self._delete, topology)]
        self.random.choice(calls)()

    def _decide(self, topology: str) -> None:
        """Approve or reject a topology's node.

        The node may be waiting for a decision, or may not even be an approval.
        """
        nodes = sorted(self.simulation.topologies.nodes_of(topology))
        waiting = [name for name in nodes if self.simulation.topologies.waits_for_approval(name)]
        if not nodes:
            return
        name, approve = self.random.choice(waiting or nodes), self.random.random() < 0.6
        # This uses a separate random generator, so that the other draws of a seed stay the same.
        payload = Random(f"{name} {self.simulation.time.now()}").choice([works.LARGE, 1, 2])  # noqa: S311 - not a secret
        # The second decision comes from another user, who does not know of the first decision.
        for given in [payload, 3] if approve else ["no", "never"]:
            body = {"approve": True, "payload": given} if approve else {"approve": False, "reason": given}
            self.simulation.topologies.signalled.add((name, approve))
            answer = self.users.ask("POST", f"/v1/tasks/{name}/signal", body)
            if answer is not None and answer.status == 200:
                found = answer.body["result"] if approve else (answer.body["error"] or {}).get("message")
                self.simulation.topologies.decided(name, approve=approve, given=given, found=found)

    def _delete(self, topology: str) -> None:
        """Delete a topology, which is refused while it runs, and expect that all its nodes are deleted, too."""
        nodes = self.simulation.topologies.nodes_of(topology)
        answer = self.users.ask("DELETE", f"/v1/tasks/{topology}")
        if answer is None or answer.status not in {204, 404} or topology not in self.made:
            return
        self.made.remove(topology)
        if not answer.goes_on:
            self.simulation.topologies.deleted[topology] = nodes
        again = self.users.ask("GET", f"{PATH}/{topology}")
        if again is not None:
            self.simulation.watching.check(again.status >= 400, f"{topology} was deleted, and is answered {again.body}")

    def _ask(self, topology: str, verb: str) -> None:
        """Cancel, pause or resume a topology. If the response says that all nodes are already affected, record this."""
        nodes = self.simulation.nodes
        if verb == "resume":
            nodes.let_go(topology)
        answer = self.users.ask("POST", f"{PATH}/{topology}/{verb}")
        if answer is None or answer.status not in {200, 202} or answer.goes_on:
            return
        if verb == "cancel" and answer.body["state"] in {"running", "cancelled"}:
            nodes.stopped(topology)
        elif verb == "pause" and answer.body["state"] == "running":
            nodes.held(topology)

    def read_any(self) -> None:
        """Read the accepted topologies, some of which may have been deleted."""
        for topology in self.made:
            self.users.ask("GET", f"{PATH}/{topology}")

    def _retry(self, topology: str) -> None:
        """Retry a topology, sometimes from chosen nodes, and expect another run if the response has status 200."""
        topologies = self.simulation.topologies
        runs, keys = topologies.runs_of(topology), topologies.keys_of(topology)
        self.simulation.nodes.let_go(topology)
        before = self.simulation.watching.record(topology)
        nodes = self.random.sample(keys, min(len(keys), 2)) if keys and self.random.random() < 0.5 else []
        # A topology that was already retried does not change if it has not failed since.
        ended = {State.FAILED, State.CANCELLED} | ({State.SUCCEEDED} if nodes else set())
        is_needed = before is not None and before.state in ended
        answer = self.users.ask("POST", f"{PATH}/{topology}/retry", {"nodes": nodes} if nodes else None)
        if answer is not None and answer.status == 200 and is_needed:
            topologies.retries[topology] = runs + 1
            for key in nodes:
                topologies.reruns[topology, key] = runs + 1

    def resume_all(self) -> None:
        """Resume each paused topology, which also resumes its inner topologies."""
        for task in self.simulation.watching.unfinished():
            is_held = task.state == "paused" or task.requested_action == "pause"
            if task.is_topology and is_held and is_by_user(task):
                self.simulation.nodes.let_go(task.id.text)
                self.users.ask("POST", f"{PATH}/{task.id}/resume")
