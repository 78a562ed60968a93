"""Defects in topologies."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a parent that has succeeded counts twice",
        "domain/topologies/node_status.py",
        "return Counts(len(node.depends_on), seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])",
        "return Counts(len(node.depends_on), 2 * seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])",
    ),
    Mutant(
        "the end of a node is not reported to the state machine",
        "services/topologies/node_finished.py",
        "(token := self.store.read_token(task.id)) is not None:",
        "(token := self.store.read_token(task.id)) is not None and False:",
    ),
    Mutant(
        "the end of a node does not release its children",
        "services/topologies/node_finished.py",
        "return self.nodes.decide(topology_run, key, found, tasks[key])\n",
        "return None\n",
    ),
    Mutant(
        "a pause does not stop nodes from starting",
        "services/topologies/reconciler.py",
        "        return [partial(self._hold, topology_run, key) for key in ready]\n",
        "        return [partial(self._hold, topology_run, key) for key in ready if not key]\n",
    ),
    Mutant(
        "the last run of a topology is mistaken for a run that was requested later",
        "domain/topologies/run_state.py",
        "return task.reopened_fence is None or run_state.fence > task.reopened_fence",
        "return True",
    ),
    Mutant(
        "descendants of a node that is chosen to run again are not run again",
        "domain/topologies/run_state.py",
        "    wanted = _with_descendants(graph, chosen)\n",
        "    wanted = frozenset(chosen)\n",
    ),
    Mutant(
        "the plan of a retry ignores the nodes that the retry chose",
        "services/topologies/state_machine_steps.py",
        "retry_plan(graph, statuses, task.rerun_nodes).kept",
        "retry_plan(graph, statuses).kept",
    ),
    Mutant(
        "a node's expiry depends on its own end, not on its topology's end",
        "services/outcomes/outcome.py",
        'sets["expires_at"] = None if task.node_ref is not None else ended_at + self.retention',
        'sets["expires_at"] = ended_at + self.retention',
    ),
    Mutant(
        "the end of a topology does not let its nodes expire",
        "services/topologies/node_finished.py",
        "            if not self.reconciler.dissolve(task):\n"
        "                self.reconciler.retention.let_expire(task.id)\n",
        "            self.reconciler.dissolve(task)\n",
    ),
    Mutant(
        "a map fails with the last failure that it should tolerate",
        "domain/topologies/run_progress.py",
        "failures > graph.tolerated_failures\n",
        "failures >= max(graph.tolerated_failures, 1)\n",
    ),
    Mutant(
        "the expiry of an inner topology's nodes depends on its end, not on the outer topology's end",
        "services/topologies/deletion.py",
        "        return outer is not None and outer.is_present and self.is_needed(outer)\n",
        "        return False\n",
    ),
    Mutant(
        "an inner topology counts as rolled back before its nodes are rolled back",
        "services/topologies/reconciler.py",
        "        if found.state is State.ROLLED_BACK:\n",
        "        if found.state is not State.FAILED:\n",
    ),
    Mutant(
        "a node begins although its topology was stopped",
        "services/topologies/repository.py",
        "        is_running = self.task.state is State.RUNNING and self.task.requested_action is None\n"
        "        return is_running and not self.run_state.stopped\n",
        "        return self.task.state is State.RUNNING\n",
    ),
    Mutant(
        "a rollback does not wait for the rollbacks of a node's dependents",
        "domain/topologies/run_progress.py",
        "first = next(iter(reverse_levels(graph, rolling_back | wanted)), ())",
        "first = (*rolling_back, *wanted)",
    ),
    Mutant(
        "an execution that was stopped is not replaced",
        "services/topologies/state_machine_steps.py",
        "if self.machine.is_running(task.id, task.fence):",
        "if True:",
    ),
    Mutant(
        "a topology's deadline is not enforced",
        "services/topologies/repository.py",
        "return None if seconds is None else self.run_state.begun_at + seconds * SECOND",
        "return None",
    ),
    Mutant(
        "running nodes of a cancelled topology are not asked to stop",
        "domain/topologies/run_progress.py",
        "stop = tuple(key for key in running if at_once and not statuses[key].is_stopping)",
        "stop = ()",
    ),
    Mutant(
        "a failure does not stop a topology that should stop when a node fails",
        "domain/topologies/run_progress.py",
        "return graph.on_failure is not OnFailure.CONTINUE and failures > graph.tolerated_failures",
        "return False",
    ),
    Mutant(
        "the end of a node before its wait begins is not reported",
        "services/topologies/state_machine_steps.py",
        "if status_of(self.stores.tasks.read(task_id)).has_ended:",
        "if False:",
    ),
    Mutant(
        "nodes that have not started are not cancelled when their topology stops",
        "services/topologies/reconciler.py",
        "            *(partial(self.nodes.dismiss, topology_run, key, Reason.STOPPED) for key in found.cancel),\n",
        "",
    ),
    Mutant(
        "a topology that fails is not rolled back",
        "domain/topologies/run_progress.py",
        "if graph.on_failure is OnFailure.ROLLBACK and requested_action is not RequestedAction.CANCEL:",
        "if False:",
    ),
    Mutant(
        "the nodes of a deleted topology are not deleted",
        "services/topologies/deletion.py",
        "        if isinstance(task.target, TopologyTarget):\n            self._erase_nodes(owner, task_id)\n",
        "",
    ),
    Mutant(
        "a node runs although its condition is false",
        "services/topologies/node_transitions.py",
        "            if self.conditions.hold(topology_run, node):\n",
        "            if self.conditions.hold(topology_run, node) or True:\n",
    ),
    Mutant(
        "an approval ends without a decision",
        "domain/tasks/approvals.py",
        "return Postponed(until, APPROVAL_AWAITED) if now < until else None",
        "return None",
    ),
    Mutant(
        "a decision that contradicts an earlier decision is answered as accepted",
        "services/tasks/approvals.py",
        '                raise StateConflict(task, f"{action}: {_obstacle(task, action, now)}")\n',
        "                return task\n",
    ),
    Mutant(
        "the items of a map whose release is refused never expire",
        "services/topologies/node_transitions.py",
        "self.stores.contents.keep(task_id, name, map_payload, expiry)",
        "self.stores.contents.keep(task_id, name, map_payload)",
    ),
    Mutant(
        "a topology that is finished days late is kept longer than its nodes",
        "services/topologies/deletion.py",
        "return max(kept_until, task.expires_at or 0, 0 if outer is None else self.expiry_of_nodes(outer))",
        "return self.runtime.now() + self.period if outer is None else self.expiry_of_nodes(outer)",
        also=(
            (
                "if task.finished_at is not None and task.expires_at is not None:",
                "if task.expires_at is not None:",
            ),
        ),
    ),
)
