"""Each cause in the runbook sets off its alarm, and the runbook's steps end the alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.aws_outages import Outage
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

WITHIN = 25 * MINUTE
"""An alarm must go off or end within this time."""


def _until(outage: Outage, alarm: str, *, on: bool) -> None:
    """Let time pass until an alarm is on or off."""
    assert outage.run_until(lambda: outage.is_on(alarm) is on, within=WITHIN, step=MINUTE), (alarm, on)


@pytest.fixture
def outage() -> Outage:
    """An account that has run for some minutes."""
    made = Outage()
    made.run(10 * MINUTE)
    return made


def test_ticks_incomplete_alarm_goes_off_while_the_trigger_is_stopped(outage: Outage) -> None:
    """TicksIncomplete goes off while `EveryMinute` is disabled; once the rule is enabled, due tasks run."""
    with outage:
        late = outage.create(8 * MINUTE)
        outage.ticking = False
        _until(outage, "TicksIncomplete", on=True)
        outage.ticking = True
        _until(outage, "TicksIncomplete", on=False)
        assert outage.state(late) == "succeeded"


def test_tasks_failing_alarm_goes_off_while_an_endpoint_is_down(outage: Outage) -> None:
    """TasksFailing goes off while an endpoint is down; the type is stopped, and failed tasks are retried later."""
    with outage:
        works, outage.target = outage.target, _down
        made = [outage.create(retry={"max_attempts": 1}) for _ in range(12)]
        _until(outage, "TasksFailing", on=True)
        assert {outage.state(each) for each in made} == {"failed"}
        assert outage.ask("PUT", f"/v1/switches/type/{PLAIN}", {"stopped": True}).status in {200, 201}
        held = outage.create()
        _until(outage, "TasksFailing", on=False)
        assert outage.state(held) == "waiting"
        outage.target = works
        assert outage.ask("DELETE", f"/v1/switches/type/{PLAIN}").status in {200, 204}
        for each in made:
            assert outage.do(each, "retry").status == 200
        outage.run(5 * MINUTE)
        assert {outage.state(each) for each in (*made, held)} == {"succeeded"}
        assert not outage.is_on("TasksFailing")


def _down(_phase: str, _context: object) -> str:
    raise ConnectionError("the host is down")


def test_leases_lost_alarm_goes_off_if_workers_run_out_of_memory(outage: Outage) -> None:
    """LeasesLost goes off if workers run out of memory; after they get more, the tasks run and the alarm ends."""
    with outage:
        works = outage.target

        def grow(phase: str, context: object) -> object:
            if phase == "run":
                outage.kill()
            return works(phase, context)

        outage.target = grow
        made = [outage.create(number * SECOND, retry={"max_attempts": 20}) for number in range(30)]
        _until(outage, "LeasesLost", on=True)
        outage.target = works
        _until(outage, "LeasesLost", on=False)
        assert {outage.state(each) for each in made} == {"succeeded"}


@pytest.mark.parametrize("alarm", ["OldestDue", "TasksLate"])
def test_oldest_due_and_tasks_late_alarms_go_off_for_an_unread_queue(outage: Outage, alarm: str) -> None:
    """OldestDue and TasksLate go off while the worker's event source is disabled, and end once it is enabled."""
    with outage:
        outage.receiving = False
        made = [outage.create(number * MINUTE) for number in range(8)]
        # A recovery scan repeats the message an hour later.
        assert outage.run_until(lambda: outage.is_on("OldestDue"), within=75 * MINUTE, step=MINUTE)
        outage.receive_again()
        if alarm == "TasksLate":
            # A single minute with a late start sets off no alarm, but three such minutes do.
            for _ in range(4):
                outage.receiving = False
                outage.create()
                outage.run(50 * SECOND)
                outage.receive_again()
                outage.run(10 * SECOND)
            _until(outage, alarm, on=True)
        _until(outage, alarm, on=False)
        assert {outage.state(each) for each in made} == {"succeeded"}


def test_clock_skewed_alarm_goes_off_for_a_wrong_clock(outage: Outage) -> None:
    """ClockSkewed goes off if the trigger's machine has a wrong clock, and ends after a tick on another machine."""
    with outage:
        for each in outage.machines:
            if each.function == "trigger":
                each.step_clock(4 * SECOND)
        _until(outage, "ClockSkewed", on=True)
        for each in outage.machines:
            if each.function == "trigger":
                each.die()
        _until(outage, "ClockSkewed", on=False)


def test_occurrences_missed_alarm_goes_off_after_an_outage_of_the_trigger(outage: Outage) -> None:
    """After an outage of the trigger, OccurrencesMissed goes off and then ends."""
    with outage:
        schedule = {"name": "often", "rate": "5 minutes", "catch_up_seconds": 0, "task": {"type": PLAIN}}
        assert outage.ask("POST", "/v1/schedules", schedule).status == 201
        outage.run(6 * MINUTE)
        outage.ticking = False
        outage.run(40 * MINUTE)
        outage.ticking = True
        _until(outage, "OccurrencesMissed", on=True)
        _until(outage, "OccurrencesMissed", on=False)


def test_ticks_incomplete_alarm_goes_off_while_the_table_throttles(outage: Outage) -> None:
    """TicksIncomplete goes off while the table throttles and ends with the throttling, and accepted tasks run."""
    with outage:
        made = outage.create(12 * MINUTE)
        outage.refuse_calls(_of_table)
        for _ in range(5):
            outage.send("POST", "/v1/tasks", {"type": PLAIN})
        _until(outage, "TicksIncomplete", on=True)
        outage.heal()
        _until(outage, "TicksIncomplete", on=False)
        outage.run(15 * MINUTE)
        assert outage.state(made) == "succeeded"


def _of_table(call: Call) -> bool:
    return call.service == "dynamodb"
