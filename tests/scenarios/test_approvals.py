"""Approvals are tasks that wait for a person's decision or for a timeout."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import to_iso
from duetime.handlers import Unretriable
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, RECOVERY
from tests.scenarios.test_topologies import stands
from tests.simulation.account import LEASE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

_LETTERS = [chr(code) for code in range(35, 127) if chr(code) != "\\"]
"""Many characters that JSON does not escape, so that a string of them stays large when it is compressed."""
LEASE = LEASE_SECONDS * SECOND

RELEASE: dict[str, dict[str, Any]] = {
    "build": {"type": PLAIN},
    "approve": {"type": "release", "target": {"kind": "approval", "timeout_seconds": 7200}, "depends_on": ["build"]},
    "publish": {"type": PLAIN, "depends_on": ["approve"], "inputs": ["approve"]},
    "tell": {"type": PLAIN, "depends_on": ["approve"], "trigger_rule": "one_failed"},
}


def waiting(graphs: Graphs, **target: object) -> Task:
    """A task that waits for an approval."""
    body = {"type": "release", "target": {"kind": "approval", **target}}
    made = graphs.ask("POST", "/v1/tasks", body)
    assert made.status == 201, made.body
    graphs.run(MINUTE)
    return graphs.record(made.body["id"])


def signal(graphs: Graphs, task: Task, **body: object) -> tuple[int, Any]:
    """Approve or reject a task; return the status and the body of the response."""
    graphs.topologies.signalled.add((task.id.text, body["approve"] is True))
    answer = graphs.ask("POST", f"/v1/tasks/{task.id}/signal", body)
    return answer.status, answer.body


def test_a_topology_continues_when_its_node_is_approved() -> None:
    """An approved node's result is the approval's payload, and the approval is listed among the node's events."""
    with Graphs() as graphs:
        graphs.submit(RELEASE)
        graphs.run(HOUR)
        node = graphs.node("approve")
        shown = graphs.ask("GET", f"/v1/tasks/{node.id}").body
        assert (shown["state"], shown["waiting_for"]) == ("waiting", {"reason": "approval", "text": "an approval"})
        assert (graphs.ran, node.attempt, node.fence) == (["build"], 0, 1)
        status, body = signal(graphs, node, approve=True, payload={"limit": 5}, reason="checked")
        assert (status, body["state"], body["result"]) == (200, "succeeded", {"limit": 5})
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["build", "publish"]
        assert stands(graphs)["tell"] == "skipped"
        events = graphs.ask("GET", f"/v1/tasks/{node.id}/events").body["events"]
        assert [(each["type"], each["reason"]) for each in events if each["type"] == "approved"] == [
            ("approved", "checked")
        ]


def test_a_rejection_fails_the_node() -> None:
    """A rejection's reason becomes the node's error message, and only nodes that run after a failure start."""
    with Graphs() as graphs:
        graphs.submit(RELEASE, on_failure="continue")
        graphs.run(MINUTE)
        status, body = signal(graphs, graphs.node("approve"), approve=False, reason="not on a Friday")
        assert (status, body["error"]) == (200, {"type": "Rejected", "message": "not on a Friday"})
        graphs.run_until_ended()
        assert graphs.ran == ["build", "tell"]
        assert stands(graphs)["publish"] == "upstream_failed"


@pytest.mark.parametrize(
    ("on_timeout", "state", "error"),
    [("fail", "failed", "ApprovalTimedOut"), ("reject", "failed", "Rejected"), ("approve", "succeeded", None)],
)
def test_an_approval_gets_its_default_decision_after_its_timeout(
    on_timeout: str, state: str, error: str | None
) -> None:
    """If nobody decides on an approval before its timeout, its first attempt ends with the default decision."""
    with Graphs() as graphs:
        task = waiting(graphs, timeout_seconds=3600, on_timeout=on_timeout)
        graphs.run(HOUR - 2 * MINUTE)
        assert graphs.record(task.id.text).state == "waiting"
        graphs.run(5 * MINUTE)
        ended = graphs.record(task.id.text)
        assert (ended.state, ended.error and ended.error.type, ended.attempt) == (state, error, 1)


def test_a_second_different_decision_on_an_approval_is_a_conflict() -> None:
    """Repeating a decision succeeds; a different decision, or a decision on another kind of task, is a conflict."""
    with Graphs() as graphs:
        task = waiting(graphs)
        first = signal(graphs, task, approve=True, payload=1)
        assert first[0] == 200
        assert signal(graphs, task, approve=True, payload=1)[0] == 200
        assert signal(graphs, task, approve=True, payload=1, reason="me too")[0] == 200
        for body, words in (
            ({"approve": False}, "it was approved already"),
            ({"approve": True, "payload": 2}, "it was approved already, with another payload"),
            ({"approve": True, "payload": True}, "it was approved already, with another payload"),
            ({"approve": True}, "it was approved already, with another payload"),
        ):
            status, problem = signal(graphs, task, **body)
            assert (status, problem["code"], words in problem["detail"]) == (409, "state_conflict", True)
        other = graphs.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 600}).body
        refused = graphs.ask("POST", f"/v1/tasks/{other['id']}/signal", {"approve": True})
        assert (refused.status, refused.body["code"]) == (409, "state_conflict")
        bad = graphs.ask("POST", f"/v1/tasks/{task.id}/signal", {"approve": False, "payload": 1})
        assert (bad.status, bad.body["errors"][0]["field"]) == (422, "payload")


def test_a_repeated_rejection_with_a_different_reason_is_a_conflict() -> None:
    """Repeating a rejection returns the same response; a different reason is a conflict."""
    with Graphs() as graphs:
        task = waiting(graphs)
        assert signal(graphs, task, approve=False, reason="no")[0] == 200
        assert signal(graphs, task, approve=False, reason="no")[0] == 200
        status, problem = signal(graphs, task, approve=False, reason="never")
        assert (status, "it was rejected already, for another reason" in problem["detail"]) == (409, True)


@pytest.mark.parametrize("size", [1, 2_000, 250_000])
def test_a_repeated_approval_is_compared_by_payload_wherever_stored(size: int) -> None:
    """An approval repeated with its payload's keys reordered succeeds, wherever the payload is stored."""
    with Graphs() as graphs:
        task = waiting(graphs)
        text = "".join(Random(1).choices(_LETTERS, k=size))  # noqa: S311 - not a secret
        assert signal(graphs, task, approve=True, payload={"a": text, "b": 1})[0] == 200
        assert signal(graphs, task, approve=True, payload={"b": 1, "a": text})[0] == 200
        assert signal(graphs, task, approve=True, payload={"b": 1, "a": text + "0"})[0] == 409


@pytest.mark.parametrize("approve", [True, False])
def test_an_approval_can_be_decided_while_no_worker_runs(approve: bool) -> None:  # noqa: FBT001 - a test parameter
    """A due approval can be decided while no worker runs; workers finish the task when they run again."""
    with Graphs() as graphs:
        body = {"type": "release", "target": {"kind": "approval"}, "delay_seconds": 30}
        graphs.faulty, graphs.receiving = True, False
        task = graphs.record(graphs.ask("POST", "/v1/tasks", body).body["id"])
        assert signal(graphs, task, approve=approve)[0] == 409
        graphs.run(MINUTE)
        status, shown = signal(graphs, task, approve=approve)
        assert (status, shown["state"]) == (200, "succeeded" if approve else "failed")
        graphs.receive_again()
        graphs.run(5 * MINUTE)
        ended = graphs.record(task.id.text)
        assert (ended.state, ended.attempt) == (shown["state"], 0)
        assert ended.finished_at


def test_a_node_can_be_approved_while_no_worker_runs() -> None:
    """A topology whose node is approved while no worker runs continues once workers run again."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.submit(RELEASE)
        assert graphs.run_until(lambda: graphs.has_node("approve") and graphs.node("approve").state == "scheduled")
        graphs.receiving = False
        graphs.run(MINUTE)
        assert graphs.node("approve").state == "scheduled"
        assert signal(graphs, graphs.node("approve"), approve=True, payload=1)[0] == 200
        graphs.receive_again()
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["build", "publish"]


def test_a_postponed_approval_cannot_be_decided_before_its_new_due_time() -> None:
    """After an approval is postponed, a decision before its new due time is refused with that time."""
    with Graphs() as graphs:
        task = waiting(graphs)
        due_at = to_iso(graphs.time.now() + HOUR)
        assert graphs.ask("PATCH", f"/v1/tasks/{task.id}", {"due_at": due_at}).status == 200
        status, problem = signal(graphs, task, approve=True)
        assert (status, problem["code"], f"it is due at {due_at}" in problem["detail"]) == (409, "state_conflict", True)
        text = graphs.ask("GET", f"/v1/tasks/{task.id}/explain").body["text"]
        assert f"It is due at {due_at}" in text
        graphs.run(HOUR + MINUTE)
        assert signal(graphs, task, approve=True)[0] == 200


def test_a_decision_during_a_workers_check_takes_effect_after_the_check() -> None:
    """A decision that arrives during a worker's check is delayed until the check ends, and then takes effect."""
    with Graphs() as graphs:
        task = waiting(graphs)
        name = task.id.text

        def is_put_back(call: Call) -> bool:
            is_write = call.machine.function == "worker" and call.operation == "update_item"
            return is_write and call.request["Key"]["s"]["S"] == name and graphs.record(name).state == "running"

        met = graphs.slow(is_put_back, SECOND // 4)
        assert graphs.ask("POST", f"/v1/tasks/{name}/run").status == 200
        assert graphs.run_until(lambda: met, MINUTE, 10)
        began = graphs.now
        assert signal(graphs, task, approve=True)[0] == 200
        assert graphs.now - began >= SECOND // 5
        graphs.run(MINUTE)
        assert graphs.record(name).state == "succeeded"


def test_a_waiting_approval_is_cancelled_at_once() -> None:
    """A waiting approval is cancelled at once with its topology, because no target has to stop first."""
    with Graphs() as graphs:
        graphs.submit(RELEASE)
        graphs.run(MINUTE)
        graphs.ask("POST", f"{PATH}/{graphs.topology}/cancel")
        assert graphs.run_until_ended(within=MINUTE).state == "cancelled"
        assert graphs.node("approve").state == "cancelled"
        assert signal(graphs, graphs.node("approve"), approve=True)[0] == 409


def test_a_rollback_skips_approvals() -> None:
    """A topology's rollback skips approvals."""
    with Graphs() as graphs:

        def behave(phase: str, context: Context) -> str:
            if phase == "run":
                raise Unretriable(context.type)
            return "undone"

        graphs.target = behave
        nodes = {"approve": RELEASE["approve"] | {"depends_on": []}, "bad": {"type": UNDONE, "depends_on": ["approve"]}}
        graphs.submit(nodes, on_failure="rollback")
        graphs.run(MINUTE)
        signal(graphs, graphs.node("approve"), approve=True)
        graphs.run_until_ended()
        assert stands(graphs) == {"approve": "rolled_back", "bad": "rolled_back"}
        assert graphs.undone == ["bad"]


@pytest.mark.parametrize("at", ["the claim", "the end of its time"])
def test_a_worker_lost_during_an_approval_uses_up_no_attempt(at: str) -> None:
    """If a worker dies while it handles an approval, no attempt is used up, even if only one is allowed."""
    with Graphs() as graphs:
        graphs.faulty = True
        target = {"kind": "approval", "timeout_seconds": 3600, "on_timeout": "approve"}
        waits = at == "the end of its time"
        if not waits:
            graphs.after_call = _dies_after_claim(graphs)
        made = graphs.ask("POST", "/v1/tasks", {"type": "release", "target": target, "retry": ONCE})
        graphs.run(RECOVERY + LEASE)
        task = graphs.record(made.body["id"])
        assert (task.state, task.waiting_for, task.attempt) == ("waiting", "an approval", 0)
        if waits:
            graphs.after_call = _dies_after_claim(graphs)
        graphs.run(HOUR + RECOVERY + LEASE)
        assert graphs.record(task.id.text).state == "succeeded"
        assert graphs.after_call is None


def _dies_after_claim(graphs: Graphs) -> Callable[[Call], None]:
    """Make the first worker that claims a task die right afterwards."""

    def die(call: Call) -> None:
        if call.machine.function == "worker" and call.operation == "update_item":
            graphs.after_call = None
            call.machine.die()

    return die
