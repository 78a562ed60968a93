"""Invariants of topologies under all faults: nodes follow their parents, succeed once, and agree with the topology."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.task_items import task_of
from duetime.adapters.dynamodb.topology_run_state import DynamoTopologyStore
from duetime.domain.ids import TaskId
from duetime.domain.tasks.action_history import Action
from duetime.domain.tasks.approvals import REJECTED, TIMED_OUT, is_awaited
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.targets import ApprovalTarget, TopologyTarget
from duetime.domain.times import SECOND
from duetime.domain.topologies.graph import OnFailure, outline_of
from duetime.domain.topologies.run_state import is_of_present_run
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime_testing.simulation.machines import SKEW
from tests.simulation.topology_users import BROKEN, IF_SUCCEEDED, NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.run_state import RunState
    from tests.simulation.fault_simulation import FaultSimulation

_ENDED_BADLY = frozenset({State.FAILED, State.ROLLED_BACK, State.ROLLING_BACK, State.CANCELLED})
_SKIPPED = "skipped"
_AFTER_ALL = frozenset({TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE})
_PROMPT = 10 * SECOND
"""Without faults, how long after its parents a node may start, and how long after its nodes a topology may end."""


@dataclass
class TopologyWatching:
    """Watches the topologies of an account.

    Attributes:
        successes: how often each node's task has succeeded.
        controlled: the topologies on which a user has acted.
        retries: the number of runs that a topology must have, according to the retries that returned 200.
        reruns: the run in which, or after which, a node must have run, according to the retries that chose the node.
        retried: the tasks that users have retried and whose first end still has consequences.
        deleted: the nodes of the topologies that a user has deleted.
        signalled: the nodes for which users have requested approval (true) or rejection (false).
        decisions: the decisions that have been confirmed to users in responses, by node.
        graphs: the parsed graphs, by topology id and payload.
    """

    account: FaultSimulation
    successes: Counter[str] = field(default_factory=Counter)
    graphs: dict[tuple[str, Content], Graph] = field(default_factory=dict)
    controlled: set[str] = field(default_factory=set)
    retries: dict[str, int] = field(default_factory=dict)
    reruns: dict[tuple[str, str], int] = field(default_factory=dict)
    retried: set[str] = field(default_factory=set)
    deleted: dict[str, set[str]] = field(default_factory=dict)
    signalled: set[tuple[str, bool]] = field(default_factory=set)
    decisions: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        account = self.account
        self.store = DynamoTopologyStore(account.dynamodb, "tasks")  # type: ignore[arg-type]  # stands in for a client
        self.contents = SplitContentStore(account.dynamodb, "tasks", account.s3, "contents")  # type: ignore[arg-type]  # same

    def succeeded(self, name: str) -> None:
        """Record that a task has become `succeeded`, and check that this happens once."""
        self.successes[name] += 1
        self.account.watching.check(self.successes[name] == 1, f"{name} succeeded {self.successes[name]} times")

    def waits_for_approval(self, name: str) -> bool:
        """Whether a user may approve or reject a node now."""
        task = self.account.watching.record(name)
        return task is not None and is_awaited(task, self.account.time.now())

    def decided(self, name: str, *, approve: bool, given: object, found: object) -> None:
        """Check that a response which approves or rejects a node is correct and contradicts no earlier response.

        Args:
            name: the id of the node's task.
            approve: the user's decision.
            given: the payload of the approval, or the reason for the rejection.
            found: the result or the error message in the response, which must come from the same decision.
        """
        how = "approved with another payload" if approve else "rejected for another reason"
        self.account.watching.check(found == given, f"{name} was {how}: {found!r}")
        task, check = self.account.watching.record(name), self.account.watching.check
        before = self.decisions.setdefault(name, approve)
        check(before is approve or name in self.retried, f"{name} was approved and rejected")
        # The node may have been rolled back or retried since.
        wanted = {State.SUCCEEDED, State.ROLLING_BACK, State.ROLLED_BACK} if approve else {State.FAILED}
        is_so = task is None or task.erased or task.state in wanted or name in self.retried
        check(is_so, f"{name} was decided ({approve}), and is {task and task.state}")
        self.account.expiries.check_kept(name)

    def moved(self, before: State, after: State, item: Mapping[str, Any]) -> None:
        """Check that an approval ends by a user's decision, or by the default after its timeout."""
        if before in TERMINAL or after not in {State.SUCCEEDED, State.FAILED}:
            return
        task = task_of(item)
        target, error = task.target, task.error
        if not isinstance(target, ApprovalTarget) or (error is not None and error.type not in {REJECTED, TIMED_OUT}):
            return
        approved = task.state is State.SUCCEEDED
        is_decided = any(each.action in {Action.APPROVED, Action.REJECTED} for each in task.actions.records[-1:])
        timeout_at = max(task.due_at, task.reopened_at or 0) + target.timeout_seconds * SECOND
        is_over = self.account.time.now() + 2 * SKEW >= timeout_at and approved is (target.on_timeout == "approve")
        is_asked = task.node_ref is None or (task.id.text, approved) in self.signalled
        check = self.account.watching.check
        check((is_decided and is_asked) or is_over, f"{task.id} is {task.state}, and nobody has decided that")
        check(self.account.time.now() + 2 * SKEW >= task.due_at, f"{task.id} was decided before it was due")

    def reopened(self, before: State, task: Task) -> None:
        """Check that only failed tasks are retried, including tasks that had succeeded and whose rollback failed.

        Among succeeded tasks, only topologies run again, starting with the nodes that users have chosen.
        """
        is_rerun = isinstance(task.target, TopologyTarget) and bool(task.rerun_nodes)
        self.account.watching.check(before is State.FAILED or is_rerun, f"{task.id} had succeeded, and is to run again")
        self.successes[task.id.text] = 0
        self.retried.add(task.id.text)

    def began(self, task: Task, phase: str) -> None:
        """Check that a node's rule allows the node to start in the current states of its parents."""
        node_ref = task.node_ref
        if node_ref is None or phase == "clean":
            return
        watching = self.account.watching
        whole, run_state = watching.record(node_ref.topology.text), self.store.read(node_ref.topology)
        if phase == "rollback":
            if whole is not None:
                self.account.nodes.began(task, phase, whole, self._graph(whole))
            return
        if whole is None or run_state is None:
            watching.check(False, f"{task.id} began, and its topology {node_ref.topology} has not")  # noqa: FBT003 - it does not hold
            return
        if is_of_present_run(run_state, whole) and task.id == run_state.task_id(node_ref.key):
            self.account.nodes.began(task, phase, whole, self._graph(whole))
        node = self._graph(whole).by_key[node_ref.key]
        parents = [watching.record(run_state.task_id(parent).text) for parent in node.depends_on]
        for key, each in zip(node.depends_on, parents, strict=True):
            # A node that a user retries independently of its topology's runs may find its parents in any state.
            is_its = is_of_present_run(run_state, whole) and task.id == run_state.task_id(node_ref.key)
            may_expire = each is not None and each.expires_at is not None
            concerns = is_its and may_expire and not whole.is_terminal
            watching.check(not concerns, f"{task.id}, node {node_ref.key}, began, and its parent {key} may expire")
        told = ", ".join(
            f"{key} {each.state if each else 'missing'}" for key, each in zip(node.depends_on, parents, strict=True)
        )
        # If a parent was retried, its earlier failure may have let the child start.
        is_disturbed = any(run_state.task_id(parent).text in self.retried for parent in node.depends_on)
        watching.check(
            is_disturbed or task.id != run_state.task_id(node_ref.key) or _may_start(node, parents),
            f"{task.id}, node {node_ref.key} of {node_ref.topology}, began under {node.trigger_rule} while its parents "
            f"are {told}",
        )
        may_begin = is_disturbed or task.id.text in self.retried or _holds(node, parents)
        watching.check(
            may_begin or task.id != run_state.task_id(node_ref.key),
            f"{task.id}, node {node_ref.key} of {node_ref.topology}, began, and its condition is {node.when}: {told}",
        )
        if task.attempt == 1 and node.trigger_rule in _AFTER_ALL and self._is_undisturbed(whole):
            claimed_at = watching.claimed_at.get(task.id.text, 0)
            ends = [each.finished_at or claimed_at for each in parents if each is not None]
            late = claimed_at - max(ends, default=claimed_at)
            watching.check(
                late <= _PROMPT, f"{task.id}, node {node_ref.key}, began {late} ms after the last of its parents"
            )

    def runs_of(self, name: str) -> int:
        """The number of runs that a topology has begun."""
        run_state = self.store.read(TaskId(name))
        return run_state.number if run_state else 0

    def keys_of(self, name: str) -> list[str]:
        """The names of a topology's nodes; the result is empty if the topology has been deleted."""
        whole = self.account.watching.record(name)
        is_there = whole is not None and not whole.erased and isinstance(whole.target, TopologyTarget)
        return sorted(self._graph(whole).by_key) if whole is not None and is_there else []

    def nodes_of(self, name: str) -> set[str]:
        """The tasks of a topology's nodes in all its runs, including the nodes of inner topologies."""
        found = {
            task.id.text
            for task in self.account.watching.tasks()
            if task.node_ref is not None and task.node_ref.topology.text == name
        }
        return found.union(*map(self.nodes_of, found))

    def inner_topologies_of(self, name: str) -> set[str]:
        """The topologies among a topology's nodes."""
        found = {each: self.account.watching.record(each) for each in self.nodes_of(name)}
        return {each for each, task in found.items() if task is not None and task.is_topology}

    def _check_deleted(self, name: str, nodes: set[str]) -> None:
        """Check that all nodes of a deleted topology are deleted."""
        check = self.account.watching.check
        records = {each: self.account.watching.record(each) for each in (name, *nodes)}
        left = {each for each, task in records.items() if task is not None and not task.erased}
        # A node that a user retries at the time of the deletion runs to its end.
        check(left <= self.retried, f"{name} was deleted, and {sorted(left)} are left")

    def _is_undisturbed(self, whole: Task) -> bool:
        """Whether nothing should delay a topology: no faults, and no user who acts on it or on its outer topology."""
        outer = None if whole.node_ref is None else self.account.watching.record(whole.node_ref.topology.text)
        is_alone = outer is None or self._is_undisturbed(outer)
        return is_alone and not self.account.faulty and whole.id.text not in self.controlled

    def _has_effects(self, node: Task) -> bool:
        """Whether a complete rollback should have rolled back this node, but has not."""
        is_ended = node.state is State.SUCCEEDED or (node.state is State.FAILED and node.started_at is not None)
        return is_ended and node.id.text not in self.retried

    def _graph(self, whole: Task) -> Graph:
        # When a map is released, its payload is replaced by the nodes for its items.
        key = whole.id.text, whole.payload
        if key not in self.graphs:
            self.graphs[key] = outline_of(self.contents.fetch(whole.id, whole.payload))
        return self.graphs[key]

    def check_end(self, accepted: Sequence[str]) -> None:
        """Check that each topology's outcome agrees with its nodes' outcomes, and that it has no work left."""
        for name in accepted:
            whole = self.account.watching.record(name)
            if whole is None:
                self.account.watching.check(False, f"{name} was accepted and is not there")  # noqa: FBT003 - same
            elif isinstance(whole.target, TopologyTarget):
                self._check_whole(whole)
        for name, nodes in self.deleted.items():
            self._check_deleted(name, nodes)
        for execution in self.account.states.running():
            self.account.watching.check(False, f"the execution {execution.name} still runs")  # noqa: FBT003 - same

    def _check_whole(self, whole: Task) -> None:
        check, run_state = self.account.watching.check, self.store.read(whole.id)
        if run_state is None:
            never = whole.state in {State.CANCELLED, State.FAILED}
            check(never, f"{whole.id} is {whole.state}, and never began")
            return
        graph = self._graph(whole)
        self.account.nodes.check_end(whole, graph, run_state.begun_at)
        is_lost = (
            run_state.number < self.retries.get(whole.id.text, 0) and whole.error and whole.error.type == "NodesFailed"
        )
        check(not is_lost, f"{whole.id} was to be run again, and ended as its last run had")
        self._check_rerun(whole, graph, run_state)
        nodes = {key: self.account.watching.record(run_state.task_id(key).text) for key in graph.by_key}
        states = {key: node.state if node else None for key, node in nodes.items()}
        told = f"{whole.id} is {whole.state}, its nodes are " + ", ".join(f"{k} {s}" for k, s in states.items())
        for key, node in nodes.items():
            lives = node is None or (node.expires_at or 0) >= (whole.expires_at or 0)
            check(lives, f"{whole.id} expires at {whole.expires_at}, its node {key} at {node and node.expires_at}")
        for key, node in nodes.items():
            is_skipped = node is not None and node.node_ref is not None and node.node_ref.note == _SKIPPED
            check(
                not is_skipped or (node is not None and node.started_at is None), f"{key} was skipped, and ran: {told}"
            )
        for node in nodes.values():
            if node is not None and node.is_topology:
                self._check_whole(node)
        bad = [key for key, node in nodes.items() if node is None or _is_bad(node)]
        if whole.state is State.SUCCEEDED:
            check(len(bad) <= graph.tolerated_failures or graph.on_failure is OnFailure.CONTINUE, told)
            check(all(node is not None and node.finished_at for node in nodes.values()), f"{told}; not all have ended")
            late = (whole.finished_at or 0) - max(node.finished_at or 0 for node in nodes.values() if node)
            check(late <= _PROMPT or not self._is_undisturbed(whole), f"{whole.id} ended {late} ms after its nodes")
        elif whole.state is State.ROLLED_BACK:
            left = [key for key, node in nodes.items() if node is not None and self._has_effects(node)]
            check(not left, f"{told}; {left} are not rolled back")
        elif whole.state is State.FAILED and whole.error is not None and whole.error.type == "NodesFailed":
            is_by_hand = any(run_state.task_id(key).text in self.retried for key in nodes)
            check(len(bad) > graph.tolerated_failures or is_by_hand, told)

    def _check_rerun(self, whole: Task, graph: Graph, run_state: RunState) -> None:
        """Check that the chosen nodes have run again, and that all their dependents have run after them."""
        runs = {key: self.reruns.get((whole.id.text, key), 0) for key in graph.order}
        for key in graph.order:
            runs[key] = max([runs[key], *(runs[parent] for parent in graph.by_key[key].depends_on)])
            # A retry that a user cancelled before it was planned has no run.
            is_there = run_state.number_of(key) >= min(runs[key], run_state.number)
            self.account.watching.check(
                is_there, f"{whole.id}, node {key}, is of run {run_state.number_of(key)}, not {runs[key]}"
            )


def _is_bad(node: Task) -> bool:
    """Whether a node's work was not done; a skipped node had no work to do."""
    note = node.node_ref.note if node.node_ref else ""
    return node.state in _ENDED_BADLY and note != _SKIPPED


def _holds(node: Node, parents: Sequence[Task | None]) -> bool:
    """Whether a condition of `topology_users` is true, evaluated independently of duetime's code."""
    for key, parent in zip(node.depends_on, parents, strict=True):
        if node.when == IF_SUCCEEDED.format(key):
            return parent is not None and parent.state is State.SUCCEEDED
        if node.when in {NEVER.format(key), BROKEN.format(key)}:
            return False
    return True


def _may_start(node: Node, parents: Sequence[Task | None]) -> bool:
    """Whether a rule allows a node to start in its parents' states, decided independently of duetime's code."""
    ended = [
        each for each in parents if each is not None and (each.state is State.SUCCEEDED or each.state in _ENDED_BADLY)
    ]
    good = [each for each in ended if each.state is State.SUCCEEDED]
    bad = [each for each in ended if _is_bad(each)]
    complete = len(ended) == len(parents)
    match node.trigger_rule:
        case _ if not parents:
            return True
        case TriggerRule.ALL_SUCCESS:
            return len(good) == len(parents)
        case TriggerRule.ALL_DONE:
            return complete
        case TriggerRule.ONE_SUCCESS:
            return bool(good)
        case TriggerRule.ONE_FAILED:
            return bool(bad)
        case TriggerRule.NONE_FAILED:
            return complete and not bad
        case _:
            return True
