"""After an outage of the trigger, catch-up runs follow the overlap policy and the limit on runs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.parts import others_slow
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.schedules import PATH, Schedules
from tests.scenarios.test_moved_occurrences import is_save

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "allow_all"])
@pytest.mark.parametrize("lasts", others_slow([2, 90]))
def test_a_catch_up_run_follows_the_overlap_policy(overlap: str, lasts: int) -> None:
    """Only the latest missed occurrence runs; later occurrences follow the overlap policy and run at most once."""
    with Schedules() as schedules:
        schedules.last(lasts)
        schedules.make(overlap=overlap)
        schedules.run(2 * MINUTE)
        before = len(schedules.ran())
        schedules.ticking = False
        schedules.run(10 * MINUTE)
        schedules.ticking = True
        schedules.run(10 * MINUTE)
        ran = schedules.ran()
        assert max(ran.values()) == 1
        assert len(ran) > before + 4
        if overlap != "allow_all":
            begun = sorted(effect.at for effect in schedules.effects)
            assert all(late - early >= lasts * SECOND for early, late in pairwise(begun))
        gaps = [late - early for early, late in pairwise(sorted(ran)) if late - early > 5 * MINUTE]
        assert len(gaps) == 1, "of what was missed, one runs"
        assert schedules.schedule()["state"] == "active"


@pytest.mark.parametrize("slow", ["first", "second"])
def test_two_concurrent_triggers_do_not_exceed_the_number_of_runs(slow: str) -> None:
    """If one trigger stalls before saving and another expands the schedule, the limit holds and no run repeats."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all", remaining_runs=6)
        schedules.run(MINUTE)
        saves: list[str] = []

        def is_slow(call: Call) -> bool:
            is_its_save = is_save(call)
            saves.extend(["save"] * is_its_save)
            return is_its_save and len(saves) == (1 if slow == "first" else 2)

        slowed = schedules.slow(is_slow, 100 * SECOND)
        schedules.run(12 * MINUTE)
        assert slowed
        assert (sum(schedules.ran().values()), max(schedules.ran().values())) == (6, 1)
        shown = schedules.schedule()
        assert (shown["runs_started"], shown["remaining_runs"], shown["state"]) == (6, 0, "ended")


def test_a_change_during_a_catch_up_does_not_exceed_the_remaining_runs() -> None:
    """A change to `remaining_runs` during a catch-up takes effect at once, except for a run that is already placed."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all", remaining_runs=10)
        schedules.ticking = False
        schedules.run(8 * MINUTE)
        slowed = schedules.slow(is_save, 5 * SECOND)
        schedules.ticking = True
        assert schedules.run_until(lambda: slowed)
        begun = len(schedules.effects)
        assert schedules.ask("PATCH", PATH, {"remaining_runs": 2}).status == 200
        schedules.run(10 * MINUTE)
        assert len(schedules.effects) - begun in {2, 3}
        assert max(schedules.ran().values()) == 1
        assert schedules.schedule()["state"] == "ended"
