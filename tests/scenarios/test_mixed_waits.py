"""Tasks that wait for several conditions at once: other tasks, a turn, a lock, a rate, and group members."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime.handlers import Context

_TASKS = 40
_GROUPS = ("first", "second")
_CONTROLS = ("cancel", "resume", "retry", "run")


def _body(draw: Random, made: list[str]) -> dict[str, Any]:
    """A request for a task with random options, which may wait for earlier tasks."""
    options: dict[str, Any] = {
        "order": {"key": draw.choice("ab")},
        "group": {"id": draw.choice(_GROUPS)},
        "lock": {"key": "lock"},
        "rate": {"key": "rate", "limit": 2, "per_seconds": 1},
        "unique": {"key": draw.choice("uv"), "on_conflict": "keep"},
        "delay_seconds": draw.choice([1, 5, 30]),
    }
    chosen = {name: value for name, value in options.items() if draw.random() < 0.25}
    if made and draw.random() < 0.4:
        chosen["after"] = draw.sample(made, min(len(made), draw.choice([1, 2, 3])))
        chosen["trigger_rule"] = draw.choice([rule.value for rule in TriggerRule])
    retry = {"max_attempts": draw.choice([1, 2, 3]), "initial_seconds": 1, "max_seconds": 5}
    return {"type": draw.choice([PLAIN, UNDONE]), "timeout_seconds": 60, "retry": retry, **chosen}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))])
def test_every_task_ends_whatever_combination_it_waits_for(seed: int) -> None:
    """Every task ends, whatever it waits for, and each group counts its members."""
    draw = Random(seed)  # noqa: S311 - repeatable on purpose
    with Tasks(seed) as tasks:
        # Tasks may be late because they wait.
        tasks.faulty = True

        def work(_phase: str, _context: Context) -> str:
            tasks.take(draw.choice([0, 100, 2 * SECOND]))
            if draw.random() < 0.3:
                raise ValueError("by chance")
            return "done"

        tasks.target = work
        made: list[str] = []
        for _ in range(_TASKS):
            answer = tasks.ask("POST", "/v1/tasks", _body(draw, made))
            assert answer.status in {200, 201}, answer.body
            made += [answer.body["id"]] if answer.status == 201 else []
            tasks.run(draw.choice([0, 0, 100, 5 * SECOND]))
            if draw.random() < 0.1:
                assert tasks.do(draw.choice(made), draw.choice(_CONTROLS)).status in {200, 409}
        closing = {"on_complete": {"task": {"type": PLAIN, "timeout_seconds": 60}}}
        assert [tasks.ask("PUT", f"/v1/groups/{group}", closing).status for group in _GROUPS] == [200, 200]
        tasks.run(10 * MINUTE)
        assert [each for each in made if not tasks.record(each).finished_at] == []
        for group in _GROUPS:
            shown = tasks.ask("GET", f"/v1/groups/{group}").body
            members = Counter(tasks.state(each).value for each in made if tasks.record(each).group == group)
            assert (shown["state"], shown["counts"]) == ("completed", members)
