"""What users ask of a whole graph, and what becomes of it when nodes fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.tasks.attempt_outcomes import Succeeded, failure
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Phase
from duetime.domain.times import MINUTE, SECOND
from tests.services.topologies.test_running import DIAMOND, failing
from tests.virtual.topologies import Topologies
from tests.virtual.world import OWNER

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work


def test_rules_decide_under_continue() -> None:
    """A failure cancels what needs its success, and lets run what steps in for it."""
    world = Topologies()
    failing(world, "left")
    nodes = {**DIAMOND, "helper": {"depends_on": ["left"], "rule": "one_failed"}}
    topology = world.submit(nodes, on_failure="continue")
    world.pass_time(MINUTE)
    stands = world.stands(topology)
    assert stands["bottom"] == "upstream_failed"
    assert stands["helper"] == "succeeded"
    assert world.get(topology).state is State.FAILED


def test_a_rollback_undoes_children_before_their_parents() -> None:
    """Under `rollback` what has run is rolled back in reverse order of dependency, and the topology fails."""
    world = Topologies()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    undone: list[str] = []

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        if work.phase is Phase.ROLLBACK:
            undone.append(work.task.node_ref.key)
        elif work.task.node_ref.key == "bottom":
            return failure("Boom", "no", retriable=False)
        return world.take(SECOND)

    world.behave = behave
    topology = world.submit(DIAMOND, on_failure="rollback")
    world.pass_time(2 * MINUTE)
    assert (undone[0], sorted(undone[1:3]), undone[3:]) == ("bottom", ["left", "right"], ["top"])
    assert set(world.stands(topology).values()) == {"rolled_back"}
    task = world.get(topology)
    assert task.state is State.FAILED
    assert task.error is not None
    # What was undone because of it has not failed.
    assert (task.error.kind, task.error.message) == ("RolledBack", "rolled back after the node bottom failed")


def test_a_rollback_that_fails_goes_no_further_up() -> None:
    """What was built on by a node that cannot be undone stays as it is."""
    world = Topologies()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        stuck = work.phase is Phase.ROLLBACK and work.task.node_ref.key == "left"
        if stuck or (work.phase is Phase.RUN and work.task.node_ref.key == "bottom"):
            return failure("Boom", "no", retriable=False)
        return Succeeded(b"1")

    world.behave = behave
    topology = world.submit(DIAMOND, on_failure="rollback")
    world.pass_time(2 * MINUTE)
    assert world.stands(topology)["top"] == "succeeded"
    task = world.get(topology)
    assert task.state is State.FAILED
    assert task.error is not None
    assert task.error.message == "the node bottom failed; the node left could not be rolled back"


def test_a_rollback_ends_where_a_node_offers_none() -> None:
    """Also if the node itself was to be rolled back on failure: it is tried once, and the topology fails."""
    world = Topologies()
    failing(world, "bottom")
    topology = world.submit({**DIAMOND, "bottom": {**DIAMOND["bottom"], "rollback": True}}, on_failure="rollback")
    world.pass_time(2 * MINUTE)
    task, run_state = world.get(topology), world.view(topology).run_state
    assert task.state is State.FAILED
    assert task.error is not None
    assert task.error.message == "the node bottom failed; the node bottom could not be rolled back"
    assert run_state is not None
    node = world.tasks.read(run_state.task_id("bottom"))
    assert node is not None
    assert [line.error.kind for line in node.attempt_history[:1] if line.error] == ["Boom"]


@pytest.mark.parametrize(
    ("cancels", "said"), [(True, "the node left was cancelled"), (False, "it was not done within 30 s")]
)
def test_a_rollback_says_what_it_followed(*, cancels: bool, said: str) -> None:
    """The end of the whole's time, or a cancel of a node: no node is said to have failed that has not."""
    world = Topologies()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    world.behave = lambda _work: world.take(20 * SECOND)
    topology = world.submit(DIAMOND, on_failure="rollback", deadline_seconds=3600 if cancels else 30)
    world.pass_time(5 * SECOND)
    run_state = world.view(topology).run_state
    assert run_state is not None
    if cancels:
        world.task_updater.cancel(OWNER, run_state.task_id("left"), None)
    world.pass_time(5 * MINUTE)
    task = world.get(topology)
    assert task.error is not None
    assert (task.error.kind, task.error.message) == ("RolledBack", f"rolled back after {said}")


def test_a_rerun_keeps_what_succeeded() -> None:
    """Only what failed and what waited for it runs again, each as a new task; then the topology succeeds."""
    world = Topologies()
    failing(world, "left")
    topology = world.submit(DIAMOND)
    world.pass_time(MINUTE)
    assert world.get(topology).state is State.FAILED
    before = world.view(topology)
    assert before.run_state is not None
    kept = before.run_state.task_id("top")
    failing(world)
    begun = len(world.begun)
    world.topology_service.rerun(OWNER, topology.id)
    world.pass_time(MINUTE)
    assert "top" not in world.begun[begun:]
    assert world.begun[begun:][-1] == "bottom"
    task, after = world.get(topology), world.view(topology)
    assert task.state is State.SUCCEEDED
    assert after.run_state is not None
    assert after.run_state.number == 2
    assert after.run_state.task_id("top") == kept


def test_a_cancel_stops_what_has_not_begun() -> None:
    """What runs is asked to stop, what waits is cancelled, and the topology is cancelled."""
    world = Topologies()

    def behave(work: Work) -> Ending:
        return world.take(20 * SECOND) if work.phase is Phase.RUN else Succeeded(b"1")

    world.behave = behave
    topology = world.submit(DIAMOND)
    world.pass_time(10 * SECOND)
    world.topology_service.cancel(OWNER, topology.id)
    world.pass_time(2 * MINUTE)
    assert world.begun == ["top"]
    assert world.get(topology).state is State.CANCELLED


def test_a_pause_holds_what_has_not_begun_until_it_is_resumed() -> None:
    """While it is paused nothing starts; resumed, it goes on where it was."""
    world = Topologies()
    world.behave = lambda _work: world.take(5 * SECOND)
    topology = world.submit(DIAMOND)
    world.pass_time(3 * SECOND)
    world.topology_service.pause(OWNER, topology.id)
    world.pass_time(10 * MINUTE)
    assert world.begun == ["top"]
    world.topology_service.resume(OWNER, topology.id)
    world.pass_time(MINUTE)
    assert sorted(world.begun) == ["bottom", "left", "right", "top"]
    assert world.get(topology).state is State.SUCCEEDED


def test_a_node_that_its_user_cancels_is_told_to_its_children() -> None:
    """A node that is taken back counts as failed at its children, although no worker ran it."""
    world = Topologies()
    world.behave = lambda _work: world.take(20 * SECOND)
    topology = world.submit(DIAMOND, on_failure="continue")
    world.pass_time(5 * SECOND)
    view = world.view(topology)
    assert view.run_state is not None
    world.task_updater.cancel(OWNER, view.run_state.task_id("left"), None)
    world.pass_time(5 * MINUTE)
    assert world.stands(topology) == {
        "top": "succeeded",
        "left": "cancelled",
        "right": "succeeded",
        "bottom": "upstream_failed",
    }


def test_a_blocked_node_that_its_user_has_put_off_waits_for_that_time() -> None:
    """A change of its due time while its parents run is kept when they let it start."""
    world = Topologies()
    world.behave = lambda _work: world.take(20 * SECOND)
    topology = world.submit(DIAMOND)
    world.pass_time(5 * SECOND)
    run_state = world.view(topology).run_state
    assert run_state is not None
    world.task_updater.change(
        OWNER, run_state.task_id("left"), TaskChange({}, due_at=world.time.now() + 10 * MINUTE), None
    )
    world.pass_time(9 * MINUTE)
    assert world.begun == ["top", "right"]
    world.pass_time(3 * MINUTE)
    assert world.begun == ["top", "right", "left", "bottom"]
    assert world.get(topology).state is State.SUCCEEDED


def test_the_time_of_the_whole_ends() -> None:
    """Once the deadline has passed nothing more starts, and the topology fails with that reason."""
    world = Topologies()
    world.behave = lambda _work: world.take(40 * SECOND)
    topology = world.submit(DIAMOND, deadline_seconds=10)
    world.pass_time(5 * MINUTE)
    assert world.begun == ["top"]
    task = world.get(topology)
    assert task.state is State.FAILED
    assert task.error is not None
    assert task.error.kind == "DeadlineExceeded"


def test_a_skip_goes_down_a_long_chain() -> None:
    """Hundreds of nodes are skipped one after the other, each by a worker of its own, and the topology still ends."""
    world = Topologies()
    failing(world, "n0")
    nodes = {"n0": {}, **{f"n{i}": {"depends_on": [f"n{i - 1}"]} for i in range(1, 300)}}
    topology = world.submit(nodes, on_failure="continue")
    world.pass_time(5 * MINUTE)
    assert set(world.stands(topology).values()) == {"failed", "upstream_failed"}
    assert world.get(topology).state is State.FAILED


def test_a_failure_stops_other_branches_at_once() -> None:
    """A node that runs goes on to its end, but its child does not start any more."""
    world = Topologies()

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        if work.task.node_ref.key == "bad":
            world.take(2 * SECOND)
            return failure("Boom", "no", retriable=False)
        return world.take(20 * SECOND)

    world.behave = behave
    topology = world.submit({"bad": {}, "slow": {}, "after": {"depends_on": ["slow"]}})
    world.pass_time(2 * MINUTE)
    assert world.stands(topology) == {"bad": "failed", "slow": "succeeded", "after": "stopped"}
