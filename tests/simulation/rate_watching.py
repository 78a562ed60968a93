"""Invariants of rates under all faults: starts respect each window's limit and burst, and do not occur in a pause.

A start counts when the target is called, by the caller's clock, because no scheduler can know the difference between
two machines' clocks.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task_options import Rate
from duetime.domain.times import SECOND
from duetime_testing.simulation.machines import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

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
"""The rates of simulated tasks; the last rate is divided into parts."""
_UNDER_WAY = 5 * SECOND
"""How long after a change to a rate a start that was granted before may still happen, by any machine's clock."""
_COUNTED, _PAUSED, _PIN = "a", "pz", ("pl", "ps", "pb")
"""The attributes of an item for one part of a rate."""


class RateWatching:
    """Watches how often attempts start.

    Attributes:
        starts: the start times of attempts with their rates, by owner and key; if rates share a key, the fastest
            applies.
        asked: the rates that tasks with a key may use, even if none has started; the fastest of them applies.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.starts: dict[tuple[str, str], list[tuple[Millis, Rate]]] = {}
        self.asked: dict[str, set[Rate]] = {}
        self._begun: set[tuple[str, int]] = set()
        self._pins: dict[tuple[str, str], list[tuple[Millis, Rate | None]]] = {}
        self._reset_at: dict[tuple[str, str], Millis] = {}

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table; writes of other items are ignored."""
        if new is None or not new[schema.PARTITION_KEY]["S"].startswith(schema.RATE_PREFIX):
            return
        owner, key, part = new[schema.PARTITION_KEY]["S"].removeprefix(schema.RATE_PREFIX).rsplit("#", 2)
        before, after, name = old or {}, new, (owner, key)
        grown = _number(after, _COUNTED) > _number(before, _COUNTED)
        is_paused = bool(_number(before, _PAUSED) and _number(after, _PAUSED))
        self._account.watching.check(not (grown and is_paused), f"the rate {key!r} has started a task while paused")
        if part == "0":
            self._pins.setdefault(name, [(0, None)]).append((self._account.time.now(), _pin(key, after)))
        if _number(before, _COUNTED) and not _number(after, _COUNTED):
            self.starts.pop(name, None)
            self._reset_at[name] = self._account.time.now()

    def _rule(self, name: tuple[str, str], rate: Rate) -> Rate:
        """The fastest rate under which a start may have been granted."""
        since, pins = self._account.time.now() - _UNDER_WAY, self._pins.get(name, [(0, None)])
        first = max(index for index, (at, _) in enumerate(pins) if at <= since)
        return min((pin or rate for _, pin in pins[first:]), key=_interval)

    def began(self, task: Task, phase: str, fence: int, process: Strand) -> None:
        """Check a call of a target."""
        attempt, machine = (task.id.text, fence), process.home
        is_start = phase in _STARTING and attempt not in self._begun and task.fence == fence
        self._begun.add(attempt)
        # An endpoint or a pull worker starts when it gets the request or response, which is later than the time of this
        # call.
        if not isinstance(machine, Machine) or not isinstance(task.target, HandlerTarget) or task.pull_queue:
            return
        if not is_start or task.rate is None:
            return
        now, key = machine.clock.now(), (task.owner, task.rate.key)
        if self._account.time.now() - self._reset_at.get(key, -_UNDER_WAY) < _UNDER_WAY:
            return
        starts = self.starts.setdefault(key, [])
        insort(starts, (now, self._rule(key, task.rate)), key=lambda each: each[0])
        asked = self.asked.get(task.rate.key, set())
        for rate in {rate for _, rate in starts}:
            self._check(starts, rate, now, asked)

    def _check(self, starts: list[tuple[Millis, Rate]], rate: Rate, now: Millis, asked: set[Rate]) -> None:
        """Check all windows of a rate that include this time and in which no faster rate with the same key was used."""
        window, times = rate.per_seconds * SECOND, [at for at, _ in starts]
        for first in range(bisect_left(times, now - window + 1), bisect_left(times, now) + 1):
            inside = [used for _, used in starts[first : bisect_left(times, times[first] + window)]]
            # Tasks with a lower limit may start as often as tasks with the fastest rate.
            used = [*inside, *asked]
            if min(used, key=_interval) != rate:
                continue
            most = max(each.limit for each in used) + max(each.burst for each in used)
            what = (
                f"{len(inside)} attempts of the rate {rate.key!r} started within {rate.per_seconds} s, "
                f"of which {most} may"
            )
            self._account.watching.check(len(inside) <= most, what)


def _number(item: Mapping[str, Any], name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _pin(key: str, item: Mapping[str, Any]) -> Rate | None:
    limit, per_seconds, burst = (_number(item, name) for name in _PIN)
    return Rate(key, limit, per_seconds, burst) if limit else None


def _interval(rate: Rate) -> float:
    return rate.per_seconds / rate.limit
