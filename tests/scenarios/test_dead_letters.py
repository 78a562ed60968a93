"""Tasks whose messages were received too often and became dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.sqs import body_of
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.tasks.task_options import Priority
from duetime.handlers import Accepted
from duetime_testing.fakes.sqs import Held
from tests.scenarios.jobs import MACHINE
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.account import PULLED
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from duetime_testing.fakes.sqs import Queue
    from duetime_testing.simulation.faults import Call


@pytest.fixture
def tasks() -> Tasks:
    """An account in which messages can become dead letters, because no recovery scan comes first."""
    made = Tasks()
    made.faulty, made.ticking = True, False
    return made


def _queue(tasks: Tasks, name: str) -> Queue:
    return next(queue for queue in tasks.sqs.queues.values() if queue.name == name)


def _give_up(tasks: Tasks, task_id: str, queue: str = "normal", generation: int | None = None) -> None:
    """Have SQS move a task's message to the dead-letter queue, and lose all other messages."""
    tasks.lose_messages()
    task = tasks.record(task_id)
    current = task.generation if generation is None else generation
    body = body_of(Message(task.id, current, task.next_at, Priority.NORMAL, task.owner))
    letter = Held("letter", body, task.owner, tasks.now, tasks.now, source=_queue(tasks, queue).arn)
    _queue(tasks, "dead").messages.append(letter)
    tasks.receive_again()


@pytest.mark.parametrize("most", [1, 5])
def test_a_dead_letter_of_a_running_task_is_replaced_by_a_message(tasks: Tasks, most: int) -> None:
    """For a running task's dead letter, a message delayed past the lease is sent; the record does not change."""
    with tasks:
        tasks.last(20)
        task_id = tasks.create(retry={"max_attempts": most})
        tasks.run(SECOND)
        record = tasks.record(task_id)
        _give_up(tasks, task_id)
        tasks.run(SECOND)
        assert tasks.record(task_id) == record
        (message,) = _queue(tasks, "normal").messages
        assert message.visible_at >= (record.lease_expires_at or 0) + 5 * SECOND


def test_the_replacement_of_a_dead_letter_starts_the_next_attempt(tasks: Tasks) -> None:
    """The message that replaces a dead letter starts the next attempt."""
    with tasks:
        tasks.hang()
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(SECOND)
        tasks.kill()
        tasks.receiving = False
        tasks.run(2 * LEASE)
        _give_up(tasks, task_id)
        tasks.run(MINUTE)
        assert tasks.done(task_id).attempt == 2


def test_a_dead_letter_of_the_last_attempt_keeps_the_first_attempt(tasks: Tasks) -> None:
    """If a dead letter fails a task after six attempts, the attempts that no longer fit the record are shown."""
    with tasks:
        tasks.fail_then_hang(5)
        task_id = tasks.create(timeout_seconds=800, retry={"max_attempts": 6, "initial_seconds": 1, "max_seconds": 1})
        assert tasks.run_until(lambda: len(tasks.effects) == 6)
        tasks.kill()
        tasks.receiving = False
        tasks.run(2 * LEASE)
        _give_up(tasks, task_id)
        tasks.run(MINUTE)
        assert tasks.state(task_id) == "failed"
        attempts = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
        assert [each["attempt"] for each in attempts] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("target", [MACHINE, {"kind": "approval", "on_timeout": "approve"}], ids=["job", "approval"])
def test_a_dead_letter_does_not_fail_a_jobs_or_approvals_last_attempt(tasks: Tasks, target: dict[str, Any]) -> None:
    """The last attempt of a job or approval does not fail because of a dead letter, but continues to wait."""
    with tasks:

        def die(call: Call) -> None:
            last = "start_execution" if target is MACHINE else "update_item"
            if call.machine.function == "worker" and call.operation == last:
                tasks.after_call = None
                call.machine.die()

        tasks.after_call = die
        task_id = tasks.create(target=target, retry=ONCE)
        tasks.run(SECOND)
        tasks.receiving = False
        tasks.run(2 * LEASE)
        _give_up(tasks, task_id)
        tasks.run(MINUTE)
        task = tasks.record(task_id)
        assert task.error is None
        assert task.awaiting_notification is (target is MACHINE)
        assert task.waiting_for == (None if target is MACHINE else "an approval")


def test_a_dead_letter_without_open_work_is_deleted(tasks: Tasks) -> None:
    """A dead letter of a changed, paused or ended task is deleted without a write or a new message."""
    with tasks:
        changed, paused, cancelled = (tasks.create(30 * MINUTE) for _ in range(3))
        tasks.change(changed, delay_seconds=2400)
        tasks.do(paused, "pause")
        tasks.cancel(cancelled)
        before = [tasks.record(task_id) for task_id in (changed, paused, cancelled)]
        for task_id in (changed, paused, cancelled):
            _give_up(tasks, task_id, generation=0)
            tasks.run(SECOND)
            assert tasks.messages() == []
        assert [tasks.record(task_id) for task_id in (changed, paused, cancelled)] == before


def test_an_unfinished_outcome_is_finished_by_a_worker(tasks: Tasks) -> None:
    """If a dead letter's task already has an outcome, a worker does the outcome's follow-up."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(callback_url="https://hooks.example.org/ended")
        tasks.run(SECOND)
        fence = tasks.record(task_id).fence
        tasks.refuse_sends()
        assert tasks.do(task_id, "notify", {"fence": fence, "outcome": "succeeded", "result": 1}).status == 200
        tasks.before_call = None
        assert tasks.record(task_id).finished_at is None
        _give_up(tasks, task_id)
        tasks.run(MINUTE)
        assert tasks.record(task_id).finished_at is not None
        assert tasks.callbacks == [(task_id, "succeeded")]


def test_a_dead_letter_is_kept_while_the_work_queue_rejects_messages(tasks: Tasks) -> None:
    """A dead letter is kept on its queue while the work queue refuses messages."""
    with tasks:
        tasks.last(20)
        task_id = tasks.create()
        tasks.run(SECOND)
        tasks.refuse_sends()
        _give_up(tasks, task_id)
        tasks.run(10 * SECOND)
        (letter,) = _queue(tasks, "dead").messages
        assert letter.received == 1


def test_a_pulled_tasks_dead_letter_is_sent_again_to_its_queue(tasks: Tasks) -> None:
    """A pulled task's dead letter is sent again to the queue from which pull workers read."""
    with tasks:
        task_id = tasks.create(kind=PULLED)
        _give_up(tasks, task_id, "pulled")
        tasks.run(MINUTE)
        (message,) = _queue(tasks, "pulled").messages
        assert task_id in message.body
        assert tasks.counts()["dead_letters_sent_again"] == 1


def test_a_group_member_failed_by_a_dead_letter_counts_as_ended(tasks: Tasks) -> None:
    """A group member that fails because of its dead letter counts as ended."""
    with tasks:
        tasks.hang()
        task_id = tasks.create(timeout_seconds=800, retry=ONCE, group={"id": "import-17"})
        assert tasks.ask("PUT", "/v1/groups/import-17", {}).body["state"] == "closed"
        tasks.run(SECOND)
        tasks.kill()
        tasks.receiving = False
        tasks.run(2 * LEASE)
        _give_up(tasks, task_id)
        tasks.run(MINUTE)
        assert tasks.record(task_id).state == "failed"
        (item,) = tasks.items(schema.GROUP_PREFIX)
        assert item["k"] == {"S": '{"failed":1}'}
