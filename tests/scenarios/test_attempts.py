"""Attempts that fail, attempts whose workers die, hang or are cut off, and the attempts that follow."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import (
    LEASE_RETURN_MARGIN,
    LONGEST_NOT_SENT_WAIT,
    MAX_CLOCK_DIFFERENCE,
    OVERDUE_GRACE,
    PROCESS_END_TIME,
)
from duetime.handlers import Accepted, AttemptPaused, Unretriable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation.account import PULLED
from tests.simulation.endpoints import URL
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine

HTTP = {"kind": "http", "url": URL}


@pytest.fixture
def tasks() -> Tasks:
    """An account in which tasks may be late."""
    made = Tasks()
    made.faulty = True
    return made


def _writes_record(call: Call) -> bool:
    return call.machine.function == "worker" and call.operation == "update_item"


# Failures.


def test_a_retry_waits_and_runs_again(tasks: Tasks) -> None:
    """A failing target is retried with a new fence until it succeeds, and the history shows every attempt."""
    with tasks:
        tasks.fail(2)
        task_id = tasks.create()
        tasks.run(MINUTE)
        task = tasks.done(task_id)
        assert (task.attempt, task.fence, task.error) == (3, 3, None)
        assert tasks.outcomes(task_id) == ["retried", "retried", "succeeded"]


def test_a_far_retry_is_found_by_the_trigger(tasks: Tasks) -> None:
    """For a retry that is over twenty minutes ahead, no message is on a queue, and the attempt starts on time."""
    with tasks:
        tasks.fail(1)
        task_id = tasks.create(retry={"initial_seconds": 10_800, "max_seconds": 10_800})
        tasks.run(SECOND)
        retry_at = tasks.record(task_id).next_at
        assert retry_at - tasks.now > 20 * MINUTE
        assert tasks.messages() == []
        tasks.time.run_until(retry_at + SECOND)
        _first, second = tasks.effect_times(task_id)
        assert tasks.state(task_id) == "succeeded"
        assert retry_at <= second <= retry_at + 50


def test_a_task_fails_with_its_last_error_after_its_last_attempt(tasks: Tasks) -> None:
    """By default a task is `failed` after five attempts, with the class and message of the last error."""
    with tasks:
        tasks.fail()
        task_id = tasks.create()
        tasks.run(5 * MINUTE)
        task = tasks.record(task_id)
        assert (task.state, task.attempt, len(tasks.effects)) == ("failed", 5, 5)
        assert task.error is not None
        assert (task.error.type, task.error.message) == ("ValueError", "run 5")
        assert task.finished_at is not None


def test_an_unretriable_error_is_not_retried(tasks: Tasks) -> None:
    """A task that fails with `Unretriable` is not retried."""
    with tasks:
        tasks.fail(error=Unretriable)
        task_id = tasks.create()
        tasks.run(5 * MINUTE)
        assert (tasks.state(task_id), len(tasks.effects)) == ("failed", 1)


def test_a_record_keeps_the_last_attempts_and_the_api_returns_all(tasks: Tasks) -> None:
    """After eight attempts, the record has the last five attempts, and the API returns all eight."""
    with tasks:
        tasks.fail(7)
        task_id = tasks.create(retry={"max_attempts": 9, "initial_seconds": 0})
        tasks.run(MINUTE)
        assert [line.attempt for line in tasks.record(task_id).attempt_history] == [4, 5, 6, 7, 8]
        told = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
        assert [line["attempt"] for line in told] == list(range(1, 9))


# Workers that die.


def test_a_worker_killed_in_an_attempt_is_replaced_after_its_lease(tasks: Tasks) -> None:
    """After a worker dies, the queue delivers the message again, and the second run starts when the lease is over."""
    with tasks:
        tasks.hang()
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(5 * SECOND)
        tasks.kill()
        tasks.run(LEASE + RECOVERY)
        first, second = tasks.effects
        assert LEASE + MAX_CLOCK_DIFFERENCE <= second.at - first.at <= LEASE + LEASE_RETURN_MARGIN + 6 * SECOND
        assert second.fence > first.fence
        assert tasks.done(task_id).attempt == 2
        assert tasks.outcomes(task_id) == ["lost", "succeeded"]


def test_a_scan_finds_a_task_whose_worker_and_message_are_lost(tasks: Tasks) -> None:
    """If a worker dies and its message is lost, a scan finds the record's expired lease and sends the task again."""
    with tasks:
        tasks.hang()
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(5 * SECOND)
        tasks.kill()
        tasks.lose_messages()
        tasks.run(LEASE + RECOVERY)
        assert tasks.state(task_id) == "succeeded"


def test_a_worker_killed_before_its_claim_uses_up_no_attempt(tasks: Tasks) -> None:
    """If a worker dies after it received a message but before the claim, the task runs once, as its first attempt."""
    with tasks:
        task_id = tasks.create(10 * SECOND)
        tasks.time.run_until(tasks.record(task_id).due_at - 200)
        assert tasks.busy()
        tasks.kill()
        tasks.run(RECOVERY)
        assert (tasks.done(task_id).attempt, len(tasks.effects)) == (1, 1)


def test_losing_the_last_allowed_attempt_fails_the_task(tasks: Tasks) -> None:
    """A crash counts as an attempt, so a task with only one allowed attempt fails and does not run again."""
    with tasks:
        tasks.hang(9)
        task_id = tasks.create(retry=ONCE, timeout_seconds=800)
        tasks.run(5 * SECOND)
        tasks.kill()
        tasks.run(LEASE + RECOVERY)
        task = tasks.record(task_id)
        assert (task.state, task.attempt, len(tasks.effects)) == ("failed", 1, 1)
        assert task.error is not None
        assert task.error.type == "WorkerLost"
        assert tasks.outcomes(task_id) == ["lost"]


@pytest.mark.parametrize(
    ("retry", "error"),
    [({"max_attempts": 6}, "WorkerLost"), ({"max_attempts": 9, "max_duration_seconds": 20}, "RetryDurationExpired")],
)
def test_every_attempt_is_shown_after_the_last_is_lost(tasks: Tasks, retry: dict[str, int], error: str) -> None:
    """If the sixth attempt is lost and no attempt follows, the attempts that no longer fit the record are shown."""
    with tasks:
        tasks.fail_then_hang(5)
        retry = {**retry, "initial_seconds": 1, "multiplier": 1, "max_seconds": 1}
        task_id = tasks.create(retry=retry, timeout_seconds=800)
        assert tasks.run_until(lambda: len(tasks.effects) == 6)
        tasks.kill()
        tasks.run(LEASE + RECOVERY)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type) == ("failed", error)
        attempts = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
        assert [(each["attempt"], each["outcome"]) for each in attempts] == [
            *((number, "retried") for number in range(1, 6)),
            (6, "lost"),
        ]


@pytest.mark.slow
def test_a_task_is_checked_daily_after_the_last_scan(tasks: Tasks) -> None:
    """After the last scan of its minute, a task whose messages are lost is found by its daily timer."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(notify_within_seconds=25 * 3600)
        tasks.run(SECOND)
        assert tasks.record(task_id).awaiting_notification
        # Every timer for the task's deadline is removed, so that only the timers for scans are left.
        for item in tasks.items():
            partition, sort = item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]
            if schema.TIMER_MARK in sort:
                tasks.table.write(tasks.now, (partition, sort), None)
        tasks.target = lambda _phase, _context: "done"
        tasks.run(25 * HOUR)
        tasks.lose_messages()
        tasks.run(24 * HOUR)
        assert tasks.state(task_id) == "succeeded"


# Leases and heartbeats.


def test_a_long_task_keeps_its_lease() -> None:
    """During ten minutes of work with a 30 s lease, heartbeats renew the lease and hide the message."""
    with Tasks() as tasks:
        tasks.last(600)
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(15 * MINUTE)
        assert (tasks.done(task_id).attempt, len(tasks.effects)) == (1, 1)
        assert tasks.counts()["claims_rejected"] == 0


def test_a_short_task_costs_no_heartbeat() -> None:
    """A task that ends within a third of its lease is written only three times: created, claimed and finished."""
    with Tasks() as tasks:
        tasks.last(9)
        task_id = tasks.create()
        tasks.run(MINUTE)
        assert tasks.record(task_id).version == 3


def test_progress_is_written_with_a_heartbeat_and_with_the_outcome() -> None:
    """A target's progress can be read while the task runs, and the last progress report is not lost."""
    with Tasks() as tasks:

        def report(_phase: str, context: Context) -> str:
            context.progress(50, "half way")
            context.heartbeat()
            tasks.take(MINUTE)
            context.progress(100, "all done")
            return "done"

        tasks.target = report
        task_id = tasks.create(timeout_seconds=100)
        tasks.run(5 * SECOND)
        for percent, message in ((50, "half way"), (100, "all done")):
            progress = tasks.record(task_id).progress
            assert progress is not None
            assert (progress.percent, progress.message) == (percent, message)
            tasks.run(MINUTE)


def test_progress_of_a_failed_heartbeat_is_written_with_the_next() -> None:
    """If the store does not answer a heartbeat, the reported progress is written with the next heartbeat."""
    with Tasks() as tasks:
        tasks.faulty = True

        def report(_phase: str, context: Context) -> str:
            context.progress(50, "half way")
            tasks.take(MINUTE)
            return "done"

        tasks.target = report
        task_id = tasks.create(timeout_seconds=100)
        tasks.run(5 * SECOND)
        refused = tasks.refuse(lambda call: call.machine.function == "worker" and call.operation == "update_item")
        assert tasks.run_until(lambda: refused, within=MINUTE)
        tasks.before_call = lambda _call: None
        tasks.run(20 * SECOND)
        running = tasks.record(task_id)
        assert running.progress is not None
        assert (running.state, running.progress.percent) == ("running", 50)


ENDS: dict[str, Callable[[], object]] = {
    "success": lambda: "first",
    "retry": lambda: _raised(ValueError("first")),
    "failure": lambda: _raised(Unretriable("first")),
    "deferral": Accepted,
    "pause": lambda: _raised(AttemptPaused({"row": 1})),
}


def _raised(error: Exception) -> object:
    raise error


@pytest.mark.parametrize("ends", ENDS)
def test_the_outcome_of_a_replaced_attempt_is_rejected(tasks: Tasks, ends: str) -> None:
    """If an attempt's outcome arrives while the next attempt runs, the outcome has no effect."""
    with tasks:

        def behave(_phase: str, context: Context) -> object:
            if context.fence == 2:
                tasks.take(10 * MINUTE)
                return "second"
            return ENDS[ends]()

        tasks.target = behave
        task_id = tasks.create(timeout_seconds=800, notify_within_seconds=3600)

        def is_outcome(call: Call) -> bool:
            return _writes_record(call) and bool(tasks.effects)

        def delay(call: Call) -> None:
            assert call.machine.strand is not None
            tasks.suspend(call.machine, 3 * MINUTE)

        delayed = tasks.once(is_outcome, delay)
        tasks.run(5 * MINUTE)
        assert delayed
        running = tasks.record(task_id)
        assert (running.state, running.attempt, running.fence) == ("running", 2, 2)
        assert not running.awaiting_notification
        assert running.checkpoint is None
        tasks.run(10 * MINUTE)
        task = tasks.done(task_id)
        assert task.result is not None
        assert (task.fence, task.result.data, len(tasks.effects)) == (2, b'"second"', 2)


def test_a_worker_cut_off_from_the_table_stops_and_is_replaced(tasks: Tasks) -> None:
    """A worker that cannot reach the table ends its process, and another worker runs the task after the lease."""
    with tasks:
        tasks.target = lambda _phase, context: tasks.take(5 * MINUTE if context.fence == 1 else SECOND)
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(SECOND)
        (machine,) = tasks.busy()
        machine.cut_off_until = tasks.now + HOUR
        tasks.run(10 * MINUTE)
        assert (tasks.done(task_id).attempt, tasks.record(task_id).fence) == (2, 2)
        assert tasks.worker_ends() == 1
        first, second = tasks.effects
        assert second.at - first.at >= LEASE + MAX_CLOCK_DIFFERENCE


def test_a_worker_cut_off_from_the_table_ends_before_its_leases(tasks: Tasks) -> None:
    """If a worker with ten running tasks is cut off, none of the tasks starts again before the worker has ended."""
    with tasks:
        tasks.target = lambda _phase, context: tasks.take(5 * MINUTE if context.fence == 1 else SECOND)
        made = [tasks.create(10 * SECOND, timeout_seconds=800) for _ in range(10)]
        tasks.time.run_until(tasks.record(made[-1]).due_at + SECOND)
        machines = tasks.busy()
        strands = [machine.strand for machine in machines]
        leases_end = min(tasks.record(task_id).lease_expires_at or 0 for task_id in made)

        def hang(call: Call) -> None:
            if call.machine in machines:
                tasks.take(17 * SECOND)
                call.refuse()

        tasks.before_call = hang
        assert tasks.run_until(lambda: all(strand is None or strand.done for strand in strands), step=100)
        gone_at = tasks.now
        assert gone_at <= leases_end
        tasks.run(10 * MINUTE)
        assert {tasks.done(task_id).attempt for task_id in made} == {2}
        assert min(effect.at for effect in tasks.effects[10:]) > gone_at


@pytest.mark.parametrize("how", ["late heartbeat", "late finish", "away at the end", "away at the claim"])
def test_a_short_outage_of_the_table_loses_no_outcome(tasks: Tasks, how: str) -> None:
    """A failed heartbeat, outcome or claim is retried, so the task runs once, in its first attempt."""
    away = {
        "late heartbeat": (5 * SECOND, 14 * SECOND),
        "late finish": (20 * SECOND, LEASE + 2 * SECOND),
        "away at the end": (22 * SECOND, 28 * SECOND),
        "away at the claim": (-SECOND, 4 * SECOND),
    }[how]
    with tasks:
        tasks.last(24)
        due_at = tasks.now + 3 * SECOND
        refused = tasks.refuse(lambda call: _writes_record(call) and away[0] <= tasks.now - due_at <= away[1])
        task_id = tasks.create(3 * SECOND)
        tasks.run(5 * MINUTE)
        assert refused
        task = tasks.done(task_id)
        assert (task.attempt, len(tasks.effects)) == (1, 1)


# Targets that do not end.

TIMEOUT = 5
OVERDUE = TIMEOUT * SECOND


class Stuck(Tasks):
    """An account in which the first target call hangs, and its process then sends slowly to SQS.

    Attributes:
        gone_at: the time at which the process that made the first target call ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faulty = True
        self.gone_at: Millis | None = None
        self.target = self.hang_first
        self.before_call = self.stall
        self.machine: Machine | None = None

    def hang_first(self, _phase: str, _context: Context) -> str:
        """Hang in the first call only."""
        if len(self.effects) > 1:
            return "done"
        home: Any = self.time.process().home
        self.machine = home
        try:
            self.take(9 * MINUTE)
        finally:
            self.gone_at = self.now
        return "done"

    def stall(self, call: Call) -> None:
        """Delay the calls to SQS that the stuck process makes."""
        is_late = bool(self.effects) and self.now > self.effects[0].at + OVERDUE
        if is_late and call.machine is self.machine and call.operation == "send_message_batch":
            self.take(20 * SECOND)


def test_a_target_that_exceeds_its_timeout_is_ended_with_its_process() -> None:
    """Because a thread cannot be stopped, the worker records the timeout, ends its process, and the task is retried."""
    with Tasks() as tasks:
        tasks.hang()
        task_id = tasks.create(timeout_seconds=5)
        tasks.run(MINUTE)
        assert tasks.worker_ends() == 1
        assert tasks.done(task_id).attempt == 2
        assert tasks.effects[1].at - tasks.effects[0].at >= 5 * SECOND


def test_other_tasks_of_a_stuck_targets_batch_finish_first(tasks: Tasks) -> None:
    """Other tasks in a stuck target's batch finish before the process ends, and do not run again."""
    with tasks:
        stuck = tasks.create(10 * SECOND, timeout_seconds=5)
        others = [tasks.create(10 * SECOND) for _ in range(5)]
        tasks.target = lambda _phase, context: tasks.take(
            9 * SECOND if context.task_id != stuck else HOUR if context.fence == 1 else 0
        )
        tasks.run(2 * MINUTE)
        assert tasks.worker_ends() == 1
        assert [tasks.done(task_id).attempt for task_id in [stuck, *others]] == [2, 1, 1, 1, 1, 1]


def test_the_next_attempt_waits_for_the_stuck_process_to_end() -> None:
    """Even if sending the message for a recorded retry is slow, the process ends before the next attempt starts."""
    with Stuck() as tasks:
        task_id = tasks.create(timeout_seconds=TIMEOUT, retry={"initial_seconds": 0})
        tasks.run(5 * MINUTE)
        first, second = tasks.effect_times(task_id)
        assert tasks.gone_at is not None
        assert tasks.gone_at <= first + OVERDUE + OVERDUE_GRACE + PROCESS_END_TIME + SECOND
        assert second > tasks.gone_at
        assert tasks.state(task_id) == "succeeded"


@pytest.mark.parametrize("verb", ["run", "retry"])
def test_run_and_retry_requests_start_no_attempt_before_a_stuck_process_ends(verb: str) -> None:
    """Even if `run` or `retry` is requested every 200 ms, no attempt begins before the stuck process has ended."""
    with Stuck() as tasks:
        task_id = tasks.create(
            timeout_seconds=TIMEOUT, retry=ONCE if verb == "retry" else {"initial_seconds": 0, "max_attempts": 5}
        )
        tasks.run(OVERDUE)
        for _ in range(100):
            tasks.send("POST", f"/v1/tasks/{task_id}/{verb}")
            tasks.run(200)
        tasks.run(5 * MINUTE)
        assert tasks.gone_at is not None
        first, second = tasks.effect_times(task_id)
        assert first < tasks.gone_at < second
        assert tasks.state(task_id) == "succeeded"


def test_a_stuck_target_is_rolled_back_after_its_process_has_ended() -> None:
    """The rollback after the last attempt does not begin while that attempt's target still runs."""
    with Stuck() as tasks:
        task_id = tasks.create(kind=UNDONE, timeout_seconds=TIMEOUT, retry=ONCE, rollback_on_failure=True)
        tasks.run(5 * MINUTE)
        assert tasks.gone_at is not None
        assert tasks.phases() == ["run", "rollback"]
        assert tasks.effects[1].at > tasks.gone_at
        assert tasks.state(task_id) == "rolled_back"


def test_a_stuck_targets_lock_is_free_once_its_process_has_ended() -> None:
    """The next task with the same lock starts once the stuck target has ended, before the lease is over."""
    with Stuck() as tasks:
        task_id = tasks.create(timeout_seconds=TIMEOUT, retry=ONCE, lock={"key": "key"})
        second = tasks.create(SECOND, lock={"key": "key"})
        tasks.run(5 * MINUTE)
        assert tasks.gone_at is not None
        assert tasks.gone_at < tasks.effects[1].at < tasks.effects[0].at + OVERDUE + LEASE
        assert (tasks.state(task_id), tasks.state(second)) == ("failed", "succeeded")
        assert tasks.record(task_id).finished_at is not None


def test_the_outcome_of_a_stuck_attempt_is_visible_at_once() -> None:
    """A stuck attempt's outcome can be read before the process has ended; only the follow-up waits."""
    with Stuck() as tasks:
        task_id = tasks.create(timeout_seconds=TIMEOUT, retry=ONCE)
        tasks.run(OVERDUE + OVERDUE_GRACE + 2 * SECOND)
        task = tasks.record(task_id)
        assert task.finished_at is None
        assert task.error is not None
        assert (task.state, task.error.type) == ("failed", "Timeout")


# Calls that were never sent.


class Throttled(Tasks):
    """An account in which calls to HTTP endpoints are throttled before they are sent.

    Attributes:
        until: the time at which throttling ends.
        phase: the phase whose calls are throttled.
    """

    def __init__(self, phase: str = "run") -> None:
        super().__init__()
        self.faulty = True
        self.until: Millis = 0
        self.phase = phase
        self.refused_at: list[Millis] = []

    def is_refused(self, url: str) -> bool:
        """Whether a call is throttled."""
        if self.now >= self.until or not url.endswith(f"action={self.phase}"):
            return False
        self.refused_at.append(self.now)
        return True


@pytest.fixture
def throttled(monkeypatch: pytest.MonkeyPatch) -> Throttled:
    """An account whose outgoing calls are throttled when a test chooses."""
    from duetime.adapters.targets.http_messages import EGRESS_UNAVAILABLE, NoResponse  # noqa: PLC0415 - only here
    from duetime_testing.simulation.simulated_target_calls import SimulatedCaller  # noqa: PLC0415 - only here

    made, call = Throttled(), SimulatedCaller.call

    def maybe(caller: Any, wanted: Any) -> Any:  # noqa: ANN401 - the caller defines them
        if made.is_refused(wanted.url):
            return NoResponse(EGRESS_UNAVAILABLE, "the call was not handed on: TooManyRequestsException")
        return call(caller, wanted)

    monkeypatch.setattr(SimulatedCaller, "call", maybe)
    return made


def test_a_throttled_call_uses_up_no_attempt(throttled: Throttled) -> None:
    """A throttled call uses up no attempt: it is retried at growing intervals, and then runs as the first attempt."""
    with throttled as tasks:
        tasks.until = tasks.now + HOUR
        task_id = tasks.create(target=HTTP, retry=ONCE)
        tasks.run(10 * MINUTE)
        held = tasks.record(task_id)
        assert (held.state, held.attempt, held.attempt_history) == ("waiting", 0, ())
        assert "TooManyRequestsException" in (held.waiting_for or "")
        tasks.run(HOUR)
        assert tasks.done(task_id).attempt == 1
        assert tasks.outcomes(task_id) == ["succeeded"]
        assert tasks.counts()["calls_not_sent"] == len(tasks.refused_at)
        waits = [later - earlier for earlier, later in pairwise(tasks.refused_at)]
        assert waits[0] <= 2 * SECOND
        assert max(waits) <= LONGEST_NOT_SENT_WAIT + 2 * SECOND
        assert len(waits) < 150


@pytest.mark.parametrize("phase", ["prepare", "rollback"])
def test_throttled_calls_of_prepare_and_rollback_use_up_no_attempt(throttled: Throttled, phase: str) -> None:
    """A throttled call to `prepare` or `rollback` is retried and uses up no attempt."""
    with throttled as tasks:
        tasks.phase, tasks.until = phase, tasks.now + 10 * MINUTE
        task_id = tasks.create(target=HTTP | {"phases": ["prepare", "rollback"]}, retry=ONCE)
        if phase == "rollback":
            tasks.run(SECOND)
            assert tasks.do(task_id, "rollback").status == 202
        tasks.run(20 * MINUTE)
        assert tasks.refused_at
        task = tasks.record(task_id)
        assert (task.state, task.attempt) == ("rolled_back" if phase == "rollback" else "succeeded", 1)


@pytest.mark.parametrize(("duration", "failed"), [(3 * SECOND, 0), (MINUTE, 1)])
def test_a_throttled_clean_is_retried_for_some_seconds(throttled: Throttled, duration: Millis, failed: int) -> None:
    """A throttled call to `clean` is retried for some seconds, after which the task is finished without `clean`."""
    with throttled as tasks:
        tasks.phase, tasks.until = "clean", tasks.now + duration
        task_id = tasks.create(target=HTTP | {"phases": ["clean"]})
        tasks.run(MINUTE)
        assert tasks.record(task_id).finished_at is not None
        assert tasks.counts()["cleanups_failed"] == failed


@pytest.mark.parametrize("kind", ["worker", "pulled", "accepted"])
def test_a_heartbeat_that_arrives_late_does_not_shorten_the_lease(tasks: Tasks, kind: str) -> None:
    """A heartbeat that arrives after a later heartbeat is refused, and the lease does not change."""
    with tasks:
        tasks.target = lambda _phase, _context: Accepted() if kind == "accepted" else tasks.take(HOUR)
        task_id = tasks.create(
            kind=PULLED if kind == "pulled" else PLAIN, timeout_seconds=800, notify_within_seconds=60
        )
        tasks.run(SECOND)
        path, body = f"/v1/tasks/{task_id}/heartbeat", {"fence": 1}
        if kind == "pulled":
            wanted = {"types": [PULLED], "lease_seconds": 30, "worker": "w", "wait_seconds": 0}
            (lease,) = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
            path, body = f"/v1/leases/{lease['id']}/heartbeat", {}

        def is_heartbeat(call: Call) -> bool:
            return call.operation == "update_item" and call.request["Key"][schema.SORT_KEY]["S"] == task_id

        late = tasks.once(is_heartbeat, lambda call: call.refuse())
        for _ in range(2):
            tasks.run(15 * SECOND)
            if kind != "worker":
                tasks.ask("POST", path, body)
        assert late
        before = tasks.record(task_id)
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            tasks.dynamodb.update_item(**late[0].request)
        assert tasks.record(task_id) == before
        assert before.lease_expires_at is not None


def test_a_temporarily_unreadable_payload_uses_up_no_attempt(tasks: Tasks) -> None:
    """If S3 fails when the task is due, the task waits with a reason and then runs once, as its first attempt."""
    with tasks:
        huge = "".join(f"{index * 2654435761 % 2**32:08x}" for index in range(60_000))
        task_id = tasks.create(10 * SECOND, payload=huge)
        tasks.refuse(lambda call: call.service == "s3")
        tasks.run(5 * 60 * SECOND)
        waiting = tasks.record(task_id)
        assert (waiting.state, waiting.attempt, len(tasks.effects)) == ("waiting", 0, 0)
        assert "its payload could not be read" in (waiting.waiting_for or "")
        tasks.before_call = lambda _call: None
        tasks.run(60 * SECOND)
        assert (tasks.done(task_id).attempt, len(tasks.effects)) == (1, 1)
