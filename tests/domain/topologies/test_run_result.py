"""An attempt of a topology's task ends with a state, a reason and a result."""

from __future__ import annotations

import json

from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Failed, Stopped, Succeeded
from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus
from duetime.domain.topologies.run_progress import run_result
from tests.domain.topologies.graphs import graph

KEYS = [f"n{number}" for number in range(8)]
GRAPH = graph(*KEYS)


def test_a_run_that_succeeded_counts_its_nodes() -> None:
    """A successful run's result is JSON with the run's number and the number of nodes in each state."""
    statuses = {key: NodeStatus(State.SUCCEEDED, has_result=True) for key in KEYS}
    ending = run_result(State.SUCCEEDED, GRAPH, statuses, number=3, is_overdue=False)
    assert isinstance(ending, Succeeded)
    assert json.loads(ending.result) == {"run": 3, "nodes": {"succeeded": 8}}


def test_a_cancelled_run_is_stopped() -> None:
    """A cancelled run is stopped, even if it is overdue."""
    assert run_result(State.CANCELLED, GRAPH, dict.fromkeys(KEYS, NodeStatus()), number=1, is_overdue=True) == Stopped()


def test_a_failed_run_names_at_most_five_of_the_nodes_that_failed() -> None:
    """Of eight failed nodes, five are named and the others are counted; a single failed node is named alone."""
    failed = NodeStatus(State.FAILED)
    ending = run_result(State.FAILED, GRAPH, dict.fromkeys(KEYS, failed), number=1, is_overdue=False)
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("NodesFailed", False)
    assert ending.error.message == "the nodes n0, n1, n2, n3, n4 and 3 more failed"
    one = {**dict.fromkeys(KEYS, NodeStatus(State.SUCCEEDED, has_result=True)), "n3": failed}
    ending = run_result(State.FAILED, GRAPH, one, number=1, is_overdue=False)
    assert isinstance(ending, Failed)
    assert ending.error.message == "the node n3 failed"


def test_the_deadline_is_the_reason_for_a_timed_out_runs_failure() -> None:
    """If a run exceeds its deadline, the deadline is the reason for the failure or the rollback."""
    statuses = dict.fromkeys(KEYS, NodeStatus(State.SUCCEEDED, has_result=True))
    late = run_result(State.FAILED, GRAPH, statuses, number=1, is_overdue=True)
    assert isinstance(late, Failed)
    assert late.error.type == "DeadlineExceeded"
    undone = run_result(State.ROLLED_BACK, GRAPH, statuses, number=1, is_overdue=True)
    assert isinstance(undone, Failed)
    assert undone.error.type == "RolledBack"
    assert "not done within" in undone.error.message


def test_a_result_with_outputs_is_a_success_unless_it_is_too_large() -> None:
    """A topology's result has its outputs beside the counts; a result that is too large fails the run."""
    statuses = {key: NodeStatus(State.SUCCEEDED, has_result=True) for key in KEYS}
    for size, kind in ((10, Succeeded), (MAX_RESULT_BYTES, Failed)):
        outputs = json.dumps({"n0": "x" * size}).encode()
        ending = run_result(State.SUCCEEDED, GRAPH, statuses, number=1, is_overdue=False, outputs=outputs)
        assert isinstance(ending, kind)
        if isinstance(ending, Succeeded):
            assert json.loads(ending.result)["outputs"] == {"n0": "x" * 10}
        elif isinstance(ending, Failed):
            assert (ending.error.type, ending.retriable) == ("OutputsTooLarge", False)
