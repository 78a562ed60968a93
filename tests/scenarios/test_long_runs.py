"""One notice is sent for each attempt that runs longer than `running_seconds`, for any kind of worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.tasks.states import State
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks
from tests.scenarios.test_pull_workers import Pulled
from tests.simulation.endpoints import NOTICE_URL

if TYPE_CHECKING:
    from duetime.domain.times import Millis

LONG = {"running_seconds": 120, "to": NOTICE_URL}


def _told_at(tasks: Tasks) -> Millis:
    """Let time pass until there is a notice; return the notice's time."""
    assert tasks.run_until(lambda: tasks.notices, within=20 * MINUTE)
    return tasks.now


def test_a_long_attempt_in_a_worker_causes_one_notice() -> None:
    """The notice is sent within two seconds of the limit, and the attempt's success causes no other notice."""
    with Tasks() as tasks:
        tasks.last(300)
        task = tasks.create(timeout_seconds=600, notify_on=LONG)
        told = _told_at(tasks)
        (started,) = tasks.effect_times(task)
        assert 0 <= told - (started + 120 * SECOND) <= 2 * SECOND
        assert tasks.state(task) is State.RUNNING
        assert tasks.run_until(lambda: tasks.state(task) is State.SUCCEEDED)
        tasks.run(HOUR)
        assert tasks.notices == [(f"{task}-1-running", "task.running_long")]


def test_an_attempt_that_ends_in_time_causes_no_notice() -> None:
    """Neither a short attempt nor a long wait causes a notice."""
    with Tasks() as tasks:
        tasks.last(100)
        tasks.create(lock={"key": "db"}, notify_on=LONG, timeout_seconds=600)
        waiting = tasks.create(lock={"key": "db"}, notify_on=LONG, timeout_seconds=600)
        assert tasks.run_until(lambda: tasks.state(waiting) is State.SUCCEEDED)
        tasks.run(HOUR)
        assert tasks.notices == []


def test_each_long_attempt_has_a_notice_with_its_own_id() -> None:
    """If a second attempt is also long, it causes a second notice with its own id."""
    with Tasks() as tasks:

        def behave(_phase: str, _context: Any) -> str:  # noqa: ANN401 - see `scenario.py`
            tasks.take(150 * SECOND)
            raise ValueError("no")

        tasks.target = behave
        task = tasks.create(timeout_seconds=600, notify_on=LONG, retry={"max_attempts": 2})
        assert tasks.run_until(lambda: tasks.record(task).finished_at, within=HOUR)
        assert tasks.notices == [(f"{task}-{fence}-running", "task.running_long") for fence in (1, 2)]


def test_a_hanging_receiver_of_notices_does_not_affect_the_attempt() -> None:
    """While a notice's receiver hangs, the attempt's lease is renewed, and the attempt succeeds."""
    with Tasks() as tasks:
        tasks.last(300)

        def hang() -> int:
            tasks.take(60 * SECOND)
            return 200

        tasks.answer_notice = hang
        task = tasks.create(timeout_seconds=600, notify_on=LONG)
        assert tasks.run_until(lambda: tasks.record(task).finished_at, within=HOUR)
        assert tasks.notices
        assert (tasks.state(task), tasks.record(task).attempt) == (State.SUCCEEDED, 1)


def test_a_long_attempt_of_a_pull_worker_causes_a_notice() -> None:
    """For a pull worker's long attempt, the trigger sends the notice within minutes, unless the attempt has ended."""
    with Pulled() as tasks:
        quick = tasks.create_pulled(notify_on=LONG)
        assert tasks.tell(tasks.lease_one(lasts=300), "complete", {"result": 1}).status == 200
        slow = tasks.create_pulled(timeout_seconds=1800, notify_on=LONG)
        lease = tasks.lease_one(lasts=900)
        leased = tasks.now
        assert 120 * SECOND - 100 <= _told_at(tasks) - leased <= 120 * SECOND + 3 * MINUTE
        assert tasks.tell(lease, "complete", {"result": 1}).status == 200
        tasks.run(2 * HOUR)
        assert tasks.notices == [(f"{slow}-1-running", "task.running_long")]
        assert tasks.state(quick) is State.SUCCEEDED


def test_a_deferred_attempt_that_runs_too_long_causes_a_notice() -> None:
    """A deferred attempt that runs too long causes a notice."""
    with Tasks() as tasks:
        tasks.target = lambda _phase, context: context.defer()
        task = tasks.create(kind=PLAIN, notify_within_seconds=3600, notify_on=LONG)
        assert tasks.run_until(lambda: tasks.record(task).awaiting_notification)
        began = tasks.record(task).run_at or 0
        assert 120 * SECOND <= _told_at(tasks) - began <= 120 * SECOND + 3 * MINUTE
        assert tasks.do(task, "notify", {"fence": 1, "outcome": "succeeded", "result": 1}).status == 200
        tasks.run(2 * HOUR)
        assert tasks.notices == [(f"{task}-1-running", "task.running_long")]


@pytest.mark.parametrize("seconds", [0, -1, 2_592_001, True, "60"])
def test_an_error_for_an_invalid_running_seconds_names_the_field(seconds: object) -> None:
    """The error for an invalid `running_seconds` names the field."""
    with Tasks() as tasks:
        reply = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, "notify_on": {**LONG, "running_seconds": seconds}})
        assert (reply.status, [each["field"] for each in reply.body["errors"]]) == (422, ["notify_on.running_seconds"])
