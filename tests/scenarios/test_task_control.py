"""Tasks are controlled by requests while they wait, run and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.limits import MAX_CHECKPOINT_BYTES
from duetime.handlers import Accepted, AttemptCancelled, AttemptPaused
from tests.scenarios.scenario import HOUR, MINUTE, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation import works
from tests.simulation.endpoints import URL
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context

BOOM = {"outcome": "failed", "error": {"type": "Boom", "message": "no"}}


@pytest.fixture
def tasks() -> Tasks:
    """An account in which tasks may be late."""
    made = Tasks()
    made.faulty = True
    return made


# Before an attempt begins.


def test_a_paused_task_does_not_run_until_it_is_resumed(tasks: Tasks) -> None:
    """A task paused past its due time runs as soon as it is resumed."""
    with tasks:
        task_id = tasks.create(5 * MINUTE)
        assert tasks.do(task_id, "pause").body["state"] == "paused"
        tasks.run(2 * HOUR)
        assert not tasks.effects
        tasks.do(task_id, "resume")
        tasks.run(SECOND)
        assert tasks.state(task_id) == "succeeded"


def test_a_task_resumed_in_time_keeps_its_due_time() -> None:
    """A task that is paused and resumed before its due time runs at its due time."""
    with Tasks() as tasks:
        task_id = tasks.create(30 * MINUTE)
        due_at = tasks.record(task_id).due_at
        tasks.do(task_id, "pause")
        tasks.run(10 * MINUTE)
        tasks.do(task_id, "resume")
        tasks.run(HOUR)
        assert tasks.effect_times(task_id) == pytest.approx([due_at], abs=50)


@pytest.mark.parametrize("how", ["pause", "cancel"])
def test_a_pause_or_cancel_before_the_claim_overrides_a_received_message(how: str) -> None:
    """After a pause or cancel, a message that was already received starts no attempt and is deleted."""
    with Tasks() as tasks:
        task_id = tasks.create(4 * SECOND)
        tasks.time.run_until(tasks.record(task_id).due_at - 300)
        assert tasks.busy()
        if how == "pause":
            assert tasks.do(task_id, "pause").status == 200
        else:
            assert tasks.cancel(task_id).status == 200
            assert tasks.record(task_id).expires_at is not None
        tasks.run(5 * MINUTE)
        assert (tasks.state(task_id), tasks.effects) == ("paused" if how == "pause" else "cancelled", [])
        assert tasks.messages() == []


def test_a_run_request_starts_a_paused_or_future_task_at_once() -> None:
    """With `run`, a task that is paused or due in an hour runs immediately and only once."""
    with Tasks() as tasks:
        later, paused = tasks.create(HOUR), tasks.create(HOUR)
        tasks.do(paused, "pause")
        began = tasks.now
        for task_id in (later, paused):
            assert tasks.do(task_id, "run").status == 200
        tasks.run(SECOND)
        assert sorted(effect.task_id for effect in tasks.effects) == sorted([later, paused])
        assert max(effect.at for effect in tasks.effects) < began + SECOND
        tasks.run(2 * HOUR)
        assert len(tasks.effects) == 2


def test_a_changed_payload_reaches_the_target() -> None:
    """An attempt gets the payload that the record has when the task is claimed."""
    with Tasks() as tasks:
        seen: list[object] = []
        act = tasks.act

        def look(phase: str, context: object, payload: object) -> object:
            seen.append(payload)
            return act(phase, context, payload)

        tasks.act = look  # type: ignore[method-assign]  # for this test only
        task_id = tasks.create(2 * SECOND, payload=1)
        tasks.change(task_id, payload=2)
        tasks.run(5 * SECOND)
        assert seen == [2]


def _contents(tasks: Tasks) -> dict[str, bool]:
    """Whether contents outside the record expire, by name."""
    items = tasks.items(schema.CONTENT_PREFIX)
    return {item[schema.SORT_KEY]["S"].rpartition("#")[2]: schema.TTL in item for item in items}


def test_a_rejected_change_stores_no_payload() -> None:
    """A change that is refused stores no payload, which would otherwise never expire."""
    with Tasks() as tasks:
        task_id = tasks.create(MINUTE)
        assert tasks.change(task_id, delay_seconds=11 * 366 * 86_400, payload=works.LARGE).status == 422
        assert tasks.change(task_id, target={"kind": "pull"}, payload=works.LARGE).status == 422
        assert (tasks.record(task_id).version, _contents(tasks)) == (1, {})


def test_an_unused_or_replaced_payload_expires() -> None:
    """A replaced payload expires, and so does a new payload if its change loses to a cancel."""
    with Tasks() as tasks:
        payloads = [works.LARGE[number:] for number in range(3)]
        task_id = tasks.create(HOUR, payload=payloads[0])
        tasks.change(task_id, payload=payloads[1])
        assert sorted(_contents(tasks).values()) == [False, True]

        def cancel(_call: object) -> None:
            tasks.users.ask("POST", f"/v1/tasks/{task_id}/cancel")

        tasks.once(
            lambda call: call.operation == "update_item" and call.request["Key"][schema.SORT_KEY]["S"] == task_id,
            cancel,
        )
        assert tasks.change(task_id, payload=payloads[2]).status == 409
        assert tasks.state(task_id) == "cancelled"
        assert list(_contents(tasks).values()) == [True] * 3


def test_rollback_on_failure_is_rejected_for_an_endpoint_without_rollback() -> None:
    """`rollback_on_failure` is refused for an endpoint without rollback, whichever field is changed."""
    unable: dict[str, Any] = {"kind": "http", "url": URL}
    able = unable | {"phases": ["rollback"]}
    with Tasks() as tasks:
        task_id = tasks.create(MINUTE, target=unable)
        assert tasks.change(task_id, rollback_on_failure=True).status == 422
        assert tasks.change(task_id, rollback_on_failure=True, target=able).status == 200
        refused = tasks.change(task_id, target=unable | {"phases": []})
        assert (refused.status, [fault["field"] for fault in refused.body["errors"]]) == (422, ["rollback_on_failure"])
        assert tasks.record(task_id).rollback_on_failure


# While an attempt runs.


def _yields(tasks: Tasks, checkpoint: object) -> None:
    """Have targets work for a minute or until a pause; if there is a checkpoint, they return it at once."""

    def behave(_phase: str, context: Context) -> object:
        for _ in range(60 if context.checkpoint is None else 0):
            if context.requested_action == "pause":
                raise AttemptPaused(checkpoint)
            tasks.take(SECOND)
        return context.checkpoint

    tasks.target = behave


def test_a_paused_running_task_continues_from_its_checkpoint(tasks: Tasks) -> None:
    """A paused attempt does not count, and the next attempt gets its checkpoint."""
    with tasks:
        _yields(tasks, {"row": 17})
        task_id = tasks.create(timeout_seconds=600, retry=ONCE)
        tasks.run(5 * SECOND)
        assert tasks.do(task_id, "pause").body["requested_action"] == "pause"
        tasks.run(LEASE)
        paused = tasks.record(task_id)
        assert (paused.state, paused.attempt, paused.requested_action) == ("paused", 0, None)
        tasks.do(task_id, "resume")
        tasks.run(MINUTE)
        task = tasks.done(task_id)
        assert task.result is not None
        assert (task.attempt, task.fence, task.result.data) == (1, 2, b'{"row":17}')
        assert tasks.outcomes(task_id) == ["paused", "succeeded"]


def test_a_checkpoint_that_is_too_large_fails_the_attempt(tasks: Tasks) -> None:
    """An attempt whose checkpoint is too large fails with `CheckpointTooLarge`, and no checkpoint is kept."""
    with tasks:
        _yields(tasks, "x" * MAX_CHECKPOINT_BYTES)
        task_id = tasks.create(timeout_seconds=600)
        tasks.run(5 * SECOND)
        tasks.do(task_id, "pause")
        tasks.run(LEASE)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type, task.checkpoint) == ("failed", "CheckpointTooLarge", None)


def test_a_pause_withdrawn_before_the_attempt_sees_it_has_no_effect(tasks: Tasks) -> None:
    """If a resume comes before the attempt sees the pause, the attempt continues."""
    with tasks:
        _yields(tasks, {"row": 1})
        task_id = tasks.create(timeout_seconds=600)
        tasks.run(SECOND)
        tasks.do(task_id, "pause")
        tasks.do(task_id, "resume")
        tasks.run(2 * MINUTE)
        assert (tasks.state(task_id), len(tasks.effects)) == ("succeeded", 1)


def test_a_pause_request_takes_effect_after_its_worker_dies(tasks: Tasks) -> None:
    """If a worker dies before it sees a pause, the next worker pauses the task instead of running it."""
    with tasks:
        tasks.hang(9)
        task_id = tasks.create(timeout_seconds=600)
        tasks.run(SECOND)
        tasks.do(task_id, "pause")
        tasks.kill()
        tasks.run(LEASE + MINUTE)
        assert (tasks.state(task_id), len(tasks.effects)) == ("paused", 1)


def _failed_while_asked_to_pause(tasks: Tasks, initial_seconds: int = 60) -> str:
    """The id of a task that waits for its retry, because its first attempt failed after a pause was requested."""

    def fail_once(_phase: str, context: Context) -> str:
        tasks.take(5 * SECOND)
        if context.fence == 1:
            raise ValueError
        return "done"

    tasks.target = fail_once
    task_id = tasks.create(retry={"initial_seconds": initial_seconds})
    tasks.run(SECOND)
    tasks.do(task_id, "pause")
    tasks.run(5 * SECOND)
    return task_id


def test_a_task_whose_attempt_fails_after_a_pause_request_is_paused(tasks: Tasks) -> None:
    """If an attempt fails after a pause was requested, the task is paused instead of retried."""
    with tasks:
        task_id = _failed_while_asked_to_pause(tasks, 5)
        tasks.run(MINUTE)
        assert (tasks.state(task_id), len(tasks.effects)) == ("paused", 1)


def test_a_resume_before_the_retry_withdraws_the_pause(tasks: Tasks) -> None:
    """A resume before the retry withdraws the requested pause, and the retry keeps its time."""
    with tasks:
        task_id = _failed_while_asked_to_pause(tasks)
        waiting = tasks.record(task_id)
        assert (waiting.state, waiting.requested_action) == ("waiting", "pause")
        tasks.do(task_id, "resume")
        resumed = tasks.record(task_id)
        assert (resumed.state, resumed.requested_action, resumed.next_at) == ("waiting", None, waiting.next_at)
        tasks.run(2 * MINUTE)
        assert (tasks.state(task_id), len(tasks.effects)) == ("succeeded", 2)


def test_a_second_pause_replaces_the_first_pause_request(tasks: Tasks) -> None:
    """A second pause during the wait for a retry replaces the first request; after a resume, the task runs."""
    with tasks:
        task_id = _failed_while_asked_to_pause(tasks)
        tasks.do(task_id, "pause")
        assert (tasks.state(task_id), tasks.record(task_id).requested_action) == ("paused", None)
        tasks.do(task_id, "resume")
        tasks.run(2 * MINUTE)
        assert (tasks.state(task_id), len(tasks.effects)) == ("succeeded", 2)


def test_a_target_that_stopped_on_request_ends_as_cancelled() -> None:
    """If a target stops on request, its task is cancelled, and the request is no longer open."""
    with Tasks() as tasks:

        def stop_when_asked(_phase: str, context: Context) -> str:
            while context.requested_action != "cancel":
                tasks.take(SECOND)
                context.heartbeat()
            raise AttemptCancelled

        tasks.target = stop_when_asked
        task_id = tasks.create(timeout_seconds=600)
        tasks.run(5 * SECOND)
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(5 * SECOND)
        task = tasks.record(task_id)
        assert (task.state, task.requested_action, task.finished_at is not None) == ("cancelled", None, True)
        assert tasks.outcomes(task_id) == ["cancelled"]


# Deferred attempts.


def _deferred(tasks: Tasks, **fields: Any) -> str:  # noqa: ANN401 - JSON
    """Create a task whose target has accepted the work; return the task's id."""
    tasks.target = lambda _phase, _context: Accepted()
    task_id = tasks.create(**fields)
    tasks.run(SECOND)
    assert tasks.record(task_id).awaiting_notification
    return task_id


def _notify(tasks: Tasks, task_id: str, end: object, fence: int = 1) -> int:
    """Report a result or a failure; return the status."""
    how = BOOM if end is BOOM else {"outcome": "succeeded", "result": end}
    return tasks.do(task_id, "notify", {"fence": fence, **how}).status


def test_a_repeated_report_of_a_failure_succeeds_during_the_next_attempt(tasks: Tasks) -> None:
    """A repeated report of a failure succeeds while the next attempt runs; a different report is refused."""
    with tasks:
        task_id = _deferred(tasks, retry={"max_attempts": 2, "initial_seconds": 1})
        for _ in range(2):
            assert _notify(tasks, task_id, BOOM) == 200
            assert tasks.state(task_id) == "waiting"
        tasks.run(5 * SECOND)
        running = tasks.record(task_id)
        assert (running.state, running.fence) == ("running", 2)
        assert _notify(tasks, task_id, BOOM) == 200
        assert _notify(tasks, task_id, 7) == 409
        assert tasks.record(task_id) == running


def test_a_repeated_report_of_a_success_succeeds_during_a_rollback(tasks: Tasks) -> None:
    """A repeated report of a success succeeds even after a user has started a rollback."""
    with tasks:
        task_id = _deferred(tasks, kind=UNDONE)
        tasks.last(10)
        assert _notify(tasks, task_id, 7) == 200
        tasks.run(SECOND)
        assert tasks.do(task_id, "rollback").status == 202
        assert (_notify(tasks, task_id, 7), _notify(tasks, task_id, 8)) == (200, 409)
        assert tasks.state(task_id) == "rolling_back"


def test_a_handler_rolls_back_after_a_reported_failure(tasks: Tasks) -> None:
    """After a reported failure, the handler rolls back if this was requested, and the error is kept."""
    with tasks:
        task_id = _deferred(tasks, kind=UNDONE, rollback_on_failure=True, retry=ONCE)
        tasks.target = lambda _phase, _context: "done"
        _notify(tasks, task_id, BOOM)
        assert tasks.state(task_id) == "rolling_back"
        tasks.run(SECOND)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type, tasks.phases()) == ("rolled_back", "Boom", ["run", "rollback"])


@pytest.mark.parametrize("action", ["retry", "rollback", "rollback_on_failure"])
def test_a_retry_and_a_rollback_begin_without_progress(tasks: Tasks, action: str) -> None:
    """The progress of an attempt is not shown during and after a later retry or rollback that reports none."""
    with tasks:
        task_id = _deferred(tasks, kind=UNDONE, rollback_on_failure=action == "rollback_on_failure", retry=ONCE)
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/progress", {"fence": 1, "percent": 90}).status == 200
        tasks.last(10)
        assert _notify(tasks, task_id, BOOM) == 200
        tasks.run(SECOND)
        if action != "rollback_on_failure":
            assert tasks.record(task_id).progress is not None
            assert tasks.do(task_id, action).status < 300
        tasks.run(3 * SECOND)
        assert tasks.record(task_id).state == ("running" if action == "retry" else "rolling_back")
        assert tasks.record(task_id).progress is None
        tasks.run(MINUTE)
        assert tasks.record(task_id).state == ("succeeded" if action == "retry" else "rolled_back")
        assert tasks.record(task_id).progress is None


def test_a_task_whose_handler_cannot_roll_back_keeps_its_error(tasks: Tasks) -> None:
    """If a handler cannot roll back, its task keeps its error, and a user's rollback fails (`RollbackUnknown`)."""
    with tasks:
        task_id = _deferred(tasks, rollback_on_failure=True, retry={"max_attempts": 2, "initial_seconds": 0})
        for fence in (1, 2):
            assert _notify(tasks, task_id, BOOM, fence) == 200
            tasks.run(5 * SECOND)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.attempt, task.error.type) == ("failed", 2, "Boom")
        assert task.finished_at is not None
        assert tasks.outcomes(task_id) == ["retried", "failed"]
        assert tasks.do(task_id, "rollback").status == 202
        tasks.run(SECOND)
        asked = tasks.record(task_id)
        assert asked.error is not None
        assert (asked.state, asked.error.type) == ("failed", "RollbackUnknown")


def test_the_history_shows_each_reported_attempt_with_its_own_start(tasks: Tasks) -> None:
    """The history shows each reported attempt with its own start."""
    with tasks:
        task_id = _deferred(tasks, notify_within_seconds=300, retry={"max_attempts": 2})
        first = tasks.effects[0].at
        tasks.run(310 * SECOND)
        second: Task = tasks.record(task_id)
        tasks.run(20 * SECOND)
        assert _notify(tasks, task_id, 7, second.fence) == 200
        line = tasks.record(task_id).attempt_history[-1]
        assert line.started_at >= first + 300 * SECOND
        assert line.took == pytest.approx(25 * SECOND, abs=6 * SECOND)
        assert tasks.outcomes(task_id) == ["lost", "succeeded"]


def test_a_heartbeat_extends_a_deferred_attempts_deadline(tasks: Tasks) -> None:
    """Heartbeats extend a deferred attempt's deadline; without heartbeats, the next attempt begins."""
    with tasks:
        task_id = _deferred(tasks, notify_within_seconds=60)
        for _ in range(5):
            tasks.run(40 * SECOND)
            assert tasks.do(task_id, "heartbeat", {"fence": 1}).status == 200
        assert len(tasks.effects) == 1
        tasks.run(61 * SECOND)
        assert _notify(tasks, task_id, 7) == 409
        tasks.run(9 * SECOND)
        assert len(tasks.effects) == 2
