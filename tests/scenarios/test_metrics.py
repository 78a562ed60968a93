"""Tests of the metrics for starts, waits and ends of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import EARLY_SCAN_AGES, ON_TIME
from duetime.environment_variables import Variable
from duetime.handlers import Accepted
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation.account import PULLED
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

LOCK = {"key": "db-17"}


def _reads_a_lock(call: Call) -> bool:
    values = call.request.get("ExpressionAttributeValues", {}).values()
    return call.operation == "query" and any(value.get("S", "").startswith(schema.LOCK_PREFIX) for value in values)


@pytest.fixture
def tasks() -> Tasks:
    """An account in which tasks may be late."""
    made = Tasks()
    made.faulty = True
    return made


def test_a_task_that_starts_on_time_adds_a_small_lateness(tasks: Tasks) -> None:
    """Each punctual start has a small lateness, which is also measured by type, and no scan finds an overdue task."""
    with tasks:
        tasks.create()
        tasks.create(30 * SECOND)
        tasks.run(MINUTE)
        assert len(tasks.measured("lateness")) == 2
        assert max(tasks.measured("lateness")) <= ON_TIME
        assert tasks.measured(f"lateness{{type={PLAIN}}}") == tasks.measured("lateness")
        assert tasks.counts()["tasks_succeeded"] == 2
        assert len(tasks.measured("duration")) == 2
        assert not tasks.measured("oldest_due")


def test_a_task_that_starts_late_does_not_count_as_on_time(tasks: Tasks) -> None:
    """If a message waits in the queue for a minute, the task is late, and the wait is counted as a queue wait."""
    with tasks:
        for queue in tasks.sqs.queues.values():
            tasks.unread_until[queue.url] = tasks.now + MINUTE
        tasks.create()
        tasks.run(2 * MINUTE)
        (late,) = tasks.measured("lateness")
        assert 59 * SECOND <= late <= 62 * SECOND
        assert late > ON_TIME
        (waited,) = tasks.measured("wait{gate=queue}")
        assert late - SECOND <= waited <= late


def test_a_pulled_task_is_counted_like_any_other(tasks: Tasks) -> None:
    """If a pull worker leases a task half a minute late, the task is late by that time, and the lease is measured."""
    with tasks:
        tasks.create(kind=PULLED)
        tasks.run(30 * SECOND)
        (lease,) = tasks.ask("POST", "/v1/leases", {"types": [PULLED], "worker": "w"}).body["leases"]
        tasks.run(7 * SECOND)
        assert tasks.ask("POST", f"/v1/leases/{lease['id']}/complete", {}).status == 200
        (late,) = tasks.measured("lateness")
        assert 29 * SECOND <= late <= 32 * SECOND
        (waited,) = tasks.measured("wait{gate=queue}")
        assert late - SECOND <= waited <= late
        (took,) = tasks.measured(f"duration{{type={PULLED}}}")
        assert 6 * SECOND <= took <= 8 * SECOND


def test_the_waits_at_each_gate_are_measured_separately(tasks: Tasks) -> None:
    """The waits for a lock, a switch and a concurrency limit are measured separately."""
    with tasks:
        tasks.last(20)
        tasks.create(lock=LOCK, timeout_seconds=60)
        tasks.run(2 * SECOND)
        tasks.create(lock=LOCK, timeout_seconds=60)
        tasks.run(MINUTE)
        assert tasks.measured("wait{gate=lock}")
        assert tasks.counts()["locks_handed_on"] == 1
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", {"stopped": True, "reason": "why"}).status in {200, 201}
        tasks.create()
        tasks.run(10 * SECOND)
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", {"max_concurrent": 1}).status == 200
        tasks.run(2 * MINUTE)
        tasks.create()
        tasks.create()
        tasks.run(MINUTE)
        for gate in ("switch", "concurrency_limit"):
            waits = tasks.measured(f"wait{{gate={gate}}}")
            assert waits
            assert all(0 <= waited <= 2 * MINUTE for waited in waits)
        assert tasks.counts()["tasks_postponed"] == sum(
            len(tasks.measured(f"wait{{gate={gate}}}")) for gate in ("lock", "switch", "concurrency_limit")
        )


def test_retries_count_with_their_waits_and_final_failures_by_owner(tasks: Tasks) -> None:
    """Two failed attempts count as one retry with its wait, and one final failure for the owner."""
    with tasks:
        tasks.fail()
        tasks.create(retry={"max_attempts": 2, "initial_seconds": 10, "max_seconds": 10})
        tasks.run(MINUTE)
        counts = tasks.counts()
        assert (counts["attempts_failed"], counts["tasks_retried"], counts["tasks_failed"]) == (2, 1, 1)
        assert counts["tasks_failed{owner=local}"] == 1
        (waited,) = tasks.measured("wait{gate=retry}")
        assert 0 <= waited <= 10 * SECOND


def test_a_lost_attempt_is_counted_when_another_worker_takes_over(tasks: Tasks) -> None:
    """A lost attempt is counted, and the time until the next attempt counts as a wait for the lease."""
    with tasks:
        tasks.hang()
        tasks.create(timeout_seconds=800)
        tasks.run(5 * SECOND)
        tasks.kill()
        tasks.run(LEASE + RECOVERY)
        assert tasks.counts()["attempts_lost"] == 1
        (waited,) = tasks.measured("wait{gate=lease}")
        assert waited >= LEASE


def test_a_worker_that_loses_its_lease_counts_it_and_ends(tasks: Tasks) -> None:
    """A worker that is cut off from the table counts one lost lease and one ended process."""
    with tasks:
        tasks.hang()
        tasks.create(timeout_seconds=800)
        tasks.run(5 * SECOND)
        (machine,) = tasks.busy()
        machine.cut_off_until = tasks.now + HOUR
        tasks.run(LEASE + RECOVERY)
        assert (tasks.counts()["leases_lost"], tasks.counts()["processes_ended"]) == (1, 1)


def test_an_attempt_that_exceeds_its_timeout_is_counted_like_any_other(tasks: Tasks) -> None:
    """An attempt whose handler hangs has a lateness and a duration, and counts as a failure of its version."""
    with tasks:
        tasks.environ[Variable.CANARY] = "on"
        tasks.generation += 1
        tasks.hang()
        tasks.create(timeout_seconds=30, retry=ONCE)
        tasks.run(2 * MINUTE)
        counts = tasks.counts()
        assert (counts["processes_ended"], counts["version_attempts"], counts["version_failures"]) == (1, 1, 1)
        assert len(tasks.measured("lateness")) == 1
        (took,) = tasks.measured("duration")
        assert 30 * SECOND <= took <= 40 * SECOND


def test_checks_of_a_task_that_cannot_start_are_not_counted_as_starts(tasks: Tasks) -> None:
    """Each call of a target adds one lateness and one duration, however often its task waited for a lock before."""
    with tasks:
        tasks.last(20)
        for _ in range(4):
            tasks.create(lock={"key": "database"})
        tasks.run(5 * MINUTE)
        assert tasks.counts()["tasks_postponed"] >= 3
        assert len(tasks.effects) == 4
        assert len(tasks.measured("lateness")) == 4
        assert all(20 * SECOND <= took <= 21 * SECOND for took in tasks.measured("duration"))
        assert len(tasks.measured("duration")) == 4


def test_the_duration_of_an_asynchronous_attempt_lasts_until_its_report(tasks: Tasks) -> None:
    """A deferred attempt has one lateness, and one duration that ends when its target reports the end."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(notify_within_seconds=600)
        tasks.run(MINUTE)
        notice = {"fence": 1, "outcome": "succeeded"}
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/notify", notice).status == 200
        assert len(tasks.measured("lateness")) == 1
        (took,) = tasks.measured("duration")
        assert MINUTE - SECOND <= took <= MINUTE + SECOND


def test_a_scan_measures_how_long_a_task_is_overdue(tasks: Tasks) -> None:
    """The first scan measures how long a task with lost messages is overdue; later scans find nothing.

    The first message is lost, and so is the message that the early scan sends.
    """
    with tasks:
        tasks.create(10 * SECOND)
        tasks.receiving = False
        tasks.run(10 * SECOND + EARLY_SCAN_AGES[1])
        tasks.lose_messages()
        tasks.receive_again()
        tasks.run(RECOVERY + 5 * MINUTE)
        found = tasks.measured("oldest_due")
        assert len(found) == 1
        assert tasks.counts()["timers_recovered"] == 2
        assert MINUTE <= found[0] <= RECOVERY


def test_a_small_clock_skew_is_measured_and_a_large_one_stops_ticks(tasks: Tasks) -> None:
    """A clock skew of ten seconds is only measured, but a skew of forty seconds stops the ticks."""
    with tasks:
        tasks.run(2 * MINUTE)
        assert max(tasks.measured("clock_skew"), default=0) <= SECOND

        def off(call: Call) -> None:
            if call.machine.function == "trigger":
                call.machine.clock.skew = skew

        tasks.before_call = off
        skew = 10 * SECOND
        tasks.run(2 * MINUTE)
        assert 9 * SECOND <= max(tasks.measured("clock_skew")) <= 11 * SECOND
        assert tasks.counts()["clock_wrong"] == 0
        skew = 40 * SECOND
        complete = len(tasks.measured("tick_age"))
        tasks.run(2 * MINUTE)
        assert tasks.counts()["clock_wrong"] > 0
        assert len(tasks.measured("tick_age")) == complete


def test_a_task_that_is_deferred_and_then_cancelled_is_counted_as_both(tasks: Tasks) -> None:
    """A deferred task that is cancelled and whose target stops reporting is counted as deferred and as cancelled."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(notify_within_seconds=60, retry={"max_attempts": 2})
        tasks.run(SECOND)
        assert tasks.counts()["tasks_deferred"] == 1
        tasks.cancel(task_id, force=True)
        assert tasks.run_until(lambda: tasks.state(task_id) == "cancelled")
        assert tasks.counts()["tasks_cancelled"] == 1


def test_unsent_messages_are_counted_until_the_queue_accepts_them(tasks: Tasks) -> None:
    """An unsent message is counted, and the next tick sends it and counts it as dispatched."""
    with tasks:
        task_id = tasks.create(10 * MINUTE)
        tasks.refuse_sends()
        tasks.run(8 * MINUTE)
        assert tasks.counts()["messages_unsent"] >= 1
        tasks.before_call = None
        assert tasks.run_until(lambda: tasks.state(task_id) == "succeeded")
        assert tasks.counts()["dispatched"] >= 1


def test_a_message_in_an_unknown_format_is_counted_as_unreadable(tasks: Tasks) -> None:
    """A message in an unknown format is counted and deleted, and no task is affected."""
    with tasks:
        queue = next(queue for queue in tasks.sqs.queues.values() if queue.name == "normal")
        tasks.sqs.send_message(QueueUrl=queue.url, MessageBody="junk")
        task_id = tasks.create()
        tasks.run(MINUTE)
        assert tasks.state(task_id) == "succeeded"
        assert tasks.counts()["unreadable"] == 1
        assert tasks.messages() == []


def test_requests_above_the_limit_on_waits_are_counted(tasks: Tasks) -> None:
    """If only one request can wait, two of three concurrent requests do not wait, and are counted."""
    with tasks:
        tasks.environ[Variable.LONG_POLLS] = "1"
        body = {"type": PLAIN, "delay_seconds": 3600}
        replies = [tasks.send("POST", "/v1/tasks", body, query="wait_seconds=10") for _ in range(3)]
        tasks.run(15 * SECOND)
        assert all(replies)
        assert tasks.counts()["long_polls_refused"] == 2


def test_a_lease_that_is_handed_out_too_late_is_counted(tasks: Tasks) -> None:
    """If reading the lock takes more than half of the lease, the task is put back, and the late lease is counted."""
    with tasks:
        tasks.create(kind=PULLED, lock=LOCK)
        tasks.slow(_reads_a_lock, 4 * SECOND)
        wanted = {"types": [PULLED], "lease_seconds": 5, "worker": "w"}
        assert tasks.ask("POST", "/v1/leases", wanted).body["leases"] == []
        assert tasks.counts()["leases_too_late"] == 1
        (lease,) = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
        assert lease["task"]["attempt"] == 1


def test_occurrences_that_fell_due_during_an_outage_are_counted_as_missed() -> None:
    """After an hour without the trigger, missed occurrences are counted and their schedule is logged."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE)
        assert schedules.counts()["occurrences_missed"] == 0
        schedules.ticking = False
        schedules.run(HOUR)
        schedules.ticking = True
        schedules.run(5 * MINUTE)
        assert schedules.counts()["occurrences_missed"] >= 50
        assert schedules.notes().count("a schedule missed occurrences") == 1


def test_skipped_occurrences_are_counted_by_reason() -> None:
    """Occurrences skipped for overlap and for a pause are counted separately by reason."""
    with Schedules() as schedules:
        schedules.last(90)
        schedules.make()
        schedules.run(6 * MINUTE)
        counts = schedules.counts()
        assert counts["tasks_skipped{reason=overlap}"] == counts["tasks_skipped"] >= 2
        assert counts["occurrences"] >= 4
        schedules.control("pause")
        schedules.run(10 * MINUTE)
        assert schedules.counts()["tasks_skipped{reason=paused}"] >= 1


def test_cursor_lag_is_measured_only_while_queues_reject_messages(tasks: Tasks) -> None:
    """`cursor_lag` is measured only while the queues refuse messages."""
    with tasks:
        tasks.create(10 * MINUTE)
        tasks.run(5 * MINUTE)
        assert not tasks.measured("cursor_lag")
        tasks.refuse_sends()
        tasks.run(15 * MINUTE)
        assert 4 * MINUTE <= max(tasks.measured("cursor_lag")) <= 15 * MINUTE
        assert max(tasks.measured("tick_age")) >= 5 * MINUTE
        tasks.before_call = None
        tasks.run(5 * MINUTE)
        known = len(tasks.measured("cursor_lag"))
        tasks.run(5 * MINUTE)
        assert len(tasks.measured("cursor_lag")) == known


def test_each_tick_measures_the_time_since_the_last_complete_tick(tasks: Tasks) -> None:
    """Each tick measures the time since the last complete tick; after an hour's outage, this time is an hour."""
    with tasks:
        tasks.run(5 * MINUTE)
        assert max(tasks.measured("tick_age")[1:]) <= 2 * MINUTE
        tasks.ticking = False
        tasks.run(HOUR)
        known = len(tasks.measured("tick_age"))
        tasks.ticking = True
        tasks.run(5 * MINUTE)
        first, *later = tasks.measured("tick_age")[known:]
        assert HOUR <= first <= HOUR + 2 * MINUTE
        assert max(later) <= 2 * MINUTE
