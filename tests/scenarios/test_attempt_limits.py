"""The limits on how long a task is retried, and on how long an attempt waits for its lock."""

from __future__ import annotations

from typing import Any

from duetime.domain.tasks.states import State
from tests.scenarios.scenario import HOUR, MINUTE, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.scenarios.test_pull_workers import Pulled

SOON = 2 * SECOND
"""A task that is checked at its limit has ended within this time after the limit."""


def limited(seconds: int, **retry: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A policy that retries every few seconds, for at most `seconds`."""
    policy = {"max_attempts": 100, "initial_seconds": 4, "multiplier": 1, "max_seconds": 4}
    return {"retry": {**policy, "max_duration_seconds": seconds, **retry}}


def patient(seconds: int, key: str = "db-17") -> dict[str, Any]:
    """A lock for which each attempt waits at most `seconds`."""
    return {"lock": {"key": key, "wait_seconds": seconds}}


def error_of(tasks: Tasks, task_id: str) -> str | None:
    """The type of a task's error, or `None`."""
    error = tasks.record(task_id).error
    return None if error is None else error.type


def test_no_attempt_starts_after_the_retry_duration() -> None:
    """A task whose next attempt would start after the maximum duration fails; a user's retry restarts the duration."""
    with Tasks() as tasks:
        tasks.fail()
        task_id = tasks.create(**limited(30))
        started = tasks.now
        tasks.run(MINUTE)
        assert (tasks.state(task_id), error_of(tasks, task_id)) == (State.FAILED, "ValueError")
        starts = tasks.effect_times(task_id)
        assert 5 < len(starts) < 100
        assert max(starts) <= started + 30 * SECOND + SOON
        assert (tasks.record(task_id).finished_at or 0) <= started + 30 * SECOND + SOON
        tasks.run(HOUR)
        assert tasks.do(task_id, "retry").status == 200
        again = tasks.now
        tasks.run(MINUTE)
        assert tasks.state(task_id) is State.FAILED
        later = [each for each in tasks.effect_times(task_id) if each >= again]
        assert len(later) > 5


def test_an_attempt_running_at_the_end_of_the_retry_duration_may_succeed() -> None:
    """The maximum retry duration does not end a running attempt."""
    with Tasks() as tasks:
        tasks.last(40)
        task_id = tasks.create(**limited(10))
        tasks.run(MINUTE)
        assert tasks.state(task_id) is State.SUCCEEDED


def test_a_lost_attempt_is_rolled_back_after_the_retry_duration() -> None:
    """If an attempt is lost and no attempt can follow in time, the task is rolled back; its history shows the loss."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.hang()
        task_id = tasks.create(kind=UNDONE, rollback_on_failure=True, **limited(10))
        assert tasks.run_until(lambda: tasks.phases(task_id))
        tasks.kill()
        tasks.target = lambda _phase, _context: "done"
        tasks.run(HOUR)
        assert (tasks.phases(task_id), tasks.state(task_id)) == (["run", "rollback"], State.ROLLED_BACK)
        assert tasks.outcomes(task_id) == ["lost", "rolled_back"]


def test_a_task_that_waits_after_an_attempt_fails_at_the_end_of_its_retry_duration() -> None:
    """A task whose second attempt is held by a switch fails after the retry duration, as its explanation says."""
    with Tasks() as tasks:
        tasks.fail()
        task_id = tasks.create(**limited(60))
        assert tasks.run_until(lambda: tasks.state(task_id) is State.WAITING)
        assert tasks.ask("PUT", "/v1/switches/all/all", {"stopped": True}).status == 200
        tasks.run(20 * SECOND)
        by = tasks.record(task_id).retry_by
        assert by is not None
        assert "No attempt starts after" in tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body["text"]
        tasks.time.run_until(by - SECOND)
        assert not tasks.record(task_id).is_terminal
        tasks.time.run_until(by + SOON)
        assert (tasks.state(task_id), error_of(tasks, task_id)) == (State.FAILED, "RetryDurationExpired")
        attempts = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
        assert {each["error"]["type"] for each in attempts} == {"ValueError"}


def test_a_task_that_waits_too_long_for_a_lock_fails() -> None:
    """A task that waits too long for a lock fails without an attempt; a retry can wait just as long."""
    with Tasks() as tasks:
        tasks.last(50)
        holder = tasks.create(**patient(300))
        assert tasks.run_until(lambda: tasks.phases(holder))
        begun = tasks.now
        task_id = tasks.create(**patient(20))
        third = tasks.create(**patient(300))
        tasks.run(5 * SECOND)
        assert "If it has not got its lock by" in tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body["text"]
        tasks.time.run_until(begun + 19 * SECOND)
        assert tasks.state(task_id) is State.WAITING
        tasks.time.run_until(begun + 20 * SECOND + 2 * SOON)
        record = tasks.record(task_id)
        assert (record.state, error_of(tasks, task_id), record.attempt) == (State.FAILED, "LockWaitExpired", 0)
        assert tasks.do(task_id, "retry").status == 200
        again = tasks.now
        tasks.time.run_until(again + 15 * SECOND)
        assert tasks.state(task_id) is State.WAITING
        tasks.run(5 * MINUTE)
        assert [tasks.state(each) for each in (holder, third)] == [State.SUCCEEDED] * 2
        assert (tasks.state(task_id), tasks.phases(task_id)) == (State.FAILED, [])


def test_pauses_and_resumes_do_not_extend_a_limited_lock_wait() -> None:
    """Repeated pauses and resumes of a task do not extend its limited wait for a lock."""
    with Tasks() as tasks:
        tasks.last(50)
        holder = tasks.create(**patient(300))
        assert tasks.run_until(lambda: tasks.phases(holder))
        begun = tasks.now
        task_id = tasks.create(**patient(20))
        for _ in range(4):
            tasks.run(4 * SECOND)
            assert [tasks.do(task_id, verb).status for verb in ("pause", "resume")] == [200, 200]
        tasks.time.run_until(begun + 19 * SECOND)
        assert tasks.state(task_id) is State.WAITING
        tasks.time.run_until(begun + 20 * SECOND + 2 * SOON)
        assert (tasks.state(task_id), error_of(tasks, task_id)) == (State.FAILED, "LockWaitExpired")


def test_a_later_attempt_that_waits_too_long_for_its_lock_is_rolled_back() -> None:
    """If a second attempt waits too long for its lock, the task is rolled back, however long the rollback waits."""
    with Tasks() as tasks:
        tasks.fail(1)
        slow = {"max_attempts": 3, "initial_seconds": 10, "max_seconds": 10}
        task_id = tasks.create(kind=UNDONE, rollback_on_failure=True, retry=slow, **patient(5))
        assert tasks.run_until(lambda: tasks.state(task_id) is State.WAITING)
        tasks.last(40)
        holder = tasks.create(retry=ONCE, **patient(300))
        tasks.run(5 * MINUTE)
        assert tasks.phases(task_id) == ["run", "rollback"]
        assert tasks.effect_times(task_id)[-1] >= tasks.effect_times(holder)[0] + 40 * SECOND
        assert tasks.state(task_id) is State.ROLLED_BACK


def test_a_pulled_task_that_waits_too_long_for_a_lock_fails() -> None:
    """If a pulled task has waited too long for its lock, it fails when a pull worker asks for a lease."""
    with Pulled() as tasks:
        tasks.create_pulled(**patient(300))
        tasks.lease_one()
        second = tasks.create_pulled(**patient(10))
        for _ in range(4):
            assert tasks.lease(5) == []
        assert (tasks.state(second), error_of(tasks, second)) == (State.FAILED, "LockWaitExpired")


def test_a_pulled_task_without_pull_workers_fails_after_its_retry_duration() -> None:
    """If no pull worker asks again after a failure, a timer makes a worker function fail the task within minutes."""
    with Pulled() as tasks:
        task_id = tasks.create_pulled(**limited(60))
        lease = tasks.lease_one()
        assert tasks.tell(lease, "fail", {"error": {"type": "Boom", "message": "no"}}).status == 200
        by = tasks.record(task_id).retry_by
        assert by is not None
        tasks.time.run_until(by)
        assert tasks.state(task_id) is State.WAITING
        tasks.run(6 * MINUTE)
        assert (tasks.state(task_id), error_of(tasks, task_id)) == (State.FAILED, "RetryDurationExpired")
