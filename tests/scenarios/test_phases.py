"""Prepare, run, clean, rollback, deferral and callback work in the same way for every kind of target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import (
    CONTENT_OUTLIVES_RECORD,
    LEASE_RETURN_MARGIN,
    MAX_CLOCK_DIFFERENCE,
)
from duetime.domain.tasks.task import ContentPlace
from duetime.handlers import Accepted, Unretriable
from tests.scenarios.scenario import HOUR, MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation import works
from tests.simulation.endpoints import CALLBACK_URL, URL
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

CLEANED = {"kind": "http", "url": URL, "phases": ["clean"]}
PREPARED = {"kind": "http", "url": URL, "phases": ["prepare"]}


@pytest.fixture
def tasks() -> Tasks:
    """An account in which tasks may be late."""
    made = Tasks()
    made.faulty = True
    return made


def _slow(tasks: Tasks, phase: str, duration: Millis, fence: int = 0) -> None:
    """Make one phase take long, for one fence or, if `fence` is 0, for all fences."""
    tasks.target = lambda called, context: (
        tasks.take(duration) if called == phase and fence in {0, context.fence} else "done"
    )


# Prepare, run, clean.


def test_phases_run_in_order() -> None:
    """`prepare`, `run` and `clean` are parts of one attempt, and the task is finished only after `clean`."""
    with Tasks() as tasks:
        tasks.last(1)
        task_id = tasks.create(kind=PHASED)
        tasks.run(500)
        assert tasks.state(task_id) == "preparing"
        tasks.run(SECOND)
        assert tasks.state(task_id) == "running"
        tasks.run(SECOND)
        assert (tasks.state(task_id), tasks.record(task_id).finished_at) == ("succeeded", None)
        tasks.run(SECOND)
        task = tasks.record(task_id)
        assert tasks.phases() == ["prepare", "run", "clean"]
        assert (task.attempt, task.fence, {effect.fence for effect in tasks.effects}) == (1, 1, {1})
        assert task.finished_at is not None


def test_a_failed_prepare_fails_the_attempt(tasks: Tasks) -> None:
    """If `prepare` fails, `run` is not called, and the next attempt prepares again."""
    with tasks:
        tasks.fail(1, "prepare")
        task_id = tasks.create(target=PREPARED)
        tasks.run(MINUTE)
        assert tasks.phases() == ["prepare", "prepare", "run"]
        assert tasks.done(task_id).attempt == 2


@pytest.mark.parametrize("phase", ["prepare", "clean", "rollback"])
def test_a_worker_lost_during_a_phase_is_replaced(tasks: Tasks, phase: str) -> None:
    """If a worker is lost in a phase, another worker continues after the lease, and the outcome is kept."""
    with tasks:
        lost_under = 1 if phase != "rollback" else 3

        def behave(called: str, context: Context) -> str:
            if called == phase and context.fence == lost_under:
                tasks.take(HOUR)
            if called == "run" and phase == "rollback":
                raise ValueError
            return "done"

        tasks.target = behave
        task_id = tasks.create(
            kind=PHASED if phase == "clean" else PLAIN,
            target={"kind": "handler"} if phase == "clean" else {"kind": "http", "url": URL, "phases": [phase]},
            timeout_seconds=800,
            retry={"max_attempts": 2, "initial_seconds": 0},
            rollback_on_failure=phase == "rollback",
        )
        tasks.run(3 * SECOND)
        tasks.kill()
        tasks.run(LEASE + MINUTE)
        task = tasks.record(task_id)
        assert task.finished_at is not None
        first, second = (effect.at for effect in tasks.effects if effect.phase == phase)
        assert second >= first + LEASE + MAX_CLOCK_DIFFERENCE
        expected = {
            "prepare": ("succeeded", 2, 2, ["prepare", "prepare", "run"]),
            "clean": ("succeeded", 1, 2, ["prepare", "run", "clean", "clean"]),
            "rollback": ("rolled_back", 2, 4, ["run", "run", "rollback", "rollback"]),
        }[phase]
        assert (task.state, task.attempt, task.fence, tasks.phases()) == expected


def test_clean_runs_after_any_outcome() -> None:
    """`clean` also runs after a failure, and a failure of `clean` is counted but does not change the outcome."""
    with Tasks() as tasks:

        def fail(phase: str, _context: Context) -> str:
            if phase == "prepare":
                return "done"
            raise Unretriable("everything fails")

        tasks.target = fail
        task_id = tasks.create(kind=PHASED)
        tasks.run(SECOND)
        task = tasks.record(task_id)
        assert tasks.phases() == ["prepare", "run", "clean"]
        assert (task.state, task.finished_at is not None) == ("failed", True)
        assert tasks.counts()["cleanups_failed"] == 1


def test_two_workers_never_clean_up_concurrently(tasks: Tasks) -> None:
    """A duplicate message during the cleanup causes no second cleanup."""
    with tasks:
        _slow(tasks, "clean", 20 * SECOND)
        task_id = tasks.create(kind=PHASED)
        tasks.run(SECOND)
        tasks.deliver_in_flight_again()
        tasks.run(5 * MINUTE)
        assert tasks.phases(task_id) == ["prepare", "run", "clean"]


def test_a_task_whose_clean_hangs_is_finished(tasks: Tasks) -> None:
    """A process that hangs in `clean` is ended, the outcome is kept, and the callback is sent."""
    with tasks:
        _slow(tasks, "clean", HOUR)
        task_id = tasks.create(kind=PHASED, timeout_seconds=5, callback_url=CALLBACK_URL)
        tasks.run(10 * MINUTE)
        task = tasks.record(task_id)
        assert (task.state, task.finished_at is not None, tasks.worker_ends()) == ("succeeded", True, 1)
        assert tasks.phases() == ["prepare", "run", "clean"]
        assert tasks.callbacks == [(task_id, "succeeded")]


# Rollback.


def test_a_final_failure_is_rolled_back_with_rollback_on_failure(tasks: Tasks) -> None:
    """After its last attempt fails, the task is rolled back and keeps its error."""
    with tasks:
        tasks.fail()
        task_id = tasks.create(kind=UNDONE, retry={"max_attempts": 2}, rollback_on_failure=True)
        tasks.run(MINUTE)
        task = tasks.record(task_id)
        assert tasks.phases() == ["run", "run", "rollback"]
        assert (task.state, task.attempt, task.fence) == ("rolled_back", 1, 3)
        assert task.error is not None
        assert task.error.type == "ValueError"
        assert tasks.outcomes(task_id) == ["retried", "failed", "rolled_back"]
        assert tasks.counts()["tasks_rolled_back"] == 1


def test_a_final_failure_is_not_rolled_back_by_default(tasks: Tasks) -> None:
    """Nothing is rolled back without `rollback_on_failure`, or if the target cannot roll back."""
    with tasks:
        tasks.fail()
        unasked = tasks.create(kind=UNDONE, retry=ONCE)
        unable = tasks.create(retry=ONCE, rollback_on_failure=True)
        tasks.run(SECOND)
        assert [tasks.state(task_id) for task_id in (unasked, unable)] == ["failed", "failed"]
        assert "rollback" not in tasks.phases()


def test_a_rollback_has_its_own_attempts_and_may_fail(tasks: Tasks) -> None:
    """A rollback has its own attempts; if all of them fail, the task is `failed` with the rollback's error."""
    with tasks:

        def fail(phase: str, _context: Context) -> str:
            raise ValueError(f"{phase} failed")

        tasks.target = fail
        task_id = tasks.create(kind=UNDONE, retry={"max_attempts": 2}, rollback_on_failure=True)
        tasks.run(MINUTE)
        task = tasks.record(task_id)
        assert tasks.phases() == ["run"] * 2 + ["rollback"] * 2
        assert task.error is not None
        assert (task.state, task.error.message) == ("failed", "rollback failed")


# Deferral.


def _notify(tasks: Tasks, task_id: str, result: object = 7, fence: int = 1) -> int:
    return tasks.do(task_id, "notify", {"fence": fence, "outcome": "succeeded", "result": result}).status


def test_a_deferred_task_waits_for_its_notification(tasks: Tasks) -> None:
    """A deferred task stays `running`, without a message on a queue, until its notification ends it."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(notify_within_seconds=1800)
        tasks.run(10 * MINUTE)
        running = tasks.record(task_id)
        assert (running.state, running.awaiting_notification) == ("running", True)
        assert abs((running.lease_expires_at or 0) - tasks.effects[0].at - 1800 * SECOND) < 100
        assert tasks.messages() == []
        assert _notify(tasks, task_id) == 200
        tasks.run(SECOND)
        task = tasks.done(task_id)
        assert task.result is not None
        assert (task.result.data, task.finished_at is not None) == (b"7", True)
        tasks.run(HOUR)
        assert len(tasks.effects) == 1


@pytest.mark.parametrize("deadline", [20, 600])
def test_a_deferred_task_is_retried_after_its_deadline(tasks: Tasks, deadline: int) -> None:
    """A deferred task without a notification is retried after its deadline, and fails after its last attempt."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(notify_within_seconds=deadline, retry={"max_attempts": 2})
        tasks.run(HOUR // 2)
        task = tasks.record(task_id)
        first, second = tasks.effect_times(task_id)
        late = second - first - deadline * SECOND
        assert MAX_CLOCK_DIFFERENCE <= late <= LEASE_RETURN_MARGIN + SECOND
        assert task.error is not None
        assert (task.state, task.attempt, task.error.type) == ("failed", 2, "DeadlineExceeded")


def test_a_deferral_whose_timer_cannot_be_set_is_not_written(tasks: Tasks) -> None:
    """If a deferral's timer cannot be set, the deferral is not written, and the task is not lost."""
    with tasks:
        tasks.target = lambda _phase, context: Accepted() if context.fence == 1 else "done"
        refused = tasks.refuse(
            lambda call: call.operation in {"put_item", "update_item"} and schema.TIMER_MARK in str(call.request)
        )
        task_id = tasks.create(notify_within_seconds=1800)
        tasks.run(10 * SECOND)
        assert refused
        assert not tasks.record(task_id).awaiting_notification
        tasks.before_call = None
        tasks.kill()
        tasks.run(LEASE + 3 * MINUTE)
        assert tasks.state(task_id) == "succeeded"


def test_a_notification_that_comes_before_the_deferral_wins(tasks: Tasks) -> None:
    """An outcome that is reported before the deferral is written counts, and the task does not run again."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        notified: list[int] = []

        def is_deferral(call: Call) -> bool:
            return call.machine.function == "worker" and bool(tasks.effects) and call.service == "dynamodb"

        def notify(_call: Call) -> None:
            body = {"fence": 1, "outcome": "succeeded", "result": "early"}
            reply = tasks.users.ask("POST", f"/v1/tasks/{tasks.effects[0].task_id}/notify", body)
            notified.append(reply.status if reply else 0)

        tasks.once(is_deferral, notify)
        task_id = tasks.create()
        tasks.run(2 * HOUR)
        assert notified == [200]
        task = tasks.done(task_id)
        assert task.result is not None
        assert (task.result.data, len(tasks.effects)) == (b'"early"', 1)


def test_the_cleanup_after_an_early_notification_waits_for_the_call(tasks: Tasks) -> None:
    """If a target notifies during its call, the cleanup begins only after the call."""
    with tasks:

        def notify_and_go_on(phase: str, context: Context) -> str:
            if phase == "run":
                body = {"fence": context.fence, "outcome": "succeeded", "result": 1}
                tasks.users.ask("POST", f"/v1/tasks/{context.task_id}/notify", body)
                tasks.take(20 * SECOND)
            return "done"

        tasks.target = notify_and_go_on
        task_id = tasks.create(kind=PHASED)
        tasks.run(5 * MINUTE)
        _prepare, run, clean = tasks.effects
        assert clean.at >= run.at + 20 * SECOND
        assert tasks.record(task_id).finished_at is not None
        # This target reports during its call, which other targets must not do.
        assert "succeeded while" in tasks.watching.violations.pop()


# Contents outside the record.


def test_another_worker_does_the_follow_up_if_the_first_dies(tasks: Tasks) -> None:
    """If a worker dies after writing an outcome, another worker does the follow-up when the message is redelivered."""
    with tasks:
        task_id = tasks.create(payload=works.LARGE)
        died = tasks.once(
            lambda call: (
                call.machine.function == "worker" and schema.CONTENT_PREFIX in str(call.request) and bool(tasks.effects)
            ),
            lambda call: call.machine.die(),
        )
        tasks.run(SECOND)
        assert died
        assert (tasks.state(task_id), tasks.record(task_id).finished_at) == ("succeeded", None)
        tasks.run(2 * MINUTE)
        assert tasks.record(task_id).finished_at is not None
        assert len(tasks.effects) == 1


def test_a_payload_outside_the_record_reaches_the_target_and_expires_later() -> None:
    """A large payload is stored outside the record, reaches the target complete, and expires after the record."""
    with Tasks() as tasks:
        seen: list[object] = []
        act = tasks.act

        def look(phase: str, context: object, payload: object) -> object:
            seen.append(payload)
            return act(phase, context, payload)

        tasks.act = look  # type: ignore[method-assign]  # for this test only
        task_id = tasks.create(payload=works.LARGE)
        tasks.run(SECOND)
        task = tasks.done(task_id)
        assert seen == [works.LARGE]
        assert task.payload.place is not ContentPlace.RECORD
        ttls = [int(item[schema.TTL]["N"]) for item in tasks.items(schema.CONTENT_PREFIX) if schema.TTL in item]
        assert task.expires_at is not None
        assert ttls == [(task.expires_at + CONTENT_OUTLIVES_RECORD) // SECOND]
