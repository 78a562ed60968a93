"""A takeover by another Region changes records, cursors, and the record of the active Region."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.dispatch.cursors import Cursors
from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.regions import ActiveRegion, cursors_behind, next_region, taken_over
from duetime.domain.restore import is_left_over
from duetime.domain.tasks.dependencies import Dependencies, Dependency
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import NodeRef
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, minute_of
from duetime.domain.topologies.run_state import Begun, Run, RunState
from tests.domain.factories import NOW, task

REGION = ActiveRegion("b", 1, NOW, is_open=False)
OPEN = replace(REGION, is_open=True)


@pytest.mark.parametrize(
    ("known", "least", "expected"),
    [
        ([], 0, ActiveRegion("b", 1, NOW, is_open=False)),
        ([], 4, ActiveRegion("b", 5, NOW, is_open=False)),
        ([ActiveRegion("a", 2, 1, is_open=True)], 0, ActiveRegion("b", 3, NOW, is_open=False)),
        ([ActiveRegion("b", 2, 1, is_open=False)], 0, ActiveRegion("b", 2, 1, is_open=False)),
        (
            [ActiveRegion("b", 2, 1, is_open=False), ActiveRegion("b", 2, 1, is_open=True)],
            0,
            ActiveRegion("b", 2, 1, is_open=True),
        ),
        (
            [ActiveRegion("b", 2, 1, is_open=True), ActiveRegion("a", 3, 1, is_open=False)],
            0,
            ActiveRegion("b", 4, NOW, is_open=False),
        ),
    ],
)
def test_a_takeover_has_an_epoch_above_all_others_and_keeps_it(
    known: list[ActiveRegion], least: int, expected: ActiveRegion
) -> None:
    """A takeover has a higher epoch than all earlier takeovers, and a repeated takeover keeps its epoch."""
    assert next_region("b", known, least, NOW) == expected


def test_a_takeover_cuts_off_attempts_started_in_the_other_region() -> None:
    """A takeover cuts off a running attempt, unless the attempt was started in the new Region and has a lease."""
    running = task(state=State.RUNNING, fence=1, attempt=1, lease_expires_at=NOW + 20 * SECOND)
    done = taken_over(running, REGION, NOW, keeps_leases=False)
    assert done is not None
    assert (done.task.state, done.task.fence, done.was_cut_off) == (State.WAITING, FENCES_PER_EPOCH + 1, True)
    assert done.timer is not None
    assert done.timer.at == NOW
    assert taken_over(running, OPEN, NOW, keeps_leases=True) is None
    expired = replace(running, lease_expires_at=NOW)
    assert taken_over(expired, OPEN, NOW, keeps_leases=True) is not None


def test_a_topology_continues_whatever_its_lease() -> None:
    """A running topology waits again after a takeover and is not cut off, even if its lease lasts for weeks."""
    running = task(state=State.RUNNING, fence=1, attempt=1, lease_expires_at=NOW + 30 * DAY, target=TopologyTarget())
    assert running.is_topology
    done = taken_over(running, OPEN, NOW, keeps_leases=True)
    assert done is not None
    assert (done.task.state, done.was_cut_off) == (State.WAITING, False)


def test_an_open_task_gets_a_new_timer_after_a_takeover() -> None:
    """An open task, unless paused or a blocked node, gets a new timer, because its old timer may not be replicated."""
    keyed = task(state=State.SCHEDULED, next_at=NOW + HOUR, fair_key="customer-1")
    later = taken_over(keyed, REGION, NOW, keeps_leases=False)
    assert later is not None
    assert later.timer is not None
    assert (later.timer.at, later.timer.fair_share) == (NOW + HOUR, keyed.fair_share)
    dependent = task(state=State.BLOCKED, next_at=NOW - HOUR, after=Dependencies((Dependency(keyed.id),)))
    blocked = taken_over(dependent, REGION, NOW, keeps_leases=False)
    assert blocked is not None
    assert blocked.timer is not None
    assert blocked.timer.at == NOW
    for state in (State.PAUSED, State.BLOCKED):
        held = taken_over(task(state=state), REGION, NOW, keeps_leases=False)
        assert held is not None
        assert (held.timer, held.task.state) == (None, state)


def test_a_takeover_repeats_the_follow_ups_of_a_recently_ended_task() -> None:
    """If a task has just ended, its follow-ups are repeated, because they may not be replicated."""
    ended = task(state=State.SUCCEEDED, fence=1, finished_at=NOW - SECOND)
    done = taken_over(ended, REGION, NOW, keeps_leases=False)
    assert done is not None
    assert done.timer is not None
    assert (done.task.state, done.task.finished_at, done.timer.at) == (State.SUCCEEDED, None, NOW)
    assert taken_over(done.task, REGION, NOW, keeps_leases=False) is None


def test_cursors_go_back_by_a_quarter_of_an_hour() -> None:
    """Cursors go back by a quarter of an hour, except cursors that were already farther behind."""
    ahead = Cursors.at([minute_of(NOW + 3 * MINUTE), minute_of(NOW), minute_of(NOW), minute_of(NOW)])
    found = cursors_behind(ahead, NOW)
    assert found.floors[0] == minute_of(NOW - 15 * MINUTE) - 1
    assert found.floors[1] == minute_of(NOW - 17 * MINUTE) - 1
    behind = Cursors.at([1, 1, 1, 1])
    assert cursors_behind(behind, NOW).floors == (1, 1, 1, 1)


def test_a_blocked_node_of_an_ended_topology_is_left_over() -> None:
    """A blocked node of an ended topology is left over if the node's own end was not replicated."""
    topology = task(state=State.SUCCEEDED, target=TopologyTarget(), finished_at=NOW)
    run = RunState(topology.id, (Begun(NOW, 2),), 1, opened=True, ended=True)
    ref = NodeRef(topology.id, 1, "a")
    node = task(id=run.task_id("a"), state=State.BLOCKED, node_ref=ref)
    assert is_left_over(node, topology, run)
    assert not is_left_over(replace(node, state=State.SCHEDULED), topology, run)
    assert not is_left_over(node, replace(topology, state=State.RUNNING, finished_at=None), run)
    assert not is_left_over(replace(node, state=State.CANCELLED), None, None)


def test_a_node_of_an_earlier_run_is_not_left_over() -> None:
    """A node of an unknown run is left over, but not a node of an earlier run, as its user may have retried it."""
    topology = task(state=State.RUNNING, target=TopologyTarget())
    run = RunState(topology.id, (Begun(NOW, 2), Begun(NOW + HOUR, 2)), 1)
    first = Run(topology.id, 1, NOW, 2).task_id("a")
    node = task(id=first, state=State.WAITING, node_ref=NodeRef(topology.id, 1, "a"))
    assert not is_left_over(node, topology, run)
    later = Run(topology.id, 3, NOW + 2 * HOUR, 2).task_id("a")
    assert is_left_over(replace(node, id=later, node_ref=NodeRef(topology.id, 3, "a")), topology, run)
