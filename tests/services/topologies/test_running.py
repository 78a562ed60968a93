"""Graphs that run in the virtual world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.attempt_outcomes import Succeeded
from duetime.domain.tasks.states import State
from duetime.domain.times import MINUTE, SECOND
from tests.virtual.topologies import Topologies

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work

DIAMOND: dict[str, dict[str, Any]] = {
    "top": {},
    "left": {"depends_on": ["top"]},
    "right": {"depends_on": ["top"]},
    "bottom": {"depends_on": ["left", "right"]},
}


def failing(world: Topologies, *keys: str) -> None:
    """Have these nodes fail for good."""

    def behave(work: Work) -> Ending:
        if work.task.node_ref and work.task.node_ref.key in keys:
            return world.fail(work, 99, retriable=False)
        return Succeeded(b'"done"')

    world.behave = behave


def test_a_node_runs_after_its_parents_and_once() -> None:
    """A diamond runs from top to bottom, and the topology's task succeeds with it."""
    world = Topologies()
    topology = world.submit(DIAMOND)
    world.pass_time(MINUTE)
    assert world.begun[0] == "top"
    assert sorted(world.begun[1:3]) == ["left", "right"]
    assert world.begun[3:] == ["bottom"]
    task = world.get(topology)
    assert task.state is State.SUCCEEDED
    assert task.result is not None
    assert task.result.data == b'{"run":1,"nodes":{"succeeded":4}}'
    assert set(world.stands(topology).values()) == {"succeeded"}


def test_nothing_starts_after_a_failure_that_stops() -> None:
    """Under `stop` the failure of a node cancels what has not begun, and fails the topology."""
    world = Topologies()
    failing(world, "left")
    topology = world.submit(DIAMOND)
    world.pass_time(MINUTE)
    assert "bottom" not in world.begun
    assert world.stands(topology)["bottom"] in {"stopped", "upstream_failed"}
    task = world.get(topology)
    assert task.state is State.FAILED
    assert task.error is not None
    assert (task.error.kind, task.error.message) == ("NodesFailed", "the node left failed")
    world.pass_time(5 * SECOND)


def test_a_node_is_given_the_results_that_it_asks_for() -> None:
    """By its parents' names; a parent that failed has none to give."""
    world = Topologies()
    given: dict[str, bytes | None] = {}

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        given[work.task.node_ref.key] = work.inputs
        if work.task.node_ref.key == "right":
            return world.fail(work, 9, retriable=False)
        return Succeeded(f'"{work.task.node_ref.key}"'.encode())

    world.behave = behave
    bottom = {"depends_on": ["left", "right", "top"], "inputs": ["left", "right"], "rule": "all_done"}
    world.submit({**DIAMOND, "bottom": bottom}, on_failure="continue")
    world.pass_time(MINUTE)
    assert given["bottom"] == b'{"left":"left","right":null}'
    assert given["left"] is None
