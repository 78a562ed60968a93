"""Tasks that need several locks, and locks that several tasks share."""

from __future__ import annotations

from typing import Any

from duetime.domain.tasks.states import State
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import ONCE
from tests.scenarios.test_lock_lines import Crowd, about
from tests.simulation.account import PULLED


class Several(Crowd):
    """An account whose tasks name locks by key; a `+` after a key means a shared lock."""

    def needing(self, *keys: str, second: float = 0, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task with these locks, due this many seconds after the start."""
        modes = {True: "shared", False: "exclusive"}
        locks = [{"key": key.rstrip("+"), "mode": modes[key.endswith("+")]} for key in keys]
        return self.create(self.start + round(second * SECOND) - self.now, locks=locks, **fields)

    def holders(self, key: str) -> list[tuple[str, str]]:
        """The tasks that hold a lock, with their modes."""
        found = self.ask("GET", f"/v1/locks/{key}").body["holders"]
        return [(holder["task_id"], holder["mode"]) for holder in found]


def test_a_task_runs_when_it_has_all_its_locks() -> None:
    """A task with two locks waits for both holders, in whatever order they end, without using up an attempt."""
    with Several(5) as tasks:
        tasks.needing("a")
        tasks.needing("b", second=2)
        both = tasks.needing("b", "a", second=3, retry=ONCE)
        tasks.run_to(4)
        waiting = tasks.record(both)
        assert (waiting.state, waiting.attempt, waiting.waiting_for) == ("waiting", 0, "lock a")
        tasks.run_to(6)
        assert tasks.record(both).waiting_for == "lock b"
        tasks.run_to(20)
        assert tasks.began(both) == about(7)
        assert tasks.done(both).attempt == 1


def test_tasks_with_the_same_locks_in_different_orders_do_not_deadlock() -> None:
    """Twenty tasks, each with two of three locks, run one at a time without a deadlock."""
    pairs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "a"), ("a", "c")]
    with Several(3) as tasks:
        made = [tasks.needing(*pairs[number % len(pairs)], second=number / 7) for number in range(20)]
        tasks.run_to(75)
        assert sorted(tasks.order()) == sorted(made)
        assert tasks.most == 1


def test_a_task_that_is_not_first_in_line_keeps_no_other_lock() -> None:
    """While a task is not first in line for one lock, it does not hold its other lock."""
    with Several(30) as tasks:
        tasks.needing("b")
        tasks.needing("b", second=1)
        both = tasks.needing("a", "b", second=2)
        other = tasks.needing("a", second=4)
        tasks.run_to(5)
        assert tasks.state(both) == "waiting"
        assert tasks.began(other) == about(4)


def test_the_first_task_in_line_keeps_its_other_locks() -> None:
    """A task gets two busy locks, even if other tasks constantly request each lock."""
    with Several(10) as tasks:
        for number in range(20):
            tasks.needing("a", second=5 * number)
            tasks.needing("b", second=5 * number + 3)
        both = tasks.needing("a", "b", second=20)
        tasks.run_to(60)
        assert tasks.record(both).started_at is not None, "its turn comes after the five before it in each line"
        assert tasks.began(both) <= 60
        tasks.run(10 * MINUTE)
        assert tasks.tally() == {"succeeded": 41}


def test_a_kept_lock_is_passed_on_when_its_task_is_cancelled() -> None:
    """A lock that a waiting task keeps is passed on when the task is cancelled."""
    with Several(60) as tasks:
        tasks.needing("b")
        both = tasks.needing("a", "b", second=1)
        other = tasks.needing("a", second=2)
        tasks.run_to(10)
        assert tasks.holders("a") == [(both, "exclusive")]
        assert tasks.state(other) == "waiting"
        tasks.cancel(both)
        tasks.run_to(12)
        assert tasks.began(other) == about(10)


def test_a_kept_lock_is_renewed_at_each_check() -> None:
    """A waiting task keeps the lock that it already has, however long the wait."""
    with Several(800) as tasks:
        tasks.create(tasks.start - tasks.now, lock={"key": "b"}, retry=ONCE, timeout_seconds=840)
        both = tasks.needing("a", "b", second=1)
        other = tasks.needing("a", second=2)
        tasks.run_to(2)
        tasks.duration = 5 * SECOND
        tasks.run_to(795)
        assert (tasks.state(both), tasks.state(other)) == ("waiting", "waiting")
        tasks.run_to(820)
        assert tasks.order()[1:] == [both, other]


def test_tasks_in_shared_mode_hold_a_lock_concurrently() -> None:
    """Ten tasks that share a lock run concurrently; a task that needs it exclusively runs alone afterwards."""
    with Several(5) as tasks:
        for _ in range(10):
            tasks.needing("a+")
        alone = tasks.needing("a", second=1)
        tasks.run_to(3)
        assert tasks.running["run"] == 10
        tasks.run_to(6)
        assert tasks.running["run"] == 1
        assert tasks.began(alone) == about(5)


def test_a_waiting_exclusive_task_is_not_overtaken_by_sharing_tasks() -> None:
    """Sharing tasks that come later wait behind a waiting exclusive task, and then run together."""
    with Several(10) as tasks:
        tasks.needing("a+")
        alone = tasks.needing("a", second=1)
        late = [tasks.needing("a+", second=2 + number) for number in range(5)]
        tasks.run_to(9)
        assert tasks.running["run"] == 1
        tasks.run_to(22)
        assert tasks.began(alone) == about(10)
        assert all(20 <= tasks.began(each) <= 21 for each in late)


def test_a_dead_sharing_holder_delays_an_exclusive_task_until_its_lease_ends() -> None:
    """A sharing holder that died keeps its hold until its lease ends; meanwhile, other tasks can share the lock."""
    with Several(3600) as tasks:
        tasks.needing("a+", retry=ONCE, timeout_seconds=800)
        tasks.run_to(0.5)
        tasks.duration = 5 * SECOND
        shared, alone = tasks.needing("a+", second=1), tasks.needing("a", second=2)
        tasks.run_to(3)
        assert tasks.state(shared) == "running"
        for machine in tasks.busy():
            machine.die()
        tasks.run_to(120)
        assert tasks.state(alone) == "succeeded"
        assert tasks.began(alone) >= 30


def test_max_holders_limits_concurrent_sharing_tasks() -> None:
    """At most `max_holders` tasks share a lock concurrently, and an exclusive holder excludes all others."""
    with Several(5) as tasks:
        for _ in range(6):
            tasks.locked(mode="shared", max_holders=3)
        tasks.locked(12)
        tasks.run_to(40)
        assert tasks.most == 3
        assert tasks.tally() == {"succeeded": 7}


def test_each_lock_has_its_own_time_limit() -> None:
    """A task fails if it waits for one of its locks longer than that lock's `wait_seconds`."""
    with Several(60) as tasks:
        tasks.needing("b")
        locks = [{"key": "a"}, {"key": "b", "wait_seconds": 20}]
        task_id = tasks.create(tasks.start + SECOND - tasks.now, locks=locks, retry=ONCE)
        tasks.run_to(19)
        assert tasks.state(task_id) == "waiting"
        tasks.run_to(30)
        error = tasks.record(task_id).error
        assert error is not None
        assert (error.type, error.message) == ("LockWaitExpired", "it had waited for the lock b for 20 s")


def test_a_task_releases_its_other_locks_after_a_forced_release() -> None:
    """If a lock is freed by force, its task stops at the next heartbeat and releases its other locks."""
    with Several(3600) as tasks:
        tasks.needing("a", "b", timeout_seconds=800, retry=ONCE)
        second, third = tasks.needing("a", second=1), tasks.needing("b", second=1)
        tasks.run_to(4)
        tasks.duration = 5 * SECOND
        tasks.watching.freed("a")
        assert tasks.ask("DELETE", "/v1/locks/a").status == 200
        tasks.run(3 * MINUTE)
        assert (tasks.state(second), tasks.state(third)) == ("succeeded", "succeeded")


def test_a_waiting_task_starts_at_once_if_its_awaited_lock_is_removed() -> None:
    """If the lock that a task waits for is removed from the task, it starts at once, and its kept lock is passed on."""
    with Several(60) as tasks:
        tasks.needing("b")
        task_id = tasks.needing("a", "b", second=1)
        other = tasks.needing("a", second=2)
        tasks.run_to(10)
        changed = tasks.change(task_id, locks=[{"key": "c"}]).body
        assert (changed["lock"]["key"], "locks" in changed) == ("c", False)
        tasks.run_to(13)
        assert tasks.began(task_id) == about(10)
        assert tasks.began(other) == about(10)


def test_a_pull_worker_leases_a_task_with_all_its_locks() -> None:
    """A pulled task is leased once it has both locks, and releases them at its end."""
    with Several(5) as tasks:
        tasks.needing("b")
        locks = [{"key": "a"}, {"key": "b", "mode": "shared"}]
        pulled = tasks.create(tasks.start + SECOND - tasks.now, PULLED, rollback_on_failure=False, locks=locks)
        wanted = {"types": [PULLED], "lease_seconds": 30, "worker": "X", "wait_seconds": 0}
        tasks.run_to(3)
        assert tasks.ask("POST", "/v1/leases", wanted).body["leases"] == []
        assert tasks.record(pulled).waiting_for == "lock b"
        assert tasks.holders("a") == [(pulled, "exclusive")]
        tasks.run_to(10)
        (lease,) = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
        assert tasks.holders("b") == [(pulled, "shared")]
        assert tasks.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 1}).status == 200
        assert (tasks.holders("a"), tasks.holders("b")) == ([], [])


def test_nodes_of_two_topologies_with_the_same_locks_do_not_deadlock() -> None:
    """Nodes of two topologies that share locks run one at a time without a deadlock, in their first attempts."""
    with Several(3) as tasks:
        pairs = [("a", "b"), ("b", "c"), ("c", "a")]
        for order in (1, -1):
            nodes = {
                f"n{number}": {"type": PLAIN, "locks": [{"key": key} for key in pair[::order]], "retry": ONCE}
                for number, pair in enumerate(pairs)
            }
            last = {"type": PLAIN, "depends_on": sorted(nodes), "locks": [{"key": key} for key in "abc"]}
            assert tasks.ask("POST", "/v1/topologies", {"nodes": {**nodes, "last": last}}).status == 201
        tasks.run(5 * MINUTE)
        assert tasks.tally() == {State.SUCCEEDED: 10}
        assert tasks.most == 1
        assert {task.attempt for task in tasks.watching.tasks() if task.node_ref} == {1}
