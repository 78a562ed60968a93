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
    from duetime.domain.tasks.task_options import Rate
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
        starts: when attempts started and by which rate, by owner and key: of several rates of a key the fastest holds.
        asked: the rates that tasks of a key may ask by, whether or not one has started: the fastest of them holds.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.starts: dict[tuple[str, str], list[tuple[Millis, Rate]]] = {}
        self.asked: dict[str, set[Rate]] = {}
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
        now, key = machine.clock.now(), (task.owner, task.rate.key)
        starts = self.starts.setdefault(key, [])
        insort(starts, (now, task.rate), key=lambda each: each[0])
        asked = self.asked.get(task.rate.key, set())
        for rate in {rate for _, rate in starts}:
            self._check(starts, rate, now, asked)

    def _check(self, starts: list[tuple[Millis, Rate]], rate: Rate, now: Millis, asked: set[Rate]) -> None:
        """Look at each window of a rate with this moment in it in which no faster one of the same key was used."""
        window, times = rate.per_seconds * SECOND, [at for at, _ in starts]
        for first in range(bisect_left(times, now - window + 1), bisect_left(times, now) + 1):
            inside = [used for _, used in starts[first : bisect_left(times, times[first] + window)]]
            if min([*inside, *asked], key=_interval) != rate:
                continue
            most = max(used.limit for used in inside) + max(used.burst for used in inside)
            what = (
                f"{len(inside)} attempts of the rate {rate.key!r} started within {rate.per_seconds} s, "
                f"of which {most} may"
            )
            self._account.watching.check(len(inside) <= most, what)


def _interval(rate: Rate) -> float:
    return rate.per_seconds / rate.limit
