"""Each outcome is posted to a callback URL by a separate task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import CALLBACK_ATTEMPTS, CALLBACK_TIMEOUT
from duetime.domain.tasks.notices import CALLBACK_TYPE, callback_spec
from duetime.domain.tasks.states import State
from duetime.domain.times import to_iso
from duetime.handlers import Accepted, Unretriable
from tests.domain.factories import task as ended
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.tasks import Tasks
from tests.simulation.endpoints import CALLBACK_URL, NOTICE_URL

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

DAY = 24 * HOUR


@pytest.fixture
def tasks() -> Tasks:
    """An account in which tasks may be late."""
    made = Tasks()
    made.faulty = True
    return made


def callback_of(tasks: Tasks, task_id: str) -> dict[str, object]:
    """The task's only callback task, found as a user would find it."""
    found = tasks.ask("GET", "/v1/tasks", query=f"type=duetime.callback&name={task_id}").body["tasks"]
    assert len(found) == 1
    return dict(found[0])


def test_a_callback_is_a_task_that_its_owner_can_see() -> None:
    """A callback runs at once, and is listed under the task's id with its target, attempts and history."""
    with Tasks() as tasks:
        task_id = tasks.create(callback_url=CALLBACK_URL, tags={"team": "dba"}, priority="high")
        tasks.run(2 * SECOND)
        assert tasks.callbacks == [(task_id, "succeeded")]
        made = callback_of(tasks, task_id)
        assert made["target"] == {"kind": "callback", "url": CALLBACK_URL}
        assert (made["state"], made["tags"], made["priority"]) == ("succeeded", {"team": "dba"}, "high")
        shown = tasks.ask("GET", f"/v1/tasks/{made['id']}").body
        assert (shown["payload"]["type"], shown["payload"]["data"]["id"]) == ("task.succeeded", task_id)
        attempts = tasks.ask("GET", f"/v1/tasks/{made['id']}/attempts").body["attempts"]
        assert [each["outcome"] for each in attempts] == ["succeeded"]


def test_the_attempts_of_a_callback_are_spread_over_a_day() -> None:
    """With average jitter, a callback's last attempt begins a day after its first attempt."""
    retry = callback_spec(ended(), CALLBACK_URL, b"{}").retry
    assert sum(retry.wait(attempt, 0.5) for attempt in range(1, retry.max_attempts)) == pytest.approx(DAY, rel=0.03)


@pytest.mark.slow
def test_a_callback_is_retried_for_a_day_without_delaying_its_task() -> None:
    """A task finishes at once even if the receiver of its callback is down, and the callback is retried for a day."""
    with Tasks() as tasks:
        tasks.faulty = True
        up_at = tasks.now + 20 * HOUR
        tasks.answer_callback = lambda: 503 if tasks.now < up_at else 204
        task_id = tasks.create(callback_url=CALLBACK_URL)
        tasks.run(10 * SECOND)
        assert tasks.record(task_id).finished_at is not None
        tasks.run(27 * HOUR)
        made = callback_of(tasks, task_id)
        assert (made["state"], tasks.record(task_id).fence) == ("succeeded", 1)
        assert len(tasks.callbacks) > 12
        assert tasks.counts()["callbacks_failed"] == 0


@pytest.mark.parametrize("asked", [True, False])
def test_a_callback_that_a_user_cancels_is_not_sent_again(tasks: Tasks, *, asked: bool) -> None:
    """A callback that is cancelled by name is not sent again, and the simulation reports only unexpected cancels."""
    tasks.answer_callback = lambda: 503
    task_id = tasks.create(callback_url=CALLBACK_URL)
    tasks.run(10 * SECOND)
    assert tasks.ask("POST", "/v1/tasks/cancel", {"filter": {"name": task_id}, "force": True}).status == 200
    sent = len(tasks.callbacks)
    tasks.run(10 * MINUTE)
    assert callback_of(tasks, task_id)["state"] == "cancelled"
    assert (tasks.state(task_id), len(tasks.callbacks)) == ("succeeded", sent)
    if asked:
        tasks.attempts.may_cancel.add(task_id)
    tasks.watching.callbacks.clear()
    tasks.watching.check_end()
    missed = [each for each in tasks.violations if f"{task_id} was not called back" in str(each)]
    assert bool(missed) is not asked


def test_a_callback_cannot_be_rolled_back(tasks: Tasks) -> None:
    """A rollback of a delivered callback is a conflict, and the callback remains succeeded."""
    with tasks:
        task_id = tasks.create(callback_url=CALLBACK_URL)
        tasks.run(3 * SECOND)
        made = str(callback_of(tasks, task_id)["id"])
        refused = tasks.do(made, "rollback")
        assert (refused.status, refused.body["code"]) == (409, "state_conflict")
        tasks.run(5 * SECOND)
        assert tasks.state(made) is State.SUCCEEDED


@pytest.mark.slow
def test_a_callback_that_fails_for_a_day_is_listed_as_failed() -> None:
    """A callback that fails for a day is counted and listed as a failed task, and can be retried."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.answer_callback = lambda: 503
        begun = tasks.now
        task_id = tasks.create(callback_url=CALLBACK_URL)
        assert tasks.run_until(lambda: tasks.counts()["callbacks_failed"] == 1, within=4 * DAY)
        assert tasks.now - begun > 16 * HOUR
        assert len(tasks.callbacks) <= CALLBACK_ATTEMPTS
        tasks.run(MINUTE)
        made = callback_of(tasks, task_id)
        assert made["state"] == "failed"
        assert tasks.state(task_id) == "succeeded"
        dead = tasks.ask("GET", "/v1/tasks", query="state=failed").body["tasks"]
        assert [each["id"] for each in dead] == [made["id"]]
        tasks.answer_callback = lambda: 200
        assert tasks.do(str(made["id"]), "retry").status == 200
        # Calls to the address have failed so often that they pause for some minutes.
        assert tasks.run_until(lambda: tasks.state(str(made["id"])) == "succeeded", within=HOUR)


@pytest.mark.parametrize("is_written", [False, True])
def test_an_outcome_has_one_callback_even_if_a_worker_dies(tasks: Tasks, *, is_written: bool) -> None:
    """If a worker dies before or after it writes the callback, the next worker does not create a second callback."""
    with tasks:
        died = tasks.once(
            lambda call: (
                call.machine.function == "worker" and bool(tasks.effects) and has_callback(tasks, call) is is_written
            ),
            lambda call: call.machine.die(),
        )
        task_id = tasks.create(callback_url=CALLBACK_URL)
        tasks.run(HOUR)
        assert died
        assert tasks.record(task_id).finished_at is not None
        assert callback_of(tasks, task_id)["state"] == "succeeded"
        assert set(tasks.callbacks) == {(task_id, "succeeded")}
        assert len(tasks.effects) == 1


def has_callback(tasks: Tasks, call: Call) -> bool | None:
    """`True` once the callback is written, `False` for the call that writes the callback, and `None` before that."""
    if any(task.type == CALLBACK_TYPE for task in tasks.watching.tasks()):
        return True
    return False if CALLBACK_TYPE in str(call.request) else None


def test_a_callback_is_posted_again_if_its_worker_dies(tasks: Tasks) -> None:
    """If a worker dies after posting a callback, the callback is posted again, but the target is not called again."""
    with tasks:

        def die_first() -> int:
            if len(tasks.callbacks) == 1:
                tasks.kill()
                tasks.take(HOUR)
            return 200

        tasks.answer_callback = die_first
        task_id = tasks.create(callback_url=CALLBACK_URL)
        tasks.run(HOUR)
        assert tasks.callbacks == [(task_id, "succeeded")] * 2
        assert tasks.record(task_id).finished_at is not None
        assert len(tasks.effects) == 1


def test_a_callback_may_take_ten_seconds_whatever_the_tasks_timeout(tasks: Tasks) -> None:
    """A callback may take ten seconds, even if the task's own timeout is shorter."""
    with tasks:

        def answer() -> int:
            tasks.take(CALLBACK_TIMEOUT - SECOND // 2)
            return 200

        tasks.answer_callback = answer
        task_id = tasks.create(callback_url=CALLBACK_URL, timeout_seconds=1)
        tasks.run(MINUTE)
        assert (len(tasks.callbacks), callback_of(tasks, task_id)["state"]) == (1, "succeeded")


def test_an_outcome_that_a_target_reports_has_a_callback(tasks: Tasks) -> None:
    """If the API writes the outcome, a worker does the follow-up, which includes the callback."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(callback_url=CALLBACK_URL)
        tasks.run(SECOND)
        fence = tasks.record(task_id).fence
        assert tasks.do(task_id, "notify", {"fence": fence, "outcome": "succeeded"}).status == 200
        tasks.run(5 * MINUTE)
        assert tasks.callbacks == [(task_id, "succeeded")]
        assert tasks.record(task_id).finished_at is not None


def test_a_task_cancelled_before_its_start_has_no_callback() -> None:
    """A task cancelled before it ran has no callback, because the canceller already has the response."""
    with Tasks() as tasks:
        task_id = tasks.create(HOUR, callback_url=CALLBACK_URL)
        tasks.cancel(task_id)
        tasks.run(2 * HOUR)
        assert tasks.callbacks == []


def test_each_outcome_of_a_retried_task_has_a_callback(tasks: Tasks) -> None:
    """A task that fails and then succeeds in a user's retry has two callbacks, each posted by a separate task."""
    with tasks:
        tasks.fail(error=Unretriable)
        task_id = tasks.create(callback_url=CALLBACK_URL)
        tasks.run(MINUTE)
        tasks.target = lambda _phase, _context: "done"
        assert tasks.do(task_id, "retry").status == 200
        tasks.run(MINUTE)
        assert tasks.callbacks == [(task_id, "failed"), (task_id, "succeeded")]
        made = tasks.ask("GET", "/v1/tasks", query=f"name={task_id}").body["tasks"]
        assert [each["state"] for each in made] == ["succeeded", "succeeded"]


def test_a_failure_without_another_attempt_also_has_a_callback() -> None:
    """If a user's retry fails because it waits too long for a lock, the failure has a callback with its own time."""
    with Tasks() as tasks:
        tasks.fail(error=Unretriable)
        lock = {"key": "db-17", "wait_seconds": 10}
        asked: dict[str, Any] = {"callback_url": CALLBACK_URL, "notify_on": {"failed": True, "to": NOTICE_URL}}
        task_id = tasks.create(lock=lock, **asked)
        tasks.run(MINUTE)
        tasks.last(40)
        holder = tasks.create(lock={"key": "db-17"})
        assert tasks.run_until(lambda: tasks.phases(holder))
        retried = tasks.now
        assert tasks.do(task_id, "retry").status == 200
        tasks.run(MINUTE)
        assert tasks.callbacks == [(task_id, "failed")] * 2
        told = [json.loads(body) for body in tasks.callback_bodies]
        assert [each["data"]["error"]["type"] for each in told] == ["Unretriable", "LockWaitExpired"]
        assert told[1]["timestamp"] >= to_iso(retried)
        assert len(set(tasks.notices)) == len(tasks.notices) == 2


def test_the_content_of_a_callback_cannot_be_changed_by_a_user() -> None:
    """A user cannot change what is signed, and a placeholder in a task's name is not replaced in its callback."""
    with Tasks() as tasks:
        tasks.answer_callback = lambda: 503
        task_id = tasks.create(callback_url=CALLBACK_URL, name="<duetime.task-id>")
        tasks.run(10 * SECOND)
        made = str(callback_of(tasks, task_id)["id"])
        assert tasks.record(made).state is State.WAITING
        for change in ({"payload": {"type": "task.failed"}}, {"target": {"kind": "handler"}}):
            answer = tasks.change(made, **change)
            assert (answer.status, answer.body["code"]) == (422, "fields_invalid"), answer.body
        tasks.answer_callback = lambda: 200
        assert tasks.change(made, delay_seconds=0).status == 200
        tasks.run(10 * SECOND)
        assert tasks.state(made) == "succeeded"
        assert json.loads(tasks.callback_bodies[-1])["data"]["name"] == "<duetime.task-id>"
