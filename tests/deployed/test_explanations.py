"""Tests of explanations on the deployed stack, with real queues, locks, and switches, and the published client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.deployed.test_path import ended
from tests.functions.receivers import receiving
from tests.waiting import until

if TYPE_CHECKING:
    from duetime_client import Client, Gate, LockSpec


def waiting(client: Client, task_id: str) -> Gate | None:
    """The gate at which a task waits now, or `None` if the task has ended; the durations must add up to the total."""
    explanation = client.tasks.explain(task_id)
    assert sum(gate.duration_ms or 0 for gate in explanation.gates) == explanation.total_ms
    return next((gate for gate in explanation.gates if gate.state == "waiting"), None)


def is_at(client: Client, task_id: str, name: str) -> bool:
    """Whether a task waits at this gate."""
    gate = waiting(client, task_id)
    return gate is not None and gate.name == name


def test_the_explanation_of_a_task_waiting_for_a_lock_names_the_holder(client: Client) -> None:
    """The explanation of a task that waits for a lock names the holder, and has the lock's gate after the wait."""
    lock: LockSpec = {"key": "explained"}
    with receiving() as endpoint:
        endpoint.answers["PUT", "/first?action=run"] = (202, b"")
        endpoint.answers["PUT", "/second?action=run"] = (200, b"{}")
        first = client.tasks.create("first", target={"kind": "http", "url": f"{endpoint.url}/first"}, lock=lock)
        # The second task is created only now, because if two tasks are due at once, either of them may take the lock
        # first.
        assert until(lambda: is_at(client, first.id, "notification"))
        second = client.tasks.create("second", target={"kind": "http", "url": f"{endpoint.url}/second"}, lock=lock)
        assert until(lambda: is_at(client, second.id, "lock"))
        gate = waiting(client, second.id)
        assert gate is not None
        assert gate.waits_for is not None
        assert first.id in str(gate.waits_for["lock"])
        assert first.id in gate.text
        client.tasks.notify_success(first.id, client.tasks.get(first.id).fence)
        assert ended(client, second).state == "succeeded"
    explanation = client.tasks.explain(second.id)
    assert sum(gate.duration_ms or 0 for gate in explanation.gates) == explanation.total_ms
    assert {"lock", "run"} <= {gate.name for gate in explanation.gates}


def test_the_explanation_of_a_stopped_types_task_names_the_switch(client: Client) -> None:
    """The explanation of a task of a stopped type names the switch and its reason before the task is due."""
    later = client.tasks.create("explained", delay_seconds=600, target={"kind": "http", "url": "https://example.org/"})
    client.switches.put("type", "explained", stopped=True, reason="a bad release")
    try:
        found = client.tasks.explain(later.id)
        assert [(gate.name, gate.state) for gate in found.gates] == [("due", "waiting"), ("switch", "ahead")]
        assert "a bad release" in found.text
    finally:
        client.switches.delete("type", "explained")
        client.tasks.cancel(later.id)
