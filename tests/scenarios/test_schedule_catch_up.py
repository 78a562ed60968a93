"""What a schedule's expansion that was interrupted has placed: it is neither lost nor told to have been skipped."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attribute_mapping import ATTRIBUTES
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

_SCHEDULE_REFERENCE = ATTRIBUTES["schedule_ref"].name


def puts_occurrence(call: Call, function: str) -> bool:
    """Whether a call creates the task of an occurrence."""
    is_put = call.machine.function == function and call.operation == "put_item"
    return is_put and _SCHEDULE_REFERENCE in call.request["Item"]


def test_an_occurrence_that_ran_is_not_reported_as_skipped_when_the_one_before_it_could_not_be_placed() -> None:
    """Of four occurrences the second is not placed, and the trigger is slow: those that ran count as placed."""
    with Scenario() as scenario:
        scenario.faulty = True  # the second one comes late
        puts: list[Call] = []

        def is_second(call: Call) -> bool:
            if puts_occurrence(call, "api"):
                puts.append(call)
            return len(puts) == 2

        scenario.run(MINUTE - scenario.now % MINUTE + 45 * SECOND)
        scenario.once(is_second, lambda call: call.refuse())
        body = {"name": "minutely", "cron": "* * * * *", "overlap": "allow_all", "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        saves: list[Call] = []

        def is_read_again(call: Call) -> bool:
            """The trigger reads the schedule again after it has saved what it adopted."""
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
        assert schedule["runs_started"] == len(tasks)
        assert {late.due_at - early.due_at for early, late in pairwise(tasks)} == {MINUTE}
