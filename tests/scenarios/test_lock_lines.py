"""The line of a lock: a limited number hold it, the others follow in the order of their due times."""

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
    """An account that watches how many calls of targets run at once.

    Attributes:
        duration: how long a target takes.
        most: how many ran at once at the most.
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
        """Take some time."""
        self.running[phase] += 1
        self.most = max(self.most, self.running["run"])
        self.take(self.duration)
        self.running[phase] -= 1
        return "done"

    def locked(self, second: int = 0, **lock: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task that needs the lock, due this many seconds after the start."""
        return self.create(self.start + second * SECOND - self.now, lock={"key": KEY, **lock})

    def run_to(self, second: float) -> None:
        """Let time pass until this many seconds after the start."""
        self.time.run_until(round(self.start + second * SECOND))

    def order(self) -> list[str]:
        """The tasks in the order in which they ran."""
        return [effect.task_id for effect in self.effects if effect.phase == "run"]

    def began(self, task_id: str) -> float:
        """When a task began, in seconds after the start."""
        return (self.effect_times(task_id)[0] - self.start) / SECOND


def about(seconds: float) -> object:
    """This many seconds, and the time of some calls."""
    return pytest.approx(seconds + 0.15, abs=0.2)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_than_the_limit_hold_a_lock(limit: int) -> None:
    """Of twelve tasks due at once, exactly as many run at a time as the lock allows."""
    with Crowd() as tasks:
        made = [tasks.locked(max_holders=limit) for _ in range(12)]
        tasks.run_to(-(-12 // limit) * 5 + 20)
        assert tasks.most == limit
        assert sorted(tasks.order()) == sorted(made)
        assert tasks.tally() == {"succeeded": 12}


def test_a_lock_of_one_is_an_ordering_key() -> None:
    """Waiting tasks get it in the order of their due times, in any order of creation."""
    with Crowd(20) as tasks:
        made = {second: tasks.locked(second) for second in (0, 7, 3, 9, 5, 1)}
        tasks.run_to(180)
        assert tasks.order() == [made[second] for second in sorted(made)]


def test_nobody_overtakes_the_line() -> None:
    """A new task at the moment of a release does not come before the waiting ones."""
    with Crowd(10) as tasks:
        made = [tasks.locked(second) for second in [*range(10), 10, 20]]
        tasks.run_to(180)
        assert tasks.order() == made


def test_a_lock_is_handed_on_at_once() -> None:
    """The next in line starts as soon as its message arrives; before, it has used no attempt."""
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


def test_a_lock_given_back_while_the_next_is_still_being_put_back_is_not_missed() -> None:
    """A slow worker has joined the line, but not yet put its task back, when the lock is given back."""
    with Crowd() as tasks:
        tasks.locked()
        second = tasks.locked(4)

        def puts_back(call: Call) -> bool:
            return call.operation == "update_item" and f"lock {KEY}" in str(call.request)

        slowed = tasks.slow(puts_back, 3 * SECOND)
        tasks.run_to(15)
        assert slowed
        assert 5 <= tasks.began(second) <= 8


def test_locks_of_other_keys_and_owners_are_other_locks() -> None:
    """Keys are separate for each owner, and every key is a separate lock."""
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
    """A lock whose holder's worker was killed is free when its lease is over by every clock, and not before."""
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
    """A holder that runs for many lease lengths is alone all the while."""
    with Crowd(600) as tasks:
        for _ in range(2):
            tasks.create(tasks.start - tasks.now, lock={"key": KEY}, timeout_seconds=700)
        tasks.run(25 * MINUTE)
        assert (tasks.most, len(tasks.order())) == (1, 2)


def test_a_lock_of_the_run_is_not_held_while_a_task_is_prepared() -> None:
    """With the scope `run`, tasks prepare at once and run one after the other."""
    with Crowd() as tasks:
        for _ in range(3):
            tasks.create(tasks.start - tasks.now, PHASED, lock={"key": KEY, "scope": "run"})
        tasks.run_to(2)
        assert tasks.running["prepare"] == 3
        tasks.run_to(180)
        assert tasks.most == 1
        assert tasks.tally() == {"succeeded": 3}


def test_a_lock_of_the_task_is_held_until_it_is_cleaned_up() -> None:
    """With the scope `task`, nobody prepares before the one before has cleaned up."""
    with Crowd() as tasks:
        for _ in range(3):
            tasks.create(tasks.start - tasks.now, PHASED, lock={"key": KEY})
        tasks.run_to(120)
        assert tasks.phases() == ["prepare", "run", "clean"] * 3


def test_a_failed_attempt_gives_its_lock_back() -> None:
    """While one task waits for its next attempt another may run."""
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


def test_a_rollback_needs_the_lock_too() -> None:
    """An effect made under a lock is undone under it."""
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
def test_a_deferred_task_keeps_its_lock_until_it_is_notified_of(*, is_lost: bool) -> None:
    """Then it is passed on at once; if the notified function cannot, the next one finds that the task has ended."""
    with Crowd() as tasks:
        first = tasks.locked(scope="run")
        second = tasks.locked(1, scope="run")
        tasks.target = lambda phase, context: Accepted() if context.task_id == first else tasks.work(phase, context)
        tasks.run(10 * MINUTE if not is_lost else 10 * SECOND)
        assert tasks.state(second) == "waiting"
        assert tasks.do(first, "heartbeat", {"fence": 1}).status == 200
        if is_lost:
            tasks.refuse(
                lambda call: call.machine.function == "api" and schema.LOCK_PREFIX in str(call.request.get("Item"))
            )
        tasks.do(first, "notify", {"fence": 1, "outcome": "succeeded", "result": 1})
        assert tasks.record(first).is_terminal
        tasks.before_call = None
        now = (tasks.now - tasks.start) / SECOND
        tasks.run(MINUTE + (LOCK_CHECK_INTERVAL if is_lost else 0))
        assert tasks.state(second) == "succeeded"
        assert is_lost or tasks.began(second) == about(now)


def test_those_who_left_the_line_hold_nobody_up() -> None:
    """A task that is cancelled, paused or put off while it waits is passed over when the lock is handed on."""
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


def test_a_task_that_was_paused_in_the_line_checks_at_once_when_it_is_resumed() -> None:
    """It has lost its place, so nobody sends it: the lock is free by then, and it takes it."""
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


def test_a_reservation_that_nobody_takes_up_ends() -> None:
    """If the task with the reservation never comes, the rest of the line is not stuck."""
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


def test_a_lock_freed_by_force_goes_to_the_next_and_stops_its_holder() -> None:
    """Its holder ends its process at its next heartbeat; the next in the line runs at once."""
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


def test_a_deferred_task_learns_from_its_heartbeat_that_its_lock_is_gone() -> None:
    """The response tells a target elsewhere to stop."""
    with Crowd() as tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.locked()
        tasks.run_to(1)
        tasks.watching.freed(KEY)
        assert tasks.ask("DELETE", f"/v1/locks/{KEY}").status == 200
        answer = tasks.do(task_id, "heartbeat", {"fence": 1})
        assert (answer.status, answer.body["code"]) == (409, "lock_lost")
