"""Lost, duplicate, refused and outdated messages, and the scans and ticks that find their tasks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.sqs import body_of
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import (
    EARLY_SCAN_AGES,
    EARLY_SCAN_BACKLOG,
    GROUP_HOLD,
    MAX_CLOCK_DIFFERENCE,
    RECOVERY_SCAN_BACKLOG,
    RECOVERY_SCAN_DELAYS,
)
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import minute_of, to_iso
from duetime.environment_variables import Variable
from duetime_testing.fakes.sqs import Held
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import RECOVERY, Tasks
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime_testing.fakes.sqs import Queue
    from duetime_testing.simulation.faults import Call


@pytest.fixture
def tasks() -> Tasks:
    """An account in which tasks may be late."""
    made = Tasks()
    made.faulty = True
    return made


def _queue(tasks: Tasks, name: str) -> Queue:
    return next(queue for queue in tasks.sqs.queues.values() if queue.name == name)


def _grow(tasks: Tasks, name: str) -> None:
    """Fill an unread queue beyond the length at which scans wait."""
    queue = _queue(tasks, name)
    tasks.unread_until[queue.url] = tasks.now + 10 * HOUR
    body = body_of(Message(TaskId(tasks.create(10 * HOUR)), 0, 0, Priority.LOW, "local"))
    spare = [Held(f"spare-{number}", body, None, tasks.now, tasks.now) for number in range(RECOVERY_SCAN_BACKLOG + 1)]
    queue.messages.extend(spare)


def _create_unsent(tasks: Tasks, **fields: object) -> str:
    """Create a task whose message is lost; return the task's id."""
    before = {message.id for message in tasks.messages()}
    task_id = tasks.create(**fields)  # type: ignore[arg-type]  # fields of the body
    for queue in tasks.sqs.queues.values():
        queue.messages = [message for message in queue.messages if message.id in before]
    return task_id


# Messages.


@pytest.mark.parametrize("delay", [10 * SECOND, 10 * MINUTE])
def test_a_lost_message_is_sent_again_by_the_first_scan(tasks: Tasks, delay: Millis) -> None:
    """If a task's message is lost, the first scan finds the unclaimed task and sends another message."""
    with tasks:
        task_id = tasks.create(delay)
        tasks.run(max(0, delay - MINUTE))
        tasks.lose_messages()
        tasks.run(min(delay, MINUTE) + RECOVERY)
        assert tasks.done(task_id).attempt == 1
        assert len(tasks.effects) == 1


def test_duplicate_messages_run_a_task_once() -> None:
    """Of ten copies of a message, only one leads to a run, and all copies are deleted."""
    with Tasks() as tasks:
        tasks.last(2)
        tasks.create(5 * SECOND)
        (message,) = tasks.messages()
        queue = _queue(tasks, "normal")
        for number in range(9):
            queue.messages.append(Held(f"copy-{number}", message.body, None, tasks.now, message.visible_at))
        tasks.receive_again()
        tasks.run(5 * MINUTE)
        assert len(tasks.effects) == 1
        assert tasks.messages() == []


def test_a_message_of_an_older_generation_starts_no_attempt() -> None:
    """After the due time is changed, the old message is deleted, and the task runs only at the new time."""
    with Tasks() as tasks:
        task_id = tasks.create(10 * SECOND)
        tasks.change(task_id, delay_seconds=600)
        changed = tasks.record(task_id)
        tasks.run(MINUTE)
        assert tasks.record(task_id) == changed
        assert tasks.messages() == []
        tasks.run(11 * MINUTE)
        assert tasks.effect_times(task_id) == pytest.approx([changed.due_at], abs=50)


def test_a_due_time_changed_back_and_forth_runs_once() -> None:
    """A task that is moved later twice and then earlier runs once, at its last due time."""
    with Tasks() as tasks:
        task_id = tasks.create(5 * MINUTE)
        for delay in (900, 3600, 60):
            tasks.change(task_id, delay_seconds=delay)
        due_at = tasks.record(task_id).due_at
        tasks.run(70 * MINUTE)
        assert tasks.effect_times(task_id) == pytest.approx([due_at], abs=50)


def _puts_timer(call: Call) -> bool:
    return call.operation in {"put_item", "update_item"} and schema.TIMER_MARK in str(call.request)


def test_a_change_interrupted_after_its_timer_does_not_affect_the_task(tasks: Tasks) -> None:
    """If a change's process dies after setting the timer, the task runs once, at its old due time."""
    with tasks:
        task_id = tasks.create(30 * MINUTE)
        before = tasks.record(task_id)

        def is_change(call: Call) -> bool:
            return call.operation == "update_item" and call.request["Key"][schema.SORT_KEY]["S"] == task_id

        died = tasks.once(is_change, lambda call: call.machine.die())
        tasks.send("PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 600})
        tasks.run(SECOND)
        assert died
        assert tasks.record(task_id) == before
        assert any(schema.TIMER_MARK in item[schema.SORT_KEY]["S"] for item in tasks.items())
        tasks.run(HOUR)
        assert tasks.effect_times(task_id) == pytest.approx([before.due_at], abs=50)


def test_a_change_whose_timer_cannot_be_set_is_not_made(tasks: Tasks) -> None:
    """If the timer for a change cannot be written, the change gets 503 and the record does not change."""
    with tasks:
        task_id = tasks.create(30 * MINUTE)
        before = tasks.record(task_id)
        assert tasks.refuse(_puts_timer) == []
        assert tasks.change(task_id, delay_seconds=600).status == 503
        assert tasks.record(task_id) == before


def test_a_change_of_priority_moves_the_task_to_the_other_queue() -> None:
    """After the priority is changed, the new message is on the other queue, and the task runs once."""
    with Tasks() as tasks:
        task_id = tasks.create(MINUTE)
        tasks.change(task_id, priority="high")
        assert task_id in _queue(tasks, "high").messages[0].body
        tasks.run(2 * MINUTE)
        assert len(tasks.effects) == 1


def test_a_creation_that_comes_after_its_own_minute_is_not_lost(tasks: Tasks) -> None:
    """A repeated create request after its minute has passed sets a timer that a scan still reads."""
    with tasks:
        tasks.refuse(lambda call: call.operation == "put_item" and (call.partition or "")[:2] == "20")
        body, key = {"type": PLAIN, "delay_seconds": 60}, {"Idempotency-Key": "once"}
        assert tasks.ask("POST", "/v1/tasks", body, headers=key).status == 503
        tasks.before_call = None
        tasks.run(3 * MINUTE)
        first = tasks.ask("POST", "/v1/tasks", body, headers=key).body
        again = tasks.ask("POST", "/v1/tasks", body, headers=key).body
        assert first["id"] == again["id"]
        assert minute_of(tasks.record(first["id"]).due_at) < minute_of(tasks.now)
        assert any(schema.TIMER_MARK in item[schema.SORT_KEY]["S"] for item in tasks.items())
        tasks.run(5 * MINUTE)
        assert len(tasks.effects) == 1


# The trigger.


def test_the_cursor_stays_while_a_queue_rejects_messages(tasks: Tasks) -> None:
    """The cursor moves only after all messages are accepted, so the next tick sends refused messages in time."""
    with tasks:
        task_id = tasks.create(11 * MINUTE)
        refused = tasks.refuse_sends()
        tasks.run(9 * MINUTE)
        assert refused
        tasks.before_call = None
        tasks.run(3 * MINUTE)
        assert (tasks.done(task_id).lateness or 0) < SECOND


def test_a_minute_that_cannot_be_read_is_read_by_the_next_tick(tasks: Tasks) -> None:
    """While the table throttles, the cursor stays and the group is released, so the next tick continues at once."""
    with tasks:
        task_id = tasks.create(6 * MINUTE)
        refused = tasks.refuse(lambda call: call.machine.function == "trigger" and call.operation == "query")
        tasks.run(4 * MINUTE)
        assert refused
        tasks.before_call = None
        tasks.run(3 * MINUTE)
        assert (tasks.done(task_id).lateness or 0) < SECOND


def test_a_later_tick_takes_over_from_a_dead_trigger(tasks: Tasks) -> None:
    """After a trigger dies, its hold ends, and a later tick continues from the same place."""
    with tasks:
        task_id = tasks.create(8 * MINUTE)
        died = tasks.once(
            lambda call: call.machine.function == "trigger" and call.operation == "query",
            lambda call: call.machine.die(),
        )
        tasks.run(9 * MINUTE)
        assert died
        assert (tasks.done(task_id).lateness or 0) < SECOND


@pytest.mark.parametrize("stall", [SECOND, 2 * GROUP_HOLD])
def test_overlapping_ticks_run_no_task_twice(tasks: Tasks, stall: Millis) -> None:
    """If ticks overlap, only one tick reads; if that tick stalls, a later tick takes over, and no task runs twice."""
    with tasks:
        tasks.last(10)
        due = (tasks.now // MINUTE + 6) * MINUTE
        made = [tasks.create(due - tasks.now + 10 * index) for index in range(10)]
        # The next tick is the first tick to read the minute in which the tasks are due.
        tasks.time.run_until(due - 3 * MINUTE - 1)
        tasks.ticking = False
        tasks.run(1)
        tasks.before_call = lambda call: (
            tasks.take(stall) if call.operation == "send_message_batch" and call.machine.function == "trigger" else None
        )
        for _ in range(5):
            tasks.invoke("trigger", {})
        tasks.run(GROUP_HOLD)
        assert tasks.counts()["shard_groups_held"] == 4
        tasks.invoke("trigger", {})
        tasks.run(10 * MINUTE)
        assert sorted(effect.task_id for effect in tasks.effects) == sorted(made)
        assert tasks.sent() == (10 if stall < GROUP_HOLD else 20)


def test_an_outage_of_hours_is_scanned_to_the_end(tasks: Tasks) -> None:
    """After a three-hour outage of the trigger, scans skip no minute, and tasks with lost messages run."""
    with tasks:
        tasks.run(SECOND)
        made = [tasks.create(20 * SECOND + index * MINUTE) for index in range(3)]
        tasks.lose_messages()
        tasks.ticking = False
        tasks.run(3 * HOUR)
        tasks.ticking = True
        tasks.run(3 * MINUTE)
        assert {tasks.state(task_id) for task_id in made} == {"succeeded"}


# Recovery scans.


@pytest.mark.parametrize(
    "scan", [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, len(RECOVERY_SCAN_DELAYS)))]
)
def test_no_scan_skips_a_minute_after_an_outage(tasks: Tasks, scan: int) -> None:
    """If a task's message is lost again after earlier scans, the next scan finds the task, even if it is late."""
    with tasks:
        tasks.receiving = False
        made = [tasks.create(index * MINUTE) for index in range(3)]
        tasks.run(RECOVERY_SCAN_DELAYS[scan] - MINUTE)
        tasks.ticking = False
        tasks.lose_messages()
        tasks.run(50 * MINUTE)
        tasks.ticking = True
        tasks.receive_again()
        tasks.run(2 * MINUTE)
        assert {tasks.state(task_id) for task_id in made} == {"succeeded"}


def test_a_scan_waits_while_the_queue_is_long(tasks: Tasks) -> None:
    """While a queue has a backlog, the scan's cursor does not move, so that the scan adds no duplicate messages."""
    with tasks:
        task_id = _create_unsent(tasks, delay=2 * SECOND)
        _grow(tasks, "normal")
        sent = tasks.sent()
        tasks.run(10 * MINUTE)
        assert tasks.sent() == sent
        assert tasks.counts()["recovery_scans_waiting"] >= 5
        _queue(tasks, "normal").messages.clear()
        tasks.unread_until.clear()
        tasks.receive_again()
        tasks.run(5 * MINUTE)
        assert tasks.state(task_id) == "succeeded"


@pytest.mark.parametrize("long", ["low", "pulled"])
@pytest.mark.parametrize("scan", [0, 1])
def test_a_full_queue_does_not_delay_the_recovery_of_other_queues(tasks: Tasks, long: str, scan: int) -> None:
    """A task whose message is lost runs after the next scan, even if another queue is full."""
    with tasks:
        _grow(tasks, long)
        tasks.run(2 * MINUTE)
        task_id = tasks.create(priority="high", delay=2 * SECOND)
        until = tasks.now + RECOVERY_SCAN_DELAYS[scan] - MINUTE
        tasks.unread_until[_queue(tasks, "high").url] = until
        tasks.time.run_until(until - 1)
        _queue(tasks, "high").messages.clear()
        tasks.receive_again()
        tasks.run(4 * MINUTE)
        assert tasks.state(task_id) == "succeeded"


@pytest.mark.parametrize("offset", [1, 29, 58])
def test_lost_messages_of_due_tasks_are_sent_again_within_75_seconds(tasks: Tasks, offset: int) -> None:
    """Messages lost just before their due times are sent again within 75 seconds, whenever the tick comes."""
    with tasks:
        tasks.time.run_until((tasks.now // MINUTE + 1) * MINUTE + offset * SECOND)
        start = tasks.now + 10 * SECOND
        made = [tasks.create(due_at=to_iso(start + second * SECOND)) for second in range(60)]
        for task_id in made:
            tasks.time.run_until(tasks.record(task_id).due_at - SECOND)
            tasks.lose_messages()
        tasks.run(2 * MINUTE)
        late = [tasks.done(task_id).lateness or 0 for task_id in made]
        assert max(late) <= EARLY_SCAN_AGES[1]
        assert min(late) >= EARLY_SCAN_AGES[0]
        assert len(tasks.effects) == len(made)


@pytest.mark.parametrize("second", [1, 12, 23])
def test_an_attempt_lost_with_its_message_is_taken_over_a_tick_after_its_lease(tasks: Tasks, second: int) -> None:
    """The early scan finds the ended lease of an attempt whose worker and message vanished."""
    with tasks:
        tasks.time.run_until((tasks.now // MINUTE + 1) * MINUTE + second * SECOND)
        tasks.hang(1)
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(SECOND)
        tasks.kill()
        tasks.lose_messages()
        leased_until = tasks.record(task_id).lease_expires_at or 0
        tasks.run(2 * MINUTE)
        assert tasks.done(task_id).attempt == 2
        assert (tasks.record(task_id).finished_at or 0) <= leased_until + MAX_CLOCK_DIFFERENCE + MINUTE


def test_the_early_scan_does_not_send_tasks_that_wait_in_a_backlog(tasks: Tasks) -> None:
    """If more tasks than the early scan's limit wait on an unread queue, the early scan sends none of them again."""
    with tasks:
        due = tasks.now + 5 * SECOND
        tasks.unread_until[_queue(tasks, "normal").url] = tasks.now + HOUR
        for _ in range(EARLY_SCAN_BACKLOG + 1):
            tasks.create(due_at=to_iso(due))
        tasks.run(EARLY_SCAN_AGES[1])
        assert tasks.counts()["timers_recovered"] == 0
        assert tasks.sent() == EARLY_SCAN_BACKLOG + 1


def test_a_task_that_started_in_time_is_not_sent_again(tasks: Tasks) -> None:
    """Running, ended, retried and future tasks are not sent again."""
    with tasks:
        tasks.last(60)
        running, far = tasks.create(), tasks.create(70 * SECOND)
        tasks.run(SECOND)
        tasks.fail(1)
        retried = tasks.create()
        tasks.run(SECOND)
        tasks.target = lambda _phase, _context: "done"
        ended = tasks.create()
        tasks.run(MINUTE)
        assert tasks.counts()["timers_recovered"] == 0
        states = [tasks.state(each).value for each in (running, far, retried, ended)]
        assert states == ["succeeded", "scheduled", "succeeded", "succeeded"]


def test_the_early_scan_sends_no_task_that_the_same_tick_has_sent(tasks: Tasks) -> None:
    """After ten minutes without ticks, the first tick sends each overdue task only once."""
    with tasks:
        made = [tasks.create(9 * MINUTE + second * SECOND) for second in range(0, 60, 6)]
        tasks.ticking = False
        tasks.run(10 * MINUTE)
        tasks.invoke("trigger", {})
        tasks.run(30 * SECOND)
        assert {tasks.state(each) for each in made} == {"succeeded"}
        assert tasks.sent() == len(made)


def test_the_early_scan_sends_no_messages_delayed_by_a_quota(tasks: Tasks) -> None:
    """With an attempts quota, messages can be delayed beyond the due time, so the early scan does not send again."""
    with tasks:
        tasks.environ[Variable.QUOTAS] = json.dumps({"concurrent_attempts": 2})
        tasks.create(2 * SECOND)
        tasks.lose_messages()
        tasks.run(EARLY_SCAN_AGES[1])
        assert tasks.counts()["timers_recovered"] == 0
        tasks.run(RECOVERY)
        assert tasks.counts()["timers_recovered"] == 1


def test_a_recovery_scan_finds_the_task_if_the_early_scan_fails(tasks: Tasks) -> None:
    """If the early scan cannot read, the tick still succeeds, and a recovery scan finds the task."""
    with tasks:
        task_id = _create_unsent(tasks, delay=2 * SECOND)
        refused = tasks.refuse(
            lambda call: call.operation == "query" and f"{to_iso(tasks.now)[:16]}#" in str(call.request)
        )
        tasks.run(MINUTE + 2 * SECOND)
        assert refused
        assert "the last minute could not be read" in tasks.notes()
        tasks.before_call = None
        tasks.run(RECOVERY)
        assert tasks.state(task_id) == "succeeded"


def test_a_queue_that_rejects_messages_delays_no_other_queue(tasks: Tasks) -> None:
    """If one queue refuses messages, tasks in other queues are on time, and tasks in that queue run later."""
    with tasks:
        low = [tasks.create(delay * MINUTE, priority="low") for delay in (6, 9)]
        others = [tasks.create(delay * MINUTE) for delay in (6, 9, 20)]
        tasks.refuse(lambda call: call.operation == "send_message_batch" and "low" in call.request["QueueUrl"])
        tasks.run(22 * MINUTE)
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in others)
        assert {tasks.state(task_id) for task_id in low} == {"scheduled"}
        tasks.before_call = None
        tasks.run(3 * MINUTE)
        assert {tasks.state(task_id) for task_id in low} == {"succeeded"}


def test_a_recovery_scan_sends_no_task_that_was_never_dispatched(tasks: Tasks) -> None:
    """Recovery scans do not send tasks that were never dispatched because their queue refused messages."""
    with tasks:
        made = [tasks.create(6 * MINUTE) for _ in range(15)]
        tasks.refuse_sends()
        tasks.run(16 * MINUTE)
        tasks.before_call = None
        tasks.run(4 * MINUTE)
        assert {tasks.state(task_id) for task_id in made} == {"succeeded"}
        assert tasks.sent() == len(made)


def test_a_scan_keeps_tasks_that_their_queue_rejects(tasks: Tasks) -> None:
    """A scan keeps tasks that their queue refuses, and sends them when the queue accepts messages."""
    with tasks:
        refused = tasks.refuse_sends()
        task_id = tasks.create(priority="high")
        tasks.run(20 * MINUTE)
        assert any(call.machine.function == "trigger" for call in refused)
        assert tasks.state(task_id) == "scheduled"
        tasks.before_call = None
        tasks.run(3 * MINUTE)
        assert tasks.state(task_id) == "succeeded"


def test_the_scan_of_a_long_queue_continues_when_it_is_short(tasks: Tasks) -> None:
    """While a queue is too long, its scan waits; once the queue is short, the scan continues where it stopped."""
    with tasks:
        _grow(tasks, "low")
        tasks.refuse_sends()
        task_id = tasks.create(priority="low")
        tasks.before_call = None
        tasks.run(2 * HOUR)
        assert tasks.state(task_id) == "scheduled"
        assert tasks.counts()["recovery_scans_waiting"] > 0
        _queue(tasks, "low").messages.clear()
        tasks.unread_until.clear()
        tasks.receive_again()
        tasks.run(5 * MINUTE)
        assert tasks.state(task_id) == "succeeded"


def test_a_lost_message_of_a_pulled_task_is_sent_again_to_its_queue(tasks: Tasks) -> None:
    """If a pulled task's message is lost, a scan sends the task to the queue that pull workers read."""
    with tasks:
        task_id = _create_unsent(tasks, kind=PULLED)
        tasks.run(EARLY_SCAN_AGES[1])
        assert [task_id in message.body for message in _queue(tasks, "pulled").messages] == [True]


def test_a_lost_retry_is_sent_again_by_the_scan_of_its_own_minute(tasks: Tasks) -> None:
    """A quick retry has no timer, so the first scan of the task's minute sends it again."""
    with tasks:
        tasks.fail(1)
        task_id = tasks.create(retry={"initial_seconds": 60})
        tasks.run(500)
        assert tasks.state(task_id) == "waiting"
        assert not any(schema.TIMER_MARK in item[schema.SORT_KEY]["S"] for item in tasks.items())
        tasks.lose_messages()
        tasks.run(MINUTE + RECOVERY)
        assert tasks.state(task_id) == "succeeded"


def test_a_lost_message_of_a_rollback_is_sent_again_by_a_scan(tasks: Tasks) -> None:
    """Scans also find tasks whose rollback messages are lost."""
    with tasks:
        task_id = tasks.create(kind=UNDONE)
        tasks.run(SECOND)
        tasks.receiving = False
        assert tasks.do(task_id, "rollback").status == 202
        tasks.lose_messages()
        tasks.receive_again()
        tasks.run(4 * MINUTE)
        assert tasks.state(task_id) == "rolled_back"
