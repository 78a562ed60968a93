"""The lease under which an attempt works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write, WriteResult
from duetime.domain.operating_parameters import HEARTBEATS_PER_LEASE
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.states import LEGAL, Move
from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.worker.attempt_locks import AttemptLocks
    from duetime.services.worker.delivery_state import DeliveryState


@dataclass(frozen=True, slots=True)
class AttemptLease:
    """Keeps the writes of an attempt to the time of its lease, and to its fence.

    Attributes:
        duration: length of a lease, in milliseconds.
    """

    tasks: TaskStore
    locks: AttemptLocks
    runtime: Runtime
    duration: Millis

    def begin(self, delivery_state: DeliveryState, task: Task) -> None:
        """Remember the lease that was claimed with the task."""
        if delivery_state.task is None:
            # What follows the outcome goes on under the same lease, which is renewed when it was to be.
            delivery_state.renew_at = self.runtime.now() + self.duration // HEARTBEATS_PER_LEASE
            delivery_state.leased_until = task.lease_expires_at or 0
        delivery_state.started_at = self.runtime.now() if task.is_terminal else None
        delivery_state.ended = False
        delivery_state.task = task

    def confirm(self, delivery_state: DeliveryState, task: Task) -> ConditionFailed | Postponed | None:
        """Why the target must not be called: the lease ended while this process stood still, or nobody renewed it.

        A lease that is over is requested once more, by the clock of this moment: if nobody has taken the task over,
        the attempt goes on under it.
        """
        now = self.runtime.now()
        if now < delivery_state.leased_until:
            return None
        until = now + self.duration
        guard = Guard(fence=task.fence, leased_until_before=until)
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), guard, {"lease_expires_at": until})
        result = self.tasks.apply(write)
        if isinstance(result, ConditionFailed):
            return result
        if not self.locks.renew(delivery_state, task, until):
            return Postponed(now + SECOND, "a lock that it lost")
        delivery_state.leased_until = until
        return None

    def step(self, task: Task, move: Move) -> WriteResult:
        """Move on to the next phase, if the lease is still this attempt's."""
        result = self.tasks.apply(Write(task.id, move, self.runtime.nonce(), Guard(fence=task.fence)))
        stored = result.task
        if stored is not None and stored.fence == task.fence and stored.state is LEGAL[move].to:
            # Nobody else moves it on under this fence: it was sent twice, and the nonce is a later write's by now.
            return Applied(stored)
        return result

    def give_up(self, task: Task) -> WriteResult:
        """End the lease while the task goes on: somebody else does what follows."""
        write = Write(
            task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence), {"lease_expires_at": None}
        )
        return self.tasks.apply(write)
