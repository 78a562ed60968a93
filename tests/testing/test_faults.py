"""Tests faults for the user's own code, whose work is repeated after a crash or a lost lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing import Duetime


class Bank:
    """A handler's store, which counts requests and keeps the charges by idempotency key."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.charged: dict[str, object] = {}

    def charge(self, context: Context, payload: object) -> str:
        """Charge once for each task."""
        self.asked.append((context.attempt, context.fence))
        self.charged[context.task_id] = payload
        return "charged"


def _run(duetime: Duetime, bank: Bank) -> str:
    duetime.register("charge", bank.charge)
    task = duetime.client.tasks.create("charge", payload={"id": 7})
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).result == "charged"
    assert list(bank.charged.values()) == [{"id": 7}]
    return duetime.client.tasks.get(task.id).state


def test_a_crash_before_the_outcome_is_stored_causes_another_attempt(duetime: Duetime) -> None:
    """After a crash, the next attempt calls the handler with a new fence, and the crashed attempt is reported."""
    bank = Bank()
    duetime.faults.crash_before_finish(attempt=1)
    assert _run(duetime, bank) == "succeeded"
    assert bank.asked == [(1, 1), (2, 2)]
    assert [each.outcome for each in duetime.executions] == ["crashed", "succeeded"]
    duetime.assert_ran("charge", times=2)


def test_a_fault_applies_to_one_type_and_one_attempt(duetime: Duetime) -> None:
    """A crash that is set for a type and an attempt affects no other types and attempts."""
    duetime.faults.crash_before_finish(attempt=2, type="other")
    bank = Bank()
    assert _run(duetime, bank) == "succeeded"
    duetime.faults.crash_before_finish(attempt=2, type="charge")
    other = Bank()
    assert _run(duetime, other) == "succeeded"
    assert bank.asked == other.asked == [(1, 1)]


def test_the_outcome_of_a_worker_without_its_lease_is_ignored(duetime: Duetime) -> None:
    """After a lost lease, both workers do the work with different fences, and the second worker's outcome is stored."""
    bank = Bank()
    duetime.faults.lose_lease(attempt=1)
    assert _run(duetime, bank) == "succeeded"
    assert bank.asked == [(1, 1), (2, 2)]
    (task,) = duetime.client.tasks.list(type="charge")
    duetime.advance(minutes=10)
    assert duetime.client.tasks.get(task.id).fence == 2


def test_a_message_delivered_twice_is_processed_once(duetime: Duetime) -> None:
    """A second worker gets no lease while the first worker has the lease."""
    bank = Bank()
    duetime.faults.deliver_twice()
    assert _run(duetime, bank) == "succeeded"
    assert bank.asked == [(1, 1)]
    assert duetime._account.faults["message doubled"] == 1


def test_slow_heartbeats_do_not_end_an_attempt(duetime: Duetime) -> None:
    """Heartbeats that take seconds to arrive still renew the lease if they arrive in time."""
    asked: list[int] = []

    def work(context: Context, _payload: object) -> None:
        asked.append(context.attempt)
        duetime.sleep(100)

    duetime.register("long", work)
    duetime.faults.slow_heartbeat(seconds=8)
    task = duetime.client.tasks.create("long", timeout_seconds=300)
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).state == "succeeded"
    assert asked == [1]


def test_late_heartbeats_lose_the_lease(duetime: Duetime) -> None:
    """If heartbeats take longer than the lease, another worker starts the work again."""
    asked: list[int] = []

    def work(context: Context, _payload: object) -> None:
        asked.append(context.attempt)
        duetime.sleep(100 if context.attempt == 1 else 1)

    duetime.register("long", work)
    duetime.faults.slow_heartbeat(seconds=200)
    task = duetime.client.tasks.create("long", timeout_seconds=300)
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).state == "succeeded"
    assert asked == [1, 2]


def test_faults_end_when_they_are_cleared(duetime: Duetime) -> None:
    """After faults are cleared, no attempt is affected by a fault."""
    duetime.faults.crash_before_finish(attempt=1)
    duetime.faults.clear()
    bank = Bank()
    assert _run(duetime, bank) == "succeeded"
    assert bank.asked == [(1, 1)]
