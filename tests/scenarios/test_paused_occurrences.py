"""Pauses of schedules around occurrences that a calendar or jitter delays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.parts import others_slow
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.test_moved_occurrences import NEW_TASK, OPEN, TENTH, Moved, closed, tenth_after

if TYPE_CHECKING:
    from duetime.domain.times import Millis

DELAY: Millis = 4 * MINUTE
"""How long a calendar delays the tested occurrence."""


class Held(Moved):
    """A schedule whose next occurrence a calendar delays by `DELAY`; times are relative to the occurrence's instant."""

    def begin_moved(self, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Create the schedule, and let time pass until its next occurrence is about to be placed."""
        self.faulty = True  # an occurrence that is due during a pause does not run
        self.begin(closed(tenth_after(self.now), DELAY), **fields)

    def go_to(self, after: Millis) -> None:
        """Let time pass until this long after the occurrence's instant."""
        self.run(self.next + after - self.now)

    def hold(self, begin: Millis, end: Millis, **change: Any) -> None:  # noqa: ANN401 - JSON
        """Pause the schedule from `begin` to `end`, and change the schedule in between."""
        self.go_to(begin)
        assert self.control("pause").status == 200
        if change:
            self.go_to((begin + end) // 2)
            assert self.amend(**change).status == 200
        self.go_to(end)
        assert self.control("resume").status == 200

    def times(self) -> list[Millis]:
        """The times at which the occurrence started, relative to its instant."""
        tasks = [task for task in self.placed() if task.schedule_ref and task.schedule_ref.nominal == self.next]
        return [at - self.next for task in tasks for at in self.effect_times(task.id.text)]


PAUSES: dict[str, tuple[Millis, Millis]] = {
    "before its instant": (-MINUTE, -30 * SECOND),
    "over its instant": (-MINUTE, MINUTE),
    "after its instant": (MINUTE, 2 * MINUTE),
}
CHANGES: dict[str, dict[str, Any]] = {"nothing": {}, "payload": {"task": NEW_TASK}, "catch-up": {"catch_up_seconds": 0}}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pause", others_slow(PAUSES))
def test_an_occurrence_that_is_due_after_a_pause_runs_once_and_on_time(pause: str, change: str) -> None:
    """A pause that ends before the due time does not affect the occurrence, even if the schedule is changed."""
    with Held() as schedules:
        schedules.begin_moved(remaining_runs=2)
        schedules.hold(*PAUSES[pause], **CHANGES[change])
        schedules.go_on(4)
        (began,) = schedules.times()
        assert DELAY <= began < DELAY + SECOND
        assert schedules.ran() == {schedules.next: 1, schedules.next + TENTH: 1}
        shown = schedules.schedule()
        assert (shown["runs_started"], shown["remaining_runs"]) == (2, 0)


@pytest.mark.parametrize("begin", [-MINUTE, MINUTE])
def test_an_occurrence_due_during_a_pause_uses_up_no_run(begin: Millis) -> None:
    """An occurrence due during a pause does not use up a run, so two later occurrences use the two remaining runs."""
    with Held() as schedules:
        schedules.begin_moved(remaining_runs=2)
        schedules.hold(begin, DELAY + MINUTE)
        schedules.go_on(5)
        assert schedules.ran() == {schedules.next + TENTH: 1, schedules.next + 2 * TENTH: 1}
        assert schedules.schedule()["runs_started"] == 2


def test_an_occurrence_still_queued_after_a_pause_does_not_run() -> None:
    """An occurrence due during a pause does not run, even if its message is received after the pause."""
    with Held() as schedules:
        schedules.begin_moved()
        schedules.go_to(MINUTE)
        schedules.receiving = False
        schedules.hold(2 * MINUTE, DELAY + MINUTE)
        schedules.receive_again()
        schedules.go_on(2)
        assert schedules.ran() == {schedules.next + TENTH: 1}


@pytest.mark.parametrize(("when", "begin"), [("before", -MINUTE), ("before", MINUTE), ("during", MINUTE)])
def test_a_cancelled_occurrence_does_not_run_after_a_pause(when: str, begin: Millis) -> None:
    """An occurrence cancelled before or during a pause does not run."""
    with Held() as schedules:
        schedules.begin_moved()
        task = schedules.place()
        if when == "before":
            assert schedules.cancel(task.id.text).status == 200
        schedules.go_to(begin)
        assert schedules.control("pause").status == 200
        if when == "during":
            assert schedules.cancel(task.id.text).status == 200
        schedules.go_to(2 * MINUTE)
        assert schedules.control("resume").status == 200
        schedules.go_on(2)
        assert schedules.ran() == {schedules.next + TENTH: 1}


def test_an_occurrence_that_jitter_delays_beyond_a_pause_keeps_its_time() -> None:
    """An occurrence that jitter delays until after a pause runs on time."""
    with Held() as schedules:
        schedules.faulty = True
        schedules.begin(OPEN, jitter_seconds=500)
        task = schedules.place()
        assert task.due_at > schedules.next + 40 * SECOND
        schedules.hold(20 * SECOND, 30 * SECOND)
        schedules.go_on(1)
        schedules.run(5 * MINUTE)
        assert 0 <= schedules.effect_times(task.id.text)[0] - task.due_at < SECOND
        assert schedules.ran()[schedules.next] == 1


def test_a_held_occurrence_that_the_new_timing_lacks_is_dropped() -> None:
    """An occurrence that the new timing does not include is dropped, even if it is due after the pause."""
    with Held() as schedules:
        schedules.begin_moved()
        schedules.hold(MINUTE, 2 * MINUTE, cron="5-55/10 * * * *")
        schedules.go_on(1)
        assert schedules.next not in schedules.ran()
