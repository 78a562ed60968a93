"""Pull workers in a virtual world: they lease, work, renew their leases, and die like others."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from duetime.adapters.memory.long_polls import MemoryLongPollStore
from duetime.domain.attempts import Deferred, HeldBack, NotSent
from duetime.domain.errors import RequestRefused, Unavailable
from duetime.domain.leases import ANYONE, LeaseRequest, Pullers
from duetime.domain.limits import HEARTBEATS_PER_LEASE
from duetime.domain.task import Phase
from duetime.domain.times import SECOND
from duetime.ports.targets import Work
from duetime.services.holding import Holding
from duetime.services.leasing import Leasing
from duetime.services.long_polls import LongPolls
from duetime.services.reporting import RELEASED, Reporting
from tests.virtual.world import LEASE, OWNER, PULLED, World

if TYPE_CHECKING:
    from duetime.domain.attempts import Ending
    from duetime.domain.task import Asked, Task
    from duetime.domain.times import Millis
    from duetime.services.leasing import Leased
    from tests.virtual.time import Strand


@dataclass
class _Shift:
    """What a worker's thread and its heartbeats share."""

    ends_at: Millis
    asked: Asked | None = None
    ended: bool = False


class PullingWorld(World):
    """A world in which tasks of the type `PULLED` are leased by workers of its own.

    Attributes:
        pullers: the processes of the workers that were started.
    """

    def _wire(self) -> None:
        super()._wire()
        self.pullers: list[Strand] = []
        holding = Holding(self.locking, self.recurring.heed)
        allowed = Pullers({PULLED: frozenset({ANYONE})})
        time, chance, facts = self.time, self.chance, self.facts
        finishing = self.steering.finishing
        long_polls = LongPolls(MemoryLongPollStore(), time, chance, facts, 0)
        self.leasing = Leasing(
            self.tasks, self.contents, self.queues, finishing, holding, allowed, time, chance, time, facts, long_polls
        )
        self.reporting = Reporting(
            self.tasks, self.contents, self.queues, finishing, holding, allowed, time, chance, facts
        )

    def start_puller(self, name: str = "puller") -> Strand:
        """Start a worker that does one task after the other."""
        self.pullers.append(self.time.start_process(partial(self._pull_for_ever, name)))
        return self.pullers[-1]

    def keep_pullers(self, count: int) -> None:
        """Start so many workers, and another for each that dies."""

        def supervise() -> None:
            while True:
                self.pullers = [strand for strand in self.pullers if not strand.done]
                while len(self.pullers) < count:
                    self.start_puller()
                self.take(5 * SECOND)

        self.time.start_process(supervise)

    def kill_pullers(self) -> None:
        """Kill every worker in mid-work."""
        pullers, self.pullers = self.pullers, []
        for puller in pullers:
            self.time.kill(puller)

    def wanted(self, name: str = "puller", most: int = 1, wait: Millis = 5 * SECOND) -> LeaseRequest:
        """What a worker asks for."""
        return LeaseRequest((PULLED,), most, wait, LEASE, name)

    def _pull_for_ever(self, name: str) -> None:
        while True:
            try:
                leases = self.leasing.lease(OWNER, self.wanted(name))
            except Unavailable:
                self.take(SECOND)
                continue
            for lease in leases:
                self._do(lease)

    def _do(self, lease: Leased) -> None:
        task = lease.task
        shift = _Shift(task.lease_ends_at or 0)
        self.time.start(partial(self._beat, lease, shift))
        self.time.start(partial(self._watch, shift))
        deadline = self.time.now() + task.timeout_seconds * SECOND
        ending = self.run(
            Work(
                phase=Phase.RUN,
                task=task,
                payload=task.payload.data or b"",
                checkpoint=lease.checkpoint,
                deadline=deadline,
                seconds=task.timeout_seconds,
                report=lambda _progress: None,
                asked=lambda: shift.asked,
            )
        )
        shift.ended = True
        assert not isinstance(ending, NotSent), "a pull worker's work is not sent anywhere"
        self._tell(lease, HeldBack(self.time.now(), RELEASED) if isinstance(ending, Deferred) else ending)

    def _beat(self, lease: Leased, shift: _Shift) -> None:
        """Renew the lease; a worker that loses it ends itself, as nothing else stops its work."""
        while not shift.ended:
            self.take(LEASE // HEARTBEATS_PER_LEASE)
            if shift.ended:
                return
            try:
                renewed = self.reporting.heartbeat(OWNER, lease.key, None)
            except RequestRefused:
                if not shift.ended:
                    self.time.kill(self.time.process())
                return
            except Unavailable:
                continue
            else:
                shift.ends_at, shift.asked = renewed.lease_ends_at or 0, renewed.asked

    def _watch(self, shift: _Shift) -> None:
        """End the worker when its lease does, however long its requests hang."""
        while not shift.ended and self.time.now() < shift.ends_at:
            self.time.sleep_until(shift.ends_at)
        if not shift.ended:
            self.time.kill(self.time.process())

    def _tell(self, lease: Leased, ending: Ending) -> Task | None:
        until = self.time.now() + LEASE
        while self.time.now() < until:
            with suppress(Unavailable):
                try:
                    return self.reporting.finish(OWNER, lease.key, ending)
                except RequestRefused:
                    return None
            self.take(SECOND)
        return None
