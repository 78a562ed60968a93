"""With wrong clocks, no task runs early or twice, and no task is late once the clock is right again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE
from duetime.domain.times import to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call

STEPS = [-2 * HOUR, -10 * MINUTE, -4 * MINUTE, -40 * SECOND, 40 * SECOND, 4 * MINUTE, 10 * MINUTE, 2 * HOUR]


def _step(scenario: Scenario, function: str, step: Millis) -> None:
    """Make the clocks of all processes of a function wrong from now on."""

    def off(call: Call) -> None:
        if call.machine.function == function:
            call.machine.clock.skew = step

    for machine in scenario.machines:
        if machine.function == function:
            machine.clock.skew = step
    scenario.before_call = off


@pytest.mark.parametrize("step", others_slow(STEPS))
def test_tasks_run_after_the_triggers_clock_was_wrong(step: Millis) -> None:
    """After the trigger's clock was wrong for five minutes, delayed tasks run at once, and later tasks run on time."""
    with Scenario() as scenario:
        scenario.faulty = True
        delays = range(30, 1500, 70)
        before = [
            scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": delay}).body["id"] for delay in delays
        ]
        scenario.run(3 * MINUTE)
        _step(scenario, "trigger", step)
        scenario.run(2 * MINUTE)
        during = [
            scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": delay}).body["id"] for delay in delays
        ]
        scenario.run(3 * MINUTE)
        _step(scenario, "trigger", 0)
        right_again = scenario.now
        scenario.run(35 * MINUTE)
        for task_id in [*before, *during]:
            task = scenario.record(task_id)
            assert task.state == "succeeded"
            assert task.started_at is not None
            assert task.started_at < max(task.due_at + SECOND, right_again + 2 * MINUTE)


@pytest.mark.slow
@pytest.mark.parametrize("step", others_slow(STEPS))
def test_a_schedule_keeps_its_times_while_the_clock_of_the_trigger_is_wrong(step: Millis) -> None:
    """After the trigger's clock is right again, every later occurrence runs once, on time."""
    with Scenario() as scenario:
        scenario.faulty = True
        ran: list[str] = []
        scenario.target = lambda _phase, context: ran.append(context.task_id)
        schedule = {"name": "often", "cron": "* * * * *", "overlap": "allow_all", "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", schedule).status == 201
        scenario.run(5 * MINUTE)
        _step(scenario, "trigger", step)
        scenario.run(5 * MINUTE)
        _step(scenario, "trigger", 0)
        right_again = scenario.now + 2 * MINUTE
        scenario.run(15 * MINUTE)
        due = [scenario.record(task_id).due_at for task_id in ran]
        assert len(set(due)) == len(due)
        assert sum(right_again < at for at in due) >= 12
        assert (
            max(
                scenario.record(task_id).lateness or 0
                for task_id in ran
                if scenario.record(task_id).due_at > right_again
            )
            < SECOND
        )


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step < 0])
@pytest.mark.parametrize("function", ["api", "worker"])
def test_no_task_is_lost_while_an_api_or_worker_clock_is_behind(function: str, step: Millis) -> None:
    """Tasks from before or during the wrong clock run once, at most three minutes after the clock is right."""
    with Scenario() as scenario:
        scenario.faulty = True
        due: dict[str, Millis] = {}

        def create() -> None:
            for delay in range(30, 1500, 70):
                at = scenario.now + delay * SECOND
                made = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "due_at": to_iso(at)})
                due[made.body["id"]] = at

        create()
        _step(scenario, function, step)
        scenario.run(2 * MINUTE)
        create()
        scenario.run(3 * MINUTE)
        _step(scenario, function, 0)
        right_again = scenario.now
        scenario.run(HOUR + 10 * MINUTE)
        for task_id, at in due.items():
            task = scenario.record(task_id)
            assert (task.state, task.attempt) == ("succeeded", 1)
            assert task.started_at is not None
            assert task.started_at < max(at, right_again) + 3 * MINUTE


def test_the_promised_margin_for_clock_differences_is_five_seconds() -> None:
    """The promised margin for clock differences is five seconds."""
    assert MAX_CLOCK_DIFFERENCE == 5 * SECOND


@pytest.mark.parametrize("ahead", [0, MAX_CLOCK_DIFFERENCE - 100])
def test_a_worker_whose_clock_is_ahead_takes_over_no_lease_too_early(ahead: Millis) -> None:
    """A worker that is cut off stops before another worker begins, even if the other worker's clock is ahead."""
    with Scenario() as scenario:
        scenario.faulty = True
        scenario.target = lambda _phase, _context: scenario.take(200 * SECOND)
        made = scenario.ask("POST", "/v1/tasks", {"type": PLAIN}).body["id"]
        assert scenario.run_until(lambda: scenario.record(made).state == "running")
        (first,) = [each for each in scenario.machines if each.function == "worker"]
        first.cut_off_until = scenario.now + 10 * MINUTE

        def off(call: Call) -> None:
            if call.machine.function == "worker" and call.machine is not first:
                call.machine.clock.skew = ahead

        scenario.before_call = off
        scenario.target = lambda _phase, _context: "done"
        for _ in range(60):
            scenario.run(SECOND)
            scenario.deliver_in_flight_again()
        assert scenario.record(made).state == "succeeded"
        assert scenario.record(made).attempt == 2
