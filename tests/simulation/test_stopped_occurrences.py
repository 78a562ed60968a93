"""Simulations in which users stop occurrences and change their schedule repeatedly, while workers lag behind."""

from __future__ import annotations

from functools import partial

import pytest

from duetime.domain.schedules import schedule, schedule_changes
from duetime.domain.times import MINUTE, SECOND, Millis
from duetime.services.schedules import expansion_planner
from tests.simulation import works
from tests.simulation.fault_simulation import FaultSimulation, Theme
from tests.simulation.occurrence_users import NAME, OccurrenceUsers

STORM = 8 * MINUTE
SEEDS = range(4)


class EditedSimulation(FaultSimulation):
    """A simulation whose only user edits a schedule, and whose queues are unread for minutes, so occurrences wait."""

    def __init__(self, seed: int, rate: float) -> None:
        super().__init__(seed, rate, Theme.TASKS)
        self.faulty = True

    def run(self) -> list[object]:
        """Run the simulation, and return the violations of the invariants."""
        users = OccurrenceUsers(self)
        end = self.time.now() + STORM
        self.time.start_process(partial(users.use, end))
        self.time.start_process(partial(self._leave_queues, end))
        self.time.run_until(end + 30 * MINUTE)
        self.occurrences.check_edited(NAME, end - 4 * MINUTE)
        return list(self.watching.violations)

    def _leave_queues(self, until: Millis) -> None:
        while self.time.now() < until - 3 * MINUTE:
            self.receiving = False
            self.take(self.random.randrange(MINUTE, 3 * MINUTE))
            self.receiving = True
            for poller in self._pollers.values():
                self.time.nudge(poller)
            self.take(20 * SECOND)


def violations_of(seed: int, rate: float) -> list[object]:
    """The violations in a simulation with this seed."""
    simulation = EditedSimulation(seed, rate)
    try:
        return simulation.run()
    finally:
        works.STAGE.remove(simulation)
        simulation.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_change_restarts_a_stopped_occurrence_or_drops_another(seed: int) -> None:
    """Whatever users change, an occurrence that was stopped never begins, and every other occurrence begins."""
    assert violations_of(seed, 0.0) == []


@pytest.mark.slow
def test_a_stopped_occurrence_that_begins_again_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants find the deliberate defect that changes to the schedule ignore the user's stops."""
    monkeypatch.setattr(expansion_planner, "is_stopped", lambda _task: False)
    assert any("has stopped" in str(each) for seed in SEEDS for each in violations_of(seed, 0.0))


@pytest.mark.slow
def test_a_queued_occurrence_that_is_dropped_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants find the deliberate defect that a schedule forgets the earlier ends of a revision."""
    original = schedule.with_end
    monkeypatch.setattr(schedule_changes, "with_end", lambda _ends, until, number: original((), until, number))
    assert any("has not run" in str(each) for seed in SEEDS for each in violations_of(seed, 0.0))
