"""If settings change while tasks run, one function at a time, no task is lost, late or run twice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest

from duetime.environment_variables import Variable
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis
    from duetime_testing.simulation.machines import Machine

FUNCTIONS = ("api", "trigger", "worker")
CHANGES: Mapping[str, tuple[tuple[Variable, str, str], ...]] = {
    "shards": ((Variable.SHARDS, "2", "32"),),
    "look_ahead_seconds": ((Variable.LOOK_AHEAD_SECONDS, "180", "60"),),
    "precision": ((Variable.PRECISION, "normal", "exact"),),
    "lease_seconds": ((Variable.LEASE_SECONDS, "30", "90"),),
    "retention_days": ((Variable.RETENTION_DAYS, "30", "3"),),
    "concurrency": (),
    "pulled_types": (),
}
"""The variables that change, each with two values; each variable changes in both directions."""
TASKS = 1188
LATEST_SECONDS: Mapping[str, float] = {name: 7.3 if name == "concurrency" else 0.1 for name in CHANGES}
"""The largest lateness of a start, in seconds; with only four concurrent workers, tasks wait in the queue."""
LASTS, BUSY, EVERY = 12 * SECOND, 20 * MINUTE, 4 * SECOND
SEEDS = range(4)


@dataclass
class Figures:
    """The results of a change.

    Attributes:
        tasks: the number of created tasks.
        latest: the largest lateness of a start.
    """

    tasks: int
    latest: Millis


class Changing(Tasks):
    """An account whose functions get changed settings at different moments.

    Attributes:
        known: the changed variables of each function's new processes.
    """

    def __init__(self, seed: int, setting: str) -> None:
        super().__init__()
        self.draw = Random(f"{setting} {seed}")  # noqa: S311 - repeatable on purpose
        self.setting = setting
        self.known: dict[str, dict[str, str]] = {}
        self.last(LASTS / SECOND)

    def _free_machine(self, function: str) -> Machine:
        usual = dict(self.environ)
        self.environ.update(self.known.get(function, {}))
        try:
            return super()._free_machine(function)
        finally:
            self.environ.clear()
            self.environ.update(usual)

    def change_setting(self, function: str, *, back: bool) -> None:
        """Deploy one function with the changed or the original setting; running processes keep their setting."""
        self.known[function] = {name: old if back else new for name, old, new in CHANGES[self.setting]}
        if self.setting == "concurrency":
            self.most_workers = 60 if back else 4
        if self.setting == "pulled_types":
            queue = {} if back else {"new": self.pulled}
            self.known[function] = {
                Variable.PULLED_QUEUES: json.dumps({**json.loads(self.environ[Variable.PULLED_QUEUES]), **queue})
            }
        for machine in self.machines:
            if machine.function == function:
                machine.dead = machine.strand is None or machine.dead

    def live(self) -> Figures:
        """Create tasks that are due at various times while the setting changes and changes back."""
        moments = sorted(
            (self.now + self.draw.randrange(start, start + 3 * MINUTE), function, back)
            for back, start in ((False, 5 * MINUTE), (True, 12 * MINUTE))
            for function in FUNCTIONS
        )
        end = self.now + BUSY
        made: list[str] = []
        while self.now < end:
            made.append(self.create(self.draw.choice([0, 0, self.draw.randrange(10 * MINUTE)])))
            self.run(EVERY)
            while moments and moments[0][0] <= self.now:
                _, function, back = moments.pop(0)
                self.change_setting(function, back=back)
        self.run(15 * MINUTE)
        for task_id in made:
            assert self.state(task_id) == "succeeded", task_id
            assert len(self.effect_times(task_id)) == 1, task_id
        return Figures(len(made), max(self.done(task_id).lateness or 0 for task_id in made))


def measured(setting: str) -> Figures:
    """The number of tasks and the largest lateness over all seeds."""
    found = []
    for seed in SEEDS:
        with Changing(seed, setting) as account:
            found.append(account.live())
    return Figures(sum(each.tasks for each in found), max(each.latest for each in found))


@pytest.mark.slow
@pytest.mark.parametrize("setting", CHANGES)
def test_a_changed_setting_loses_no_task(setting: str) -> None:
    """If a setting changes, each task runs once, and on time if there are enough workers."""
    figures = measured(setting)
    assert figures.tasks == TASKS, figures
    assert figures.latest / SECOND == pytest.approx(LATEST_SECONDS[setting], abs=0.3), figures
