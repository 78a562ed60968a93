"""A limited number of tasks hold a lock, and the others wait in a line in the order of their due times."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import LOCK_CHECK_INTERVAL, MAX_CLOCK_DIFFERENCE
from duetime.domain.times import DAY
from duetime.handlers import Accepted
from tests.scenarios.scenario import MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.users import LEASE

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

KEY = "db-17"


class Crowd(Tasks):
    """An account that counts concurrent target calls.

    Attributes:
        duration: the time that a target takes.
        most: the largest number of concurrent target calls.
        start: the due time of the first task.
    """

    def __init__(self, seconds: int = 5) -> None:
        super().__init__()
        self.faulty = True
        self.duration = seconds * SECOND
        self.running: Counter[str] = Counter()
        self.most = 0
        self.start = self.now + 3 * SECOND
        self.target = self.work

    def work(self, phase: str, _context: Context) -> str:
        """Count concurrent calls while taking `duration`."""
        self.running[phase] += 1
        self.most = max(self.most, self.running["run"])
        self.take(self.duration)
        self.running[phase] -= 1
        return "done"

    def locked(self, second: int = 0, **lock: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task that needs the lock and is due this many seconds after the start; return the task's id."""
        return self.create(self.start + second * SECOND - self.now, lock={"key": KEY, **lock})

    def run_to(self, second: float) -> None:
        """Let time pass until this many seconds after the start."""
        self.time.run_until(round(self.start + second * SECOND))

    def order(self) -> list[str]:
        """The tasks, in the order in which they ran."""
        return [effect.task_id for effect in self.effects if effect.phase == "run"]

    def began(self, task_id: str) -> float:
        """The time at which a task began, in seconds after the start."""
        return (self.effect_times(task_id)[0] - self.start) / SECOND


def about(seconds: float) -> object:
    """This many seconds, plus the time for some calls."""
    return pytest.approx(seconds + 0.15, abs=0.2)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_tasks_than_the_limit_hold_a_lock(limit: int) -> None:
    """Of twelve tasks that are due at once, exactly as many run concurrently as the lock allows."""
    with Crowd() as tasks:
        made = [tasks.locked(max_holders=limit) for _ in range(12)]
        tasks.run_to(-(-12 // limit) * 5 + 20)
        assert tasks.most == limit
        assert sorted(tasks.order()) == sorted(made)
        assert tasks.tally() == {"succeeded": 12}


def test_waiting_tasks_get_a_lock_in_order_of_due_times() -> None:
    """Waiting tasks get the lock in order of their due times, in whatever order they were created."""
    with Crowd(20) as tasks:
        made = {second: tasks.locked(second) for second in (0, 7, 3, 9, 5, 1)}
        tasks.run_to(180)
        assert tasks.order() == [made[second] for second in sorted(made)]


def test_a_newly_due_task_does_not_overtake_tasks_in_line() -> None:
    """A task that is due just when the lock is released does not overtake waiting tasks."""
    with Crowd(10) as tasks:
        made = [tasks.locked(second) for second in [*range(10), 10, 20]]
        tasks.run_to(180)
        assert tasks.order() == made


def test_a_released_lock_is_passed_on_at_once() -> None:
    """The next task in line starts as soon as its message arrives, and its wait has used no attempt."""
    with Crowd() as tasks:
        tasks.locked()
        second = tasks.create(tasks.start + SECOND - tasks.now, lock={"key": KEY}, retry=ONCE)
        tasks.run_to(4)
        waiting = tasks.record(second)
        assert (waiting.state, waiting.attempt, waiting.started_at) == ("waiting", 0, None)
        assert (waiting.waiting_for, waiting.attempt_history) == (f"lock {KEY}", ())
        tasks.run_to(12)
        assert tasks.began(second) == about(5)
        task = tasks.done(second)
        assert (task.attempt, task.waiting_for, len(task.attempt_history)) == (1, None, 1)


def test_a_lock_released_before_its_waiter_is_put_back_is_passed_on() -> None:
    """If the lock is released after a worker joins the line and before it puts the task back, the task still runs."""
    with Crowd() as tasks:
        tasks.locked()
        second = tasks.locked(4)

        def puts_back(call: Call) -> bool:
            return call.operation == "update_item" and f"lock {KEY}" in str(call.request)

        slowed = tasks.slow(puts_back, 3 * SECOND)
        tasks.run_to(15)
        assert slowed
        assert 5 <= tasks.began(second) <= 8


def test_each_key_of_each_owner_is_a_separate_lock() -> None:
    """Each key of each owner is a separate lock."""
    with Crowd() as tasks:
        tasks.locked()
        tasks.create(tasks.start - tasks.now, lock={"key": "other"})
        body = {"type": PLAIN, "lock": {"key": KEY}, "delay_seconds": (tasks.start - tasks.now) / SECOND}
        other = tasks.ask("POST", "/v1/tasks", body, headers={"X-Duetime-Owner": "you"}).body["id"]
        tasks.run_to(1)
        assert tasks.most == 3
        assert tasks.ask("GET", f"/v1/locks/{KEY}", headers={"X-Duetime-Owner": "them"}).status == 404
        lock = tasks.ask("GET", f"/v1/locks/{KEY}", headers={"X-Duetime-Owner": "you"}).body
        assert [holder["task_id"] for holder in lock["holders"]] == [other]


def test_the_lock_of_a_dead_holder_is_free_after_its_lease() -> None:
    """A killed holder's lock is free once its lease is over by every clock, and not before."""
    with Crowd(3600) as tasks:
        tasks.create(tasks.start - tasks.now, lock={"key": KEY}, retry=ONCE, timeout_seconds=800)
        second = tasks.locked(1)
        tasks.run_to(0.5)
        tasks.duration = 5 * SECOND
        tasks.run_to(3)
        for machine in tasks.busy():
            machine.die()
        tasks.run_to(120)
        assert tasks.state(second) == "succeeded"
        free = (LEASE + MAX_CLOCK_DIFFERENCE) / SECOND
        assert free <= tasks.began(second) <= free + 15


def test_a_holder_keeps_its_lock_with_its_heartbeats() -> None:
    """A holder that runs for many lease lengths keeps the lock."""
    with Crowd(600) as tasks:
        for _ in range(2):
            tasks.create(tasks.start - tasks.now, lock={"key": KEY}, timeout_seconds=700)
        tasks.run(25 * MINUTE)
        assert (tasks.most, len(tasks.order())) == (1, 2)


def test_a_lock_with_scope_run_is_not_held_during_prepare() -> None:
    """With scope `run`, tasks can prepare concurrently, but they run one at a time."""
    with Crowd() as tasks:
        for _ in range(3):
            tasks.create(tasks.start - tasks.now, PHASED, lock={"key": KEY, "scope": "run"})
        tasks.run_to(2)
        assert tasks.running["prepare"] == 3
        tasks.run_to(180)
        assert tasks.most == 1
        assert tasks.tally() == {"succeeded": 3}


def test_a_lock_with_scope_task_is_held_until_the_cleanup() -> None:
    """With scope `task`, a task prepares only after the previous task has cleaned up."""
    with Crowd() as tasks:
        for _ in range(3):
            tasks.create(tasks.start - tasks.now, PHASED, lock={"key": KEY})
        tasks.run_to(120)
        assert tasks.phases() == ["prepare", "run", "clean"] * 3


def test_a_failed_attempt_releases_its_lock() -> None:
    """While a task waits for its next attempt, another task can get the lock and run."""
    with Crowd() as tasks:
        first = tasks.create(tasks.start - tasks.now, lock={"key": KEY}, retry={"initial_seconds": 3600})
        second = tasks.locked(1)

        def behave(phase: str, context: Context) -> str:
            if context.task_id == first:
                raise ValueError
            return tasks.work(phase, context)

        tasks.target = behave
        tasks.run_to(10)
        assert (tasks.state(first), tasks.state(second)) == ("waiting", "succeeded")


def test_a_rollback_waits_for_the_same_lock_as_the_run() -> None:
    """A rollback waits for the same lock as the run."""
    with Crowd() as tasks:
        first = tasks.create(tasks.start - tasks.now, UNDONE, lock={"key": KEY})
        second = tasks.locked(10)
        tasks.run_to(11)
        assert tasks.do(first, "rollback").status == 202
        tasks.run(2 * SECOND)
        assert tasks.state(first) == "rolling_back"
        assert tasks.phases() == ["run", "run"]
        tasks.run(MINUTE)
        assert (tasks.state(first), tasks.state(second)) == ("rolled_back", "succeeded")


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_deferred_task_keeps_its_lock_until_its_end_is_reported(*, is_lost: bool) -> None:
    """A deferred task's lock is passed on when its end is reported, or at the next check if that fails."""
    with Crowd() as tasks:
        first = tasks.locked(scope="run")
        second = tasks.locked(1, scope="run")
        tasks.target = lambda phase, context: Accepted() if context.task_id == first else tasks.work(phase, context)
        tasks.run(10 * MINUTE if not is_lost else 10 * SECOND)
        assert tasks.state(second) == "waiting"
        assert tasks.do(first, "heartbeat", {"fence": 1}).status == 200
        refused = tasks.refuse(
            lambda call: (
                is_lost and call.machine.function == "api" and schema.LOCK_PREFIX in str(call.request.get("Item"))
            )
        )
        tasks.do(first, "notify", {"fence": 1, "outcome": "succeeded", "result": 1})
        assert bool(refused) is is_lost
        assert tasks.record(first).is_terminal
        tasks.before_call = None
        now = (tasks.now - tasks.start) / SECOND
        tasks.run(MINUTE + (LOCK_CHECK_INTERVAL if is_lost else 0))
        assert tasks.state(second) == "succeeded"
        assert is_lost or tasks.began(second) == about(now)


def test_tasks_that_left_the_line_are_skipped_when_a_lock_is_released() -> None:
    """Waiting tasks that were cancelled, paused or postponed are skipped when the lock is passed on."""
    with Crowd(20) as tasks:
        tasks.locked()
        gone = [tasks.locked(second) for second in (1, 2, 3)]
        last = tasks.locked(4)
        tasks.run_to(10)
        tasks.cancel(gone[0])
        tasks.do(gone[1], "pause")
        tasks.change(gone[2], delay_seconds=DAY // SECOND)
        tasks.run_to(25)
        assert tasks.began(last) == about(20)


def test_a_task_paused_in_line_checks_its_lock_when_resumed() -> None:
    """A task that was paused in line checks for a free lock as soon as it is resumed."""
    with Crowd(20) as tasks:
        tasks.locked()
        tasks.locked(1)
        last = tasks.locked(2)
        tasks.run_to(10)
        tasks.do(last, "pause")
        tasks.run_to(70)
        tasks.do(last, "resume")
        tasks.run(SECOND)
        assert tasks.state(last) == "running"
        assert tasks.began(last) == about(70)


def test_an_unused_reservation_passes_the_lock_to_the_next_task() -> None:
    """If the task with the reservation never comes, the next task in line gets the lock."""
    with Crowd(20) as tasks:
        tasks.locked()
        second, third = tasks.locked(1), tasks.locked(2)
        tasks.run_to(19)
        tasks.receiving = False
        tasks.run_to(22)
        lock = tasks.ask("GET", f"/v1/locks/{KEY}").body
        assert [holder["task_id"] for holder in lock["holders"]] == [second]
        tasks.lose_messages()
        tasks.receive_again()
        tasks.run(LOCK_CHECK_INTERVAL + MINUTE)
        assert tasks.state(third) == "succeeded"


def test_a_forced_release_passes_the_lock_on_and_stops_the_holder() -> None:
    """If a lock is freed by force, the next task runs at once, and the holder's process ends at its next heartbeat."""
    with Crowd(3600) as tasks:
        first = tasks.create(tasks.start - tasks.now, lock={"key": KEY}, timeout_seconds=800)
        second = tasks.locked(1)
        tasks.run_to(4)
        tasks.duration = 5 * SECOND
        tasks.watching.freed(KEY)
        assert tasks.ask("DELETE", f"/v1/locks/{KEY}").status == 200
        tasks.run(SECOND)
        assert tasks.state(second) == "running"
        tasks.run(20 * SECOND)
        assert tasks.worker_ends() == 1
        tasks.run(3 * MINUTE)
        assert (tasks.state(first), tasks.state(second)) == ("succeeded", "succeeded")


def test_the_heartbeat_of_a_deferred_task_returns_lock_lost() -> None:
    """The heartbeat of a deferred task gets `lock_lost` as a response, so that the external target can stop."""
    with Crowd() as tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.locked()
        tasks.run_to(1)
        tasks.watching.freed(KEY)
        assert tasks.ask("DELETE", f"/v1/locks/{KEY}").status == 200
        answer = tasks.do(task_id, "heartbeat", {"fence": 1})
        assert (answer.status, answer.body["code"]) == (409, "lock_lost")
