"""Random graphs in the virtual world, against the domain's plain executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.tasks.attempt_outcomes import Succeeded
from duetime.domain.times import MINUTE, SECOND
from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.virtual.topologies import Topologies

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Up to seven nodes with any rules, and those of them that fail."""
    count = draw(st.integers(1, 7))
    nodes = {
        f"n{number}": {
            "depends_on": sorted(draw(st.sets(st.sampled_from([f"n{i}" for i in range(number)]))) if number else []),
            "rule": draw(st.sampled_from(TriggerRule)).value,
        }
        for number in range(count)
    }
    return nodes, draw(st.sets(st.sampled_from(sorted(nodes))))


def expected(nodes: dict[str, dict[str, Any]], fails: set[str]) -> dict[str, str]:
    """How each node ends under `continue`, worked out from its rule's meaning when all its parents have ended."""
    ends: dict[str, str] = {}
    for key, node in nodes.items():
        parents = [ends[parent] for parent in node["depends_on"]]
        good, skipped = parents.count("succeeded"), parents.count("skipped")
        bad = len(parents) - good - skipped
        runs = {
            "all_success": not bad and not skipped,
            "all_done": True,
            "one_success": good > 0,
            "one_failed": bad > 0,
            "none_failed": not bad,
            "always": True,
        }[node["rule"]]
        if runs or not parents:
            ends[key] = "failed" if key in fails else "succeeded"
        else:
            ends[key] = "upstream_failed" if bad and node["rule"] != "one_failed" else "skipped"
    return ends


@given(graphs())
def test_every_node_ends_as_its_rule_says(drawn: tuple[dict[str, dict[str, Any]], set[str]]) -> None:
    """Whatever the graph and whoever fails: each node that may run does once, and the others say why they did not."""
    nodes, fails = drawn
    world = Topologies()

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        return world.fail(work, 9, retriable=False) if work.task.node_ref.key in fails else Succeeded(b"1")

    world.behave = behave
    topology = world.submit(nodes, on_failure="continue")
    world.pass_time(3 * MINUTE)
    wanted = expected(nodes, fails)
    assert world.stands(topology) == wanted
    assert sorted(world.begun) == sorted(key for key, end in wanted.items() if end in {"succeeded", "failed"})
    assert world.get(topology).is_terminal


@given(graphs(), st.lists(st.integers(1, 9), max_size=4), st.sets(st.integers(0, 6)))
def test_every_node_ends_the_same_whatever_becomes_of_the_frame(
    drawn: tuple[dict[str, dict[str, Any]], set[str]], stops: list[int], lost: set[int]
) -> None:
    """Executions are stopped at any time, and tokens get lost: each node still runs once, and ends as its rule says."""
    nodes, fails = drawn
    world = Topologies()
    world.loses = lambda token: int(token.rpartition(" ")[2]) in lost

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        world.take(2 * SECOND)
        return world.fail(work, 9, retriable=False) if work.task.node_ref.key in fails else Succeeded(b"1")

    world.behave = behave
    topology = world.submit(nodes, on_failure="continue")
    for seconds in stops:
        world.pass_time(seconds * SECOND)
        world.stop_frames()
    world.pass_time(20 * MINUTE)
    wanted = expected(nodes, fails)
    assert world.stands(topology) == wanted
    assert sorted(world.begun) == sorted(key for key, end in wanted.items() if end in {"succeeded", "failed"})
    assert world.get(topology).finished_at is not None
