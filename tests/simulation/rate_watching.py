"""What must hold of rates, whatever fails: no window has more starts than its limit and burst.

A start is counted where the target is called, at the time of the clock of whoever calls it: what the clocks of two
machines differ by, no scheduler can know.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.times import SECOND
from duetime_testing.simulation.machines import Machine

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_testing.simulation.virtual_time import Strand
    from tests.simulation.fault_simulation import FaultSimulation

_STARTING = frozenset({"prepare", "run", "rollback"})
RATES = (
    {"key": "crm", "limit": 1, "per_seconds": 20, "burst": 1},
    {"key": "mail", "limit": 2, "per_seconds": 60},
    {"key": "fast", "limit": 400, "per_seconds": 1, "burst": 20},
)
"""The rates of simulated tasks; the last one has parts."""


class RateWatching:
    """Watches how often attempts start.

    Attributes:
        starts: when attempts started, by owner and key.
        largest: how many may start within a window, by owner and key: of several limits of a key the largest holds.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.starts: dict[tuple[str, str], list[Millis]] = {}
        self.largest: dict[tuple[str, str], int] = {}
        self._begun: set[tuple[str, int]] = set()

    def began(self, task: Task, phase: str, fence: int, process: Strand) -> None:
        """A target is called."""
        attempt, machine = (task.id.text, fence), process.home
        is_start = phase in _STARTING and attempt not in self._begun and task.fence == fence
        self._begun.add(attempt)
        # An endpoint learns of it, and a pull worker, once the answer to a request has come.
        if not isinstance(machine, Machine) or not isinstance(task.target, HandlerTarget) or task.pull_queue:
            return
        if not is_start or task.rate is None:
            return
        rate, now = task.rate, machine.clock.now()
        starts = self.starts.setdefault((task.owner, rate.key), [])
        insort(starts, now)
        window = rate.per_seconds * SECOND
        most = max(self.largest.get((task.owner, rate.key), 0), rate.limit + rate.burst)
        self.largest[task.owner, rate.key] = most
        for first in range(bisect_left(starts, now - window + 1), bisect_left(starts, now) + 1):
            number = bisect_left(starts, starts[first] + window) - first
            what = (
                f"{number} attempts of the rate {rate.key!r} started within {rate.per_seconds} s, of which {most} may"
            )
            self._account.watching.check(number <= most, what)
