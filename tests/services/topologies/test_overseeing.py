"""A topology ends as it would have, whatever becomes of the executions and tokens that frame its run."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import Unavailable
from duetime.domain.limits import LEASE_RETURN_MARGIN, LONGEST_CHECK_INTERVAL, SHORTEST_CHECK_INTERVAL
from duetime.domain.tasks.attempt_outcomes import Postponed, Stopped, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Phase
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime.domain.topologies.watchdog_times import deferred_until, reminders
from tests.services.topologies.test_running import DIAMOND, failing
from tests.virtual.topologies import Topologies
from tests.virtual.world import LOOK_AHEAD, OWNER

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work


@pytest.mark.parametrize("after", [0, 1, 3, 6, 8])
def test_a_stopped_execution_is_replaced(after: int) -> None:
    """Whenever it is stopped: each node still runs once, the whole comes to its end, and the attempt is not counted."""
    world = Topologies()
    world.behave = lambda _work: world.take(3 * SECOND)
    topology = world.submit(DIAMOND)
    world.pass_time(after * SECOND + 500)
    assert world.stop_frames() == 1
    world.pass_time(15 * MINUTE)
    assert sorted(world.begun) == sorted(DIAMOND)
    task = world.get(topology)
    assert task.state is State.SUCCEEDED
    assert task.attempt == 1
    assert task.finished_at is not None


def test_an_execution_that_is_stopped_before_it_has_planned_is_replaced() -> None:
    """Nobody else would let its nodes start: another one plans them, and the attempt is not counted."""
    world = Topologies()
    topology = world.submit(DIAMOND)
    world.tasks.creatable = False
    world.pass_time(30 * SECOND)
    assert world.stop_frames() == 1
    world.tasks.creatable = True
    world.pass_time(2 * SHORTEST_CHECK_INTERVAL)
    assert sorted(world.begun) == sorted(DIAMOND)
    assert (world.get(topology).state, world.get(topology).attempt) == (State.SUCCEEDED, 1)


def test_an_execution_that_is_stopped_again_and_again_spends_no_attempt() -> None:
    """It is replaced at every look; nodes go on starting each other meanwhile."""
    world = Topologies()
    world.behave = lambda _work: world.take(10 * MINUTE)
    topology = world.submit({key: {**node, "timeout_seconds": 800} for key, node in DIAMOND.items()})
    stopped = 0
    for _ in range(40):
        world.pass_time(MINUTE)
        stopped += world.stop_frames()
    world.pass_time(30 * MINUTE)
    assert stopped > topology.retry.max_attempts
    assert sorted(world.begun) == sorted(DIAMOND)
    assert world.get(topology).state is State.SUCCEEDED


@pytest.mark.parametrize("policy", ["stop", "continue", "rollback"])
def test_a_failure_ends_the_same_without_an_execution(policy: str) -> None:
    """Every policy comes to the end that it would have come to, although the execution was stopped before."""

    def run(*, stopped: bool) -> tuple[dict[str, str], State]:
        world = Topologies()
        world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})

        def behave(work: Work) -> Ending:
            world.take(5 * SECOND)
            is_left = work.task.node_ref is not None and work.task.node_ref.key == "left"
            failed = is_left and work.phase is Phase.RUN
            return failure("Boom", "no", retriable=False) if failed else Succeeded(b"1")

        world.behave = behave
        topology = world.submit({**DIAMOND, "tidy": {"depends_on": ["right"], "rule": "all_done"}}, on_failure=policy)
        world.pass_time(2 * SECOND)
        if stopped:
            assert world.stop_frames() == 1
        world.pass_time(20 * MINUTE)
        return world.stands(topology), world.get(topology).state

    assert run(stopped=True) == run(stopped=False)


def test_a_lost_token_delays_the_end_by_a_look() -> None:
    """The execution waits in vain for a node that has ended; the whole is ended all the same."""
    world = Topologies()
    world.loses = lambda _token: True
    topology = world.submit(DIAMOND)
    world.pass_time(MINUTE)
    assert set(world.stands(topology).values()) == {"succeeded"}
    assert world.get(topology).state is State.RUNNING
    world.pass_time(2 * SHORTEST_CHECK_INTERVAL)
    assert world.get(topology).state is State.SUCCEEDED


def test_looks_go_on_for_as_long_as_it_runs() -> None:
    """An execution that is stopped after days is found, at the latest an hour and a little later."""
    world = Topologies()
    world.behave = lambda _work: world.take(10 * MINUTE)
    chain = {f"n{i}": {"timeout_seconds": 800, "depends_on": [f"n{i - 1}"] if i else []} for i in range(20)}
    topology = world.submit(chain)
    world.pass_time(3 * HOUR)
    assert world.stop_frames() == 1
    world.pass_time(30 * MINUTE + LONGEST_CHECK_INTERVAL)
    assert world.get(topology).state is State.SUCCEEDED
    assert len(world.begun) == len(chain)


@pytest.mark.parametrize("broke", [True, False])
def test_a_topology_that_is_cancelled_between_attempts_leaves_no_node_behind(*, broke: bool) -> None:
    """When its task ends before its nodes, those that wait are cancelled and those that run are stopped."""
    world = Topologies()

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        if work.task.node_ref.key != "left":
            return Succeeded(b"1")
        world.take(10 * MINUTE)
        return Stopped() if work.stop_request() else Succeeded(b"1")

    world.behave = behave
    nodes = {key: {**node, "timeout_seconds": 800} for key, node in DIAMOND.items()}
    topology = world.submit(nodes)
    world.pass_time(30 * SECOND)
    if broke:
        world.state_machine_steps.break_off(topology.id, 1, "no more")
    else:
        world.watchdog.outcome_writer.postpone(world.get(topology), Postponed(world.time.now() + HOUR, "a test"))
    assert world.get(topology).state is State.POSTPONED
    world.task_updater.cancel(OWNER, topology.id, None)
    world.pass_time(2 * HOUR)
    assert world.get(topology).state is State.CANCELLED
    assert world.get(topology).finished_at is not None
    stands = {"top": "succeeded", "left": "cancelled", "right": "succeeded", "bottom": "stopped"}
    assert world.stands(topology) == stands


def test_a_topology_that_is_cancelled_before_all_its_nodes_exist_comes_to_its_end() -> None:
    """Its plan was cut off: what it had still to make is made once more, so that all of it can be taken back."""
    world = Topologies()
    topology = world.submit(DIAMOND)
    world.tasks.creatable = False
    world.pass_time(30 * SECOND)
    world.watchdog.outcome_writer.postpone(world.get(topology), Postponed(world.time.now() + HOUR, "a test"))
    world.stop_frames()
    world.task_updater.cancel(OWNER, topology.id, None)
    world.tasks.creatable = True
    world.pass_time(10 * MINUTE)
    assert (world.get(topology).state, world.begun) == (State.CANCELLED, [])
    assert world.get(topology).finished_at is not None
    assert set(world.stands(topology).values()) == {"stopped"}


def test_a_topology_that_is_cancelled_while_its_plan_is_cut_off_comes_to_its_end() -> None:
    """Nodes that do not exist yet cannot be taken back: first the frame is replaced, whose plan makes them."""
    world = Topologies()
    topology = world.submit(DIAMOND)
    world.tasks.creatable = False
    world.pass_time(30 * SECOND)
    assert world.stop_frames() == 1
    with suppress(Unavailable):
        world.topology_service.cancel(OWNER, topology.id)
    world.tasks.creatable = True
    world.pass_time(2 * SHORTEST_CHECK_INTERVAL)
    assert (world.get(topology).state, world.begun) == (State.CANCELLED, [])
    assert world.get(topology).finished_at is not None
    assert set(world.stands(topology).values()) == {"stopped"}


def test_a_topology_that_gave_up_is_run_again() -> None:
    """After its task had failed before its nodes ended, a rerun keeps what succeeded and runs the rest."""
    world = Topologies()

    def behave(work: Work) -> Ending:
        assert work.task.node_ref is not None
        return Succeeded(b"1") if work.task.node_ref.key == "top" else world.take(5 * MINUTE)

    world.behave = behave
    topology = world.submit({key: {**node, "timeout_seconds": 800} for key, node in DIAMOND.items()})
    world.pass_time(5 * SECOND)
    for _ in range(100):
        world.state_machine_steps.break_off(topology.id, world.get(topology).fence, "no more")
        world.stop_frames()
        world.pass_time(SECOND)
    assert world.get(topology).state is State.FAILED
    assert world.stands(topology)["bottom"] == "stopped"
    failing(world)
    world.topology_service.rerun(OWNER, topology.id)
    world.pass_time(10 * MINUTE)
    assert world.get(topology).state is State.SUCCEEDED, world.stands(topology)
    assert sorted(world.begun) == sorted(DIAMOND), "what ran to its end before the rerun began is kept"


def test_looks_thin_out_and_never_end_before_the_lease() -> None:
    """The times do not depend on who reckons them, are an hour apart at the most, and end with a look after it."""
    world = Topologies()
    topology = world.submit(DIAMOND)
    world.pass_time(SECOND)
    task = world.get(topology)
    assert task.run_at is not None
    until = deferred_until(task, task.run_at)
    now, times = task.run_at, []
    while now < until:
        look = reminders(task, until, now, LOOK_AHEAD)[-1]
        assert look == reminders(task, until, now + SECOND, LOOK_AHEAD)[-1]
        times.append(now := look)
    assert times[0] == task.run_at + SHORTEST_CHECK_INTERVAL
    assert max(later - earlier for earlier, later in pairwise(times)) <= LONGEST_CHECK_INTERVAL
    assert times[-1] == until + LEASE_RETURN_MARGIN
    assert len(times) < 30 * DAY / LONGEST_CHECK_INTERVAL + 30
