"""A graph runs to its end whatever single call goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.tasks.states import State
from duetime.domain.times import MINUTE, SECOND
from tests.simulation.interruption import Fault, Interrupted
from tests.virtual.topologies import Topologies

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

pytestmark = pytest.mark.slow

DIAMOND: dict[str, dict[str, Any]] = {
    "top": {},
    "left": {"depends_on": ["top"]},
    "right": {"depends_on": ["top"]},
    "bottom": {"depends_on": ["left", "right"]},
}
PATIENCE = 150
"""Looks of ten seconds: a message that is lost is found by a patrol."""


class InterruptedTopologies(Interrupted, Topologies):
    """A world of topologies in which exactly one call goes wrong."""


def run(fault: Fault | None, at_call: int) -> tuple[InterruptedTopologies, Task]:
    """Run a diamond to its end, with a fault at one call."""
    world = InterruptedTopologies(fault, at_call)
    world.behave = lambda _work: world.take(SECOND)
    topology = world.submit(DIAMOND)
    for _ in range(PATIENCE):
        world.pass_time(10 * SECOND)
        if world.get(topology).finished_at is not None:
            break
    return world, topology


def calls() -> int:
    """How many calls leave the processes while a diamond runs."""
    world, _ = run(None, 0)
    return len(world.calls)


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_any_call_loses_no_node_and_breaks_no_order(fault: Fault) -> None:
    """Each call in turn: all nodes succeed, and none begins before its parents have ended."""
    for at_call in range(1, calls() + 1):
        world, topology = run(fault, at_call)
        said = f"{fault.name} at call {at_call}"
        task = world.get(topology)
        assert task.state is State.SUCCEEDED, f"{said}: {task.state} {task.error} {world.stands(topology)}"
        view = world.view(topology)
        assert view.run_state is not None
        keys = {view.run_state.task_id(key): key for key in DIAMOND}
        at: dict[str, list[int]] = {}
        for effect in world.effects:
            at.setdefault(keys[effect.task_id], []).append(effect.at)
        for key, node in DIAMOND.items():
            for parent in node.get("depends_on", []):
                assert max(at[parent]) < min(at[key]), f"{said}: {key} began before {parent} had ended"
        doubled = {key for key, times in at.items() if len(times) > 1}
        # What was done and could not be written down is done again: the node, or both that one process worked on.
        assert len(doubled) <= 1 or doubled == {"left", "right"}, f"{said}: {doubled}"
        assert task.finished_at is not None
        assert task.finished_at - task.created_at < 20 * MINUTE, said
