"""If any write to a deleted schedule or a freed lock arrives a minute late, the new schedule or lock is unaffected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import LATEST_ARRIVAL
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario
from tests.scenarios.schedules import NAME, PATH, Schedules
from tests.scenarios.tasks import Tasks
from tests.scenarios.test_deleted_names import land_late

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

WRITES = {"put_item", "update_item", "delete_item"}


def nth_write(number: int, prefix: str) -> Callable[[Call], bool]:
    """Match the nth write to partitions with this prefix."""
    seen: list[Call] = []

    def matches(call: Call) -> bool:
        is_one = call.operation in WRITES and (call.partition or "").startswith(prefix)
        seen.extend([call] * is_one)
        return is_one and len(seen) == number

    return matches


def insist(scenario: Scenario, method: str, path: str, body: object = None) -> Reply:
    """Repeat a request until the response is not a 5xx, as clients do."""
    replies: list[Reply] = []
    while not replies or replies[-1].status >= 500:
        assert len(replies) < 5, replies
        replies.append(scenario.ask(method, path, body))
        scenario.run(SECOND)
    return replies[-1]


def _schedule_made_again(number: int, overlap: str) -> bool:
    """Check that only the new schedule runs, at all its times; return whether there was an nth write."""
    with Schedules() as schedules:
        schedules.run(MINUTE - schedules.now % MINUTE + 15 * SECOND)
        met = land_late(schedules, nth_write(number, schema.SCHEDULE_PREFIX))
        schedules.last(20)
        body: dict[str, Any] = {"name": NAME, "overlap": overlap, "task": {"type": PLAIN}}
        insist(schedules, "POST", "/v1/schedules", {**body, "cron": "* * * * *"})
        schedules.run(80 * SECOND)
        insist(schedules, "DELETE", PATH)
        deleted_at = schedules.now
        insist(schedules, "POST", "/v1/schedules", {**body, "cron": "*/2 * * * *"})
        schedules.run(8 * MINUTE - schedules.now % MINUTE + SECOND)
        assert schedules.schedule()["cron"] == "*/2 * * * *", number
        wanted = [at for at in schedules.minutes(deleted_at, schedules.now - SECOND) if at // MINUTE % 2 == 0]
        ran = {at: count for at, count in schedules.ran().items() if at > deleted_at}
        assert ran == dict.fromkeys(wanted, 1), number
        return bool(met)


@pytest.mark.slow
@pytest.mark.parametrize("overlap", ["skip", "allow_all"])
def test_no_late_write_affects_a_recreated_schedule(overlap: str) -> None:
    """Whichever write by the API, trigger or worker is late, the new schedule is not affected."""
    number = 1
    while _schedule_made_again(number, overlap):
        number += 1
    assert number > 8


def _lock_freed(number: int) -> bool:
    """Check that each waiter gets the lock soon; return whether there was an nth write."""
    with Tasks() as tasks:
        tasks.faulty = True  # an attempt that loses its lock is retried
        tasks.last(6)
        met = land_late(tasks, nth_write(number, schema.LOCK_PREFIX))
        lock: dict[str, Any] = {"lock": {"key": "db-17"}, "timeout_seconds": 30}
        ids = [tasks.create(**lock) for _ in range(3)]
        tasks.run(10 * SECOND)
        tasks.watching.freed("db-17")
        insist(tasks, "DELETE", "/v1/locks/db-17")
        tasks.run(LATEST_ARRIVAL - 5 * SECOND)
        ids += [tasks.create(**lock) for _ in range(3)]
        begun_at = tasks.now
        assert tasks.run_until(lambda: all(tasks.state(each) == "succeeded" for each in ids)), number
        assert tasks.now - begun_at < 2 * MINUTE, number
        tasks.run(2 * LATEST_ARRIVAL)
        assert tasks.ask("GET", "/v1/locks/db-17").body["holders"] == [], number
        return bool(met)


@pytest.mark.slow
def test_no_late_write_blocks_a_lock_that_was_released_by_force() -> None:
    """Whichever write to the lock or its line is late, no two tasks hold the lock, and no task is stuck."""
    number = 1
    while _lock_freed(number):
        number += 1
    assert number > 12
