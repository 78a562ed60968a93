"""Pull workers that lose leases, read no queue, or report outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, MAX_CLOCK_DIFFERENCE
from duetime.domain.times import DAY
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation import works
from tests.simulation.account import PULLED
from tests.simulation.endpoints import CALLBACK_URL, URL

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

LEASE = 30 * SECOND
ENDPOINT = {"kind": "http", "url": URL}
BOOM = {"error": {"type": "Boom", "message": "no"}}


class Pulled(Tasks):
    """An account with tasks that pull workers lease."""

    def __init__(self) -> None:
        super().__init__()
        self.faulty = True

    def create_pulled(self, delay: int = 0, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task of the pulled type."""
        return self.create(delay, PULLED, **fields)

    def lease(self, wait: int = 0, worker: str = "w", most: int = 1, lasts: int = 30) -> list[dict[str, Any]]:
        """Request leases."""
        wanted = {"types": [PULLED], "lease_seconds": lasts, "worker": worker, "wait_seconds": wait, "max_tasks": most}
        reply = self.ask("POST", "/v1/leases", wanted)
        assert reply.status == 200, reply.body
        leases: list[dict[str, Any]] = reply.body["leases"]
        return leases

    def lease_one(self, within: int = HOUR, worker: str = "w", lasts: int = 30) -> dict[str, Any]:
        """Request leases until the response has a lease."""
        until = self.now + within
        while self.now < until:
            for lease in self.lease(20, worker, lasts=lasts):
                return lease
        raise AssertionError("no lease")

    def tell(self, lease: dict[str, Any], verb: str, body: object = None) -> Reply:
        """Report on a lease."""
        return self.ask("POST", f"/v1/leases/{lease['id']}/{verb}", body)


@pytest.fixture
def tasks() -> Pulled:
    """An account with a pulled type."""
    return Pulled()


def test_a_pulled_task_is_leased_on_time(tasks: Pulled) -> None:
    """A pulled task is leased at its due time, and no worker function sees it."""
    with tasks:
        task_id = tasks.create_pulled(12 * MINUTE)
        due_at = tasks.record(task_id).due_at
        tasks.time.run_until(due_at - 10 * SECOND)
        (lease,) = tasks.lease(20)
        assert due_at <= tasks.now <= due_at + 100
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        assert (tasks.done(task_id).lease_worker, tasks.record(task_id).attempt) == ("w", 1)
        assert not any(machine.function == "worker" for machine in tasks.machines)


def test_a_lease_request_waits_for_wait_seconds(tasks: Pulled) -> None:
    """A request waits for `wait_seconds`, to the nearest second, including its own duration."""
    with tasks:
        for seconds in (1, 2, 7, 20):
            began = tasks.now
            assert tasks.lease(seconds) == []
            assert abs(tasks.now - began - seconds * SECOND) < SECOND - 300
        tasks.create_pulled(600)
        assert tasks.lease(1)


def test_a_worker_that_dies_is_replaced_right_after_its_lease(tasks: Pulled) -> None:
    """A dead worker's task is leased again within seconds of the lease's end plus the clock margin."""
    with tasks:
        task_id = tasks.create_pulled()
        old = tasks.lease_one(worker="dies")
        assert tasks.tell(old, "heartbeat").status == 200
        ends_at = tasks.record(task_id).lease_expires_at or 0
        new = tasks.lease_one(worker="takes over")
        assert ends_at + MAX_CLOCK_DIFFERENCE <= tasks.now <= ends_at + LEASE_RETURN_MARGIN + 4 * SECOND
        # The message stayed invisible all the time, so no worker received it needlessly.
        assert tasks.counts()["claims_rejected"] == 0
        assert tasks.tell(old, "complete", {"result": 9}).status == 409
        assert tasks.tell(new, "complete", {"result": 1}).status == 200
        assert (tasks.done(task_id).attempt, tasks.record(task_id).lease_worker) == (2, "takes over")
        assert tasks.outcomes(task_id) == ["lost", "succeeded"]


def test_an_overdue_attempts_heartbeats_are_rejected_and_another_attempt_begins(tasks: Pulled) -> None:
    """After an attempt's timeout, its heartbeats are refused with `attempt_overdue`, and another attempt begins."""
    with tasks:
        task_id = tasks.create_pulled(timeout_seconds=40)
        lease = tasks.lease_one()
        began = tasks.now
        tasks.run(20 * SECOND)
        assert tasks.tell(lease, "heartbeat").status == 200
        tasks.run(20 * SECOND)
        refused = tasks.tell(lease, "heartbeat")
        assert (refused.status, refused.body["code"]) == (409, "attempt_overdue")
        tasks.lease_one()
        late = tasks.now - began - 40 * SECOND
        assert MAX_CLOCK_DIFFERENCE - 100 <= late <= LEASE_RETURN_MARGIN + LEASE
        assert tasks.record(task_id).attempt == 2


@pytest.mark.slow
def test_an_attempt_of_fourteen_days_keeps_its_lock_and_is_replaceable(tasks: Pulled) -> None:
    """While a worker renews its lease, it keeps the task and the lock; soon after it dies, the next attempt begins.

    The attempt outlasts the twelve hours for which a message can be invisible and the four days for which a message is
    kept, so the message is replaced.
    """
    with tasks:
        task_id = tasks.create_pulled(timeout_seconds=14 * DAY // SECOND, lock={"key": "gpu"})
        lease = tasks.lease_one(lasts=900)
        first = tasks.now
        while tasks.now < first + 13 * DAY:
            tasks.run(14 * MINUTE)
            assert tasks.tell(lease, "heartbeat", {"percent": 1}).status == 200
            if tasks.now % HOUR < 14 * MINUTE:
                assert tasks.lease(worker="another") == []
        died = tasks.now
        assert (tasks.record(task_id).attempt, tasks.record(task_id).fence) == (1, 1)
        new = tasks.lease_one(worker="another", lasts=900)
        assert died + 15 * MINUTE <= tasks.now <= died + 16 * MINUTE
        assert tasks.tell(new, "complete", {"result": 1}).status == 200
        assert tasks.done(task_id).attempt == 2


def test_losing_the_last_allowed_attempt_fails_the_task(tasks: Pulled) -> None:
    """If the only allowed attempt is lost, the task fails with `WorkerLost` and is not leased again."""
    with tasks:
        task_id = tasks.create_pulled(retry=ONCE)
        assert tasks.tell(tasks.lease_one(), "heartbeat").status == 200
        tasks.run(LEASE + LEASE_RETURN_MARGIN + SECOND)
        assert tasks.lease() == []
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.attempt, task.error.type) == ("failed", 1, "WorkerLost")


def test_a_task_without_pull_workers_waits_and_is_not_lost(tasks: Pulled) -> None:
    """After hours without workers, the next worker gets the task, even if its message was lost."""
    with tasks:
        task_id = tasks.create_pulled()
        tasks.run(MINUTE)
        tasks.lose_messages()
        tasks.run(3 * HOUR)
        assert tasks.state(task_id) == "scheduled"
        assert tasks.lease_one(RECOVERY)["task"]["id"] == task_id


def test_only_the_current_target_gets_a_task_after_a_change(tasks: Pulled) -> None:
    """If a task's target changes between pull workers and an endpoint, only the current target gets the task."""
    with tasks:
        there = tasks.create_pulled(MINUTE)
        back = tasks.create_pulled(MINUTE, target=ENDPOINT)
        assert tasks.change(there, target=ENDPOINT).status == 200
        assert tasks.change(back, target={"kind": "pull"}).status == 200
        lease = tasks.lease_one()
        assert lease["task"]["id"] == back
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        tasks.run(MINUTE)
        assert [effect.task_id for effect in tasks.effects] == [there]
        assert tasks.tally() == {"succeeded": 2}


def test_a_pulled_task_found_by_its_timer_is_sent_to_its_queue(tasks: Pulled) -> None:
    """A pulled task that is moved to another minute is found by its timer and sent to pull workers."""
    with tasks:
        task_id = tasks.create_pulled(20 * MINUTE)
        tasks.change(task_id, delay_seconds=2400)
        tasks.run(39 * MINUTE)
        assert tasks.lease_one(2 * MINUTE)["task"]["id"] == task_id


def test_a_result_outside_the_record_needs_no_follow_up(tasks: Pulled) -> None:
    """A pulled task with a large result is finished at once, because the result is written with its expiry."""
    with tasks:
        task_id = tasks.create_pulled()
        assert tasks.tell(tasks.lease_one(), "complete", {"result": works.LARGE}).status == 200
        assert tasks.done(task_id).finished_at is not None


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_worker_function_does_a_pulled_tasks_follow_up(tasks: Pulled, *, is_lost: bool) -> None:
    """A worker function does a pulled task's follow-up after a message, or after a scan if the message is lost."""
    with tasks:
        task_id = tasks.create_pulled(payload=works.LARGE, callback_url=CALLBACK_URL)
        lease = tasks.lease_one()
        if is_lost:
            tasks.refuse_sends()
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        tasks.before_call = None
        assert tasks.done(task_id).finished_at is None
        tasks.run(LEASE + RECOVERY + MINUTE if is_lost else 20 * SECOND)
        assert tasks.record(task_id).finished_at is not None
        assert tasks.callbacks == [(task_id, "succeeded")]
        assert not tasks.effects


def test_a_repeated_report_succeeds_even_after_the_next_attempt_has_begun(tasks: Pulled) -> None:
    """If the first worker repeats its report, the report succeeds and does not affect the second attempt."""
    with tasks:
        task_id = tasks.create_pulled(retry={"initial_seconds": 0})
        first = tasks.lease_one()
        assert tasks.tell(first, "fail", BOOM).status == 200
        tasks.lease_one()
        before = tasks.record(task_id)
        assert before.fence == 2
        assert tasks.tell(first, "fail", BOOM).status == 200
        assert tasks.record(task_id) == before


def test_a_repeated_report_of_a_cancelled_attempt_succeeds(tasks: Pulled) -> None:
    """A repeated report of a cancelled attempt succeeds, and the history has one line for the attempt."""
    with tasks:
        task_id = tasks.create_pulled()
        lease = tasks.lease_one()
        assert tasks.cancel(task_id, force=True).status == 202
        for _ in range(2):
            assert tasks.tell(lease, "cancel").status == 200
        assert (tasks.state(task_id), tasks.outcomes(task_id)) == ("cancelled", ["cancelled"])


def test_a_cancel_of_a_lost_attempt_takes_effect_before_the_next_lease(tasks: Pulled) -> None:
    """A cancel that a lost worker never saw ends the task before the next lease."""
    with tasks:
        task_id = tasks.create_pulled()
        tasks.lease_one()
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(LEASE + LEASE_RETURN_MARGIN + SECOND)
        assert tasks.lease() == []
        assert tasks.state(task_id) == "cancelled"


def test_a_heartbeat_is_rejected_after_its_lock_is_taken_by_force(tasks: Pulled) -> None:
    """After a lock is released by force, the holder's next heartbeat is refused with `lock_lost`."""
    with tasks:
        tasks.create_pulled(lock={"key": "db"})
        lease = tasks.lease_one()
        tasks.watching.freed("db")
        assert tasks.ask("DELETE", "/v1/locks/db").status == 200
        refused = tasks.tell(lease, "heartbeat")
        assert (refused.status, refused.body["code"]) == (409, "lock_lost")


def test_a_lease_whose_payload_cannot_be_read_is_put_back(tasks: Pulled) -> None:
    """If a payload cannot be read for a lease, the task uses up no attempt and can be leased again seconds later."""
    with tasks:
        task_id = tasks.create_pulled(payload=works.LARGE)

        def reads_payload(call: Call) -> bool:
            return call.operation == "get_item" and (call.partition or "").startswith(schema.CONTENT_PREFIX)

        refused = tasks.once(reads_payload, lambda call: call.refuse())
        assert tasks.lease() == []
        assert refused
        assert (tasks.state(task_id), tasks.record(task_id).attempt) == ("waiting", 0)
        assert tasks.lease_one(5 * SECOND)["task"]["payload"] == works.LARGE


def test_leases_are_returned_even_if_the_queue_fails_afterwards(tasks: Pulled) -> None:
    """A worker gets its leases even if the queue fails afterwards."""
    with tasks:
        tasks.create_pulled()
        received: list[Call] = []

        def refuse_the_second(call: Call) -> None:
            if call.operation == "receive_message":
                received.append(call)
                if len(received) > 1:
                    call.refuse()

        tasks.before_call = refuse_the_second
        assert len(tasks.lease(5, most=2)) == 1
        wanted = {"types": [PULLED], "lease_seconds": 30, "worker": "w", "wait_seconds": 0}
        assert tasks.ask("POST", "/v1/leases", wanted).status == 503
