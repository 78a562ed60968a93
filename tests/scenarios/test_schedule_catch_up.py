"""If an expansion is interrupted, its placed occurrences are neither lost nor reported as skipped."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.domain.tasks.task import Cause
from tests.parts import others_slow
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario
from tests.scenarios.schedules import Schedules

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

_SCHEDULE_REFERENCE = ATTRIBUTES["schedule_ref"].name


def puts_occurrence(call: Call, function: str) -> bool:
    """Whether a call creates an occurrence's task."""
    is_put = call.machine.function == function and call.operation == "put_item"
    return is_put and _SCHEDULE_REFERENCE in call.request["Item"]


def test_an_occurrence_that_cannot_be_placed_does_not_affect_the_others() -> None:
    """If the second of four occurrences cannot be placed, the other occurrences still count as placed."""
    with Scenario() as scenario:
        scenario.faulty = True  # the second occurrence is late
        puts: list[Call] = []

        def is_second(call: Call) -> bool:
            if puts_occurrence(call, "api"):
                puts.append(call)
            return len(puts) == 2

        scenario.run(MINUTE - scenario.now % MINUTE + 45 * SECOND)
        refused = scenario.once(is_second, lambda call: call.refuse())
        body = {"name": "minutely", "cron": "* * * * *", "overlap": "allow_all", "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        assert refused
        saves: list[Call] = []

        def is_read_again(call: Call) -> bool:
            """Whether the trigger reads the schedule again after saving it."""
            if call.machine.function != "trigger":
                return False
            if call.operation == "put_item" and call.request["Item"][schema.SORT_KEY]["S"] == "#minutely":
                saves.append(call)
            return bool(saves) and call.operation == "query"

        scenario.ticking = False
        scenario.run(80 * SECOND)
        slowed = scenario.slow(is_read_again, 115 * SECOND)
        scenario.ticking = True
        assert scenario.run_until(lambda: slowed)
        scenario.run(10 * MINUTE)
        schedule = scenario.ask("GET", "/v1/schedules/minutely").body
        assert schedule["runs_skipped"] == 0, schedule["skipped_runs"]
        tasks = sorted(scenario.watching.tasks(), key=lambda task: task.due_at)
        assert schedule["runs_started"] == sum(bool(task.attempt_history) for task in tasks)
        assert {late.due_at - early.due_at for early, late in pairwise(tasks)} == {MINUTE}


@pytest.mark.parametrize("dies", others_slow([False, True]))
def test_missed_runs_within_the_window_are_caught_up_in_order(dies: bool) -> None:  # noqa: FBT001 - a test parameter
    """Ten minutes' worth of missed runs is caught up, even if the trigger dies in between."""
    with Schedules() as schedules:
        schedules.last(5)
        schedules.make(overlap="buffer_all", catch_up_mode="all", catch_up_seconds=600)
        schedules.run(5 * MINUTE)
        away_at = schedules.now
        schedules.ticking = False
        schedules.run(30 * MINUTE)
        puts: list[Call] = []

        def is_fourth(call: Call) -> bool:
            if puts_occurrence(call, "trigger"):
                puts.append(call)
            return len(puts) == 4

        died = schedules.once(lambda call: dies and is_fourth(call), lambda call: call.machine.die())
        back_at = schedules.now
        schedules.ticking = True
        schedules.run(10 * MINUTE)
        assert bool(died) is dies
        ran = schedules.ran()
        assert set(ran.values()) == {1}
        # Occurrences that were placed before the outage ran during the outage.
        ahead = max(at for at in ran if at < back_at - 20 * MINUTE)
        assert ahead <= away_at + 5 * MINUTE
        late = [at for at in ran if ahead < at <= back_at]
        # The first ticks come some minutes later, and occurrences that are too late then count as skipped.
        assert set(schedules.minutes(back_at - 7 * MINUTE, back_at)) <= set(late)
        assert min(late) >= back_at - 10 * MINUTE
        assert schedules.schedule()["runs_skipped"] == len(schedules.minutes(ahead + 1, back_at)) - len(late)
        # The missed occurrences are placed at once; whichever begins first, the others wait in order.
        assert sum(earlier > later for earlier, later in pairwise(late)) <= 2
        causes = {
            task.schedule_ref.nominal: task.schedule_ref.cause for task in schedules.placed() if task.schedule_ref
        }
        assert {causes[at] for at in sorted(late)[:-1]} == {Cause.CATCH_UP}
