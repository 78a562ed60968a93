"""Pull workers in a virtual world: they lease, work, renew their leases, and die like others."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from duetime.adapters.memory.long_polls import MemoryLongPollStore
from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.limits import HEARTBEATS_PER_LEASE
from duetime.domain.tasks.attempt_results import Deferred, NotSent, Postponed
from duetime.domain.tasks.pull_leases import ANYONE, LeaseRequest, Pullers
from duetime.domain.tasks.targets import Phase
from duetime.domain.times import SECOND
from duetime.ports.targets import Work
from duetime.services.long_poll_limit import LongPolls
from duetime.services.pull.lease import LeaseService
from duetime.services.pull.locks import PullLocks
from duetime.services.pull.report import RELEASED, LeaseReports
from tests.virtual.world import LEASE, OWNER, PULLED, Nothing, World

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import StopRequest, Task
    from duetime.domain.times import Millis
    from duetime.services.pull.lease import Leased
    from tests.simulation.virtual_time import Strand


@dataclass
class _Shift:
    """What a worker's thread and its heartbeats share."""

    ends_at: Millis
    stop_request: StopRequest | None = None
    ended: bool = False


class PullingWorld(World):
    """A world in which tasks of the type `PULLED` are leased by workers of its own.

    Attributes:
        pullers: the processes of the workers that were started.
    """

    def _wire(self) -> None:
        super()._wire()
        self.pullers: list[Strand] = []
        pull_locks = PullLocks(self.lock_manager, self.overlap_control)
        allowed = Pullers({PULLED: frozenset({ANYONE})})
        stores, runtime, outcome_writer = self.stores, self.runtime, self.task_control.outcome_writer
        self.lease_service = LeaseService(
            stores=stores,
            queues=self.queues,
            outcome_writer=outcome_writer,
            pull_locks=pull_locks,
            pullers=allowed,
            runtime=runtime,
            long_polls=LongPolls(MemoryLongPollStore(), runtime, 0),
            input_reader=Nothing(),
        )
        self.lease_reports = LeaseReports(stores, self.queues, outcome_writer, pull_locks, allowed, runtime)

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
                leases = self.lease_service.lease(OWNER, self.wanted(name))
            except Unavailable:
                self.take(SECOND)
                continue
            for lease in leases:
                self._do(lease)

    def _do(self, lease: Leased) -> None:
        task = lease.task
        delivery_state = _Shift(task.lease_ends_at or 0)
        self.time.start(partial(self._beat, lease, delivery_state))
        self.time.start(partial(self._watch, delivery_state))
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
                stop_request=lambda: delivery_state.stop_request,
            )
        )
        delivery_state.ended = True
        assert not isinstance(ending, NotSent), "a pull worker's work is not sent anywhere"
        self._tell(lease, Postponed(self.time.now(), RELEASED) if isinstance(ending, Deferred) else ending)

    def _beat(self, lease: Leased, delivery_state: _Shift) -> None:
        """Renew the lease; a worker that loses it ends itself, as nothing else stops its work."""
        while not delivery_state.ended:
            self.take(LEASE // HEARTBEATS_PER_LEASE)
            if delivery_state.ended:
                return
            try:
                renewed = self.lease_reports.heartbeat(OWNER, lease.key, None)
            except RequestError:
                if not delivery_state.ended:
                    self.time.kill(self.time.process())
                return
            except Unavailable:
                continue
            else:
                delivery_state.ends_at, delivery_state.stop_request = renewed.lease_ends_at or 0, renewed.stop_request

    def _watch(self, delivery_state: _Shift) -> None:
        """End the worker when its lease does, however long its requests hang."""
        while not delivery_state.ended and self.time.now() < delivery_state.ends_at:
            self.time.sleep_until(delivery_state.ends_at)
        if not delivery_state.ended:
            self.time.kill(self.time.process())

    def _tell(self, lease: Leased, ending: Ending) -> Task | None:
        until = self.time.now() + LEASE
        while self.time.now() < until:
            with suppress(Unavailable):
                try:
                    return self.lease_reports.finish(OWNER, lease.key, ending)
                except RequestError:
                    return None
            self.take(SECOND)
        return None
