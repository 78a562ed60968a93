"""If a user cancels a run before it begins, the schedule continues as if the run had ended at that moment."""

from __future__ import annotations

import pytest

from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules, is_of_a_schedule

GAP = 20


def chained(schedules: Schedules) -> str:
    """The next run of a permanent schedule, which is already placed."""
    (found,) = [task.id.text for task in schedules.placed() if task.state == "scheduled"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cancel", "force", "delete", "filter", "paused"])
def test_a_permanent_schedule_continues_a_gap_after_a_cancelled_run(how: str) -> None:
    """After a permanent schedule's next run is cancelled in any way, another run begins one gap later."""
    with Schedules() as schedules:
        schedules.make(permanent={"gap_seconds": GAP})
        # At this time, between two runs, the schedule's own timer is far away.
        schedules.run(110 * SECOND)
        run = chained(schedules)
        assert schedules.record(run).state == "scheduled"
        if how == "paused":
            schedules.do(run, "pause")
            schedules.run(MINUTE)
        at = schedules.now
        if how == "delete":
            assert schedules.ask("DELETE", f"/v1/tasks/{run}").status == 204
        elif how == "filter":
            assert schedules.ask("POST", "/v1/tasks/cancel", {"filter": {"type": PLAIN}}).body["affected"] == 1
        else:
            assert schedules.cancel(run, force=how == "force").status == 200
        before = len(schedules.effects)
        assert schedules.run_until(lambda: len(schedules.effects) > before)
        assert GAP * SECOND <= schedules.effects[-1].at - at < (GAP + 3) * SECOND
        schedules.run(HOUR)
        assert set(schedules.ran().values()) == {1}


def test_the_next_run_begins_when_the_previous_run_is_cancelled() -> None:
    """If a run that waits for its retry is cancelled, the next run begins at once."""
    with Schedules() as schedules:
        retry = {"max_attempts": 3, "initial_seconds": 3600, "multiplier": 1, "max_seconds": 3600}
        schedules.make(overlap="buffer_one", task={"type": PLAIN, "retry": retry})
        schedules.fail(attempts=1)
        assert schedules.run_until(lambda: len(schedules.placed()) > 1 and schedules.placed()[1].waiting_for)
        first, second = schedules.placed()[:2]
        schedules.run(5 * SECOND)
        assert schedules.cancel(first.id.text).status == 200
        at = schedules.now
        assert schedules.run_until(lambda: schedules.effect_times(second.id.text))
        assert schedules.effect_times(second.id.text)[0] - at < 3 * SECOND


def test_a_runs_cancel_succeeds_even_if_its_schedule_cannot_be_updated() -> None:
    """If a schedule cannot be updated during a run's cancel, the run is cancelled, and a timer finds the run's end."""
    with Schedules() as schedules:
        schedules.make(permanent={"gap_seconds": GAP})
        schedules.run(110 * SECOND)
        run = chained(schedules)
        refused = schedules.refuse(lambda call: call.machine.function == "api" and is_of_a_schedule(call))
        assert schedules.cancel(run).status == 200
        schedules.before_call = None
        before = len(schedules.effects)
        assert refused
        assert schedules.run_until(lambda: len(schedules.effects) > before, 5 * MINUTE + GAP * SECOND)
