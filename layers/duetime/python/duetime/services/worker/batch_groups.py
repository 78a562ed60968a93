"""Brings attempts of one delivery together for a common call; imported by the first batch handler that runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from duetime.ports.runtime import Job, Runtime

_LOOK: Millis = 10
"""How often a group checks whether it is complete."""


@dataclass(slots=True)
class _Group:
    """A group that others may join until it is closed.

    Attributes:
        closes_at: latest time at which it is closed.
        results: of the call, one for each member; empty before.
    """

    max_size: int
    closes_at: Millis
    call: Callable[[Sequence[Any], Millis], Sequence[Any]]
    members: list[Any] = field(default_factory=list)
    results: Sequence[Any] = ()


class DeliveryGroups:
    """`duetime.ports.targets.BatchGroups` within one delivery of a queue.

    Args:
        more_may_come: whether the delivery has a task that has not called its target yet.
    """

    def __init__(self, runtime: Runtime, more_may_come: Callable[[], bool]) -> None:
        self._runtime = runtime
        self._more_may_come = more_may_come
        self._lock = Lock()
        self._open: dict[Hashable, tuple[_Group, Job]] = {}

    def join(
        self,
        key: Hashable,
        member: Any,  # noqa: ANN401 - see the port
        call: Callable[[Sequence[Any], Millis], Sequence[Any]],
        *,
        max_size: int,
        max_wait: Millis,
    ) -> Any:  # noqa: ANN401 - see the port
        """Join the group of a key, and wait for the result of its call."""
        executor = self._runtime.executor
        with self._lock:
            if key not in self._open:
                group = _Group(max_size, self._runtime.now() + max_wait, call)
                self._open[key] = group, executor.start(partial(self._run, key, group))
            group, job = self._open[key]
            number = len(group.members)
            group.members.append(member)
            if len(group.members) >= max_size:
                del self._open[key]
        while not job.done:
            executor.wait([job], self._runtime.now() + SECOND)
        return group.results[number]

    def _run(self, key: Hashable, group: _Group) -> None:
        self._wait(group)
        with self._lock:
            if key in self._open and self._open[key][0] is group:
                del self._open[key]
        group.results = group.call(group.members, self._runtime.now())

    def _wait(self, group: _Group) -> None:
        """Wait until a group is full, its time is over, or no other attempt can join."""
        while len(group.members) < group.max_size and (now := self._runtime.now()) < group.closes_at:
            size, is_last = len(group.members), not self._more_may_come()
            self._runtime.clock.sleep_until(min(now + _LOOK, group.closes_at))
            # One more look: an attempt calls its target a moment before it joins.
            if is_last and len(group.members) == size:
                return
