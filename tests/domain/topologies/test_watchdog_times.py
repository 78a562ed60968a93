"""A running topology's task is checked at planned times."""

from __future__ import annotations

from itertools import pairwise

from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, LONGEST_CHECK_INTERVAL, SHORTEST_CHECK_INTERVAL
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import DAY, SECOND
from duetime.domain.topologies.watchdog_times import deferred_until, reminders
from tests.domain.factories import NOW, task

LOOK_AHEAD = 180 * SECOND


def test_the_last_check_comes_after_the_end_of_the_lease() -> None:
    """Checks are at fixed times, at most an hour apart, and the last check comes after the lease."""
    topology = task(state=State.RUNNING, target=TopologyTarget(), run_at=NOW, notify_within_seconds=30 * 86_400)
    until = deferred_until(topology, NOW)
    now, times = NOW, []
    while now < until:
        check = reminders(topology, until, now, LOOK_AHEAD)[-1]
        assert check == reminders(topology, until, now + SECOND, LOOK_AHEAD)[-1]
        times.append(now := check)
    assert times[0] == NOW + SHORTEST_CHECK_INTERVAL
    assert max(later - earlier for earlier, later in pairwise(times)) <= LONGEST_CHECK_INTERVAL
    assert times[-1] == until + LEASE_RETURN_MARGIN
    assert len(times) < 30 * DAY / LONGEST_CHECK_INTERVAL + 30
