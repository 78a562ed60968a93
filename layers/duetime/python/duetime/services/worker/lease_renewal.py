"""Renewing the lease of a running attempt, and its locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import HEARTBEATS_PER_LEASE
from duetime.domain.tasks.attempt_run import late_start
from duetime.domain.tasks.states import Move
from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.worker.attempt_locks import AttemptLocks
    from duetime.services.worker.delivery_state import DeliveryState

_RETRY_AFTER: Millis = 2 * SECOND
"""A renewal that the store did not answer is tried again after this."""


@dataclass(frozen=True, slots=True)
class LeaseRenewal:
    """Renews leases.

    Attributes:
        lease: length of a lease, in milliseconds.
    """

    tasks: TaskStore
    locks: AttemptLocks
    runtime: Runtime
    lease: Millis

    def finds_it_lost(self, task: Task, delivery_state: DeliveryState) -> bool:
        """Renew the lease of one attempt and its locks, with the progress that was reported since.

        Returns:
            Whether the attempt must end: its lease or a lock is somebody else's. A store that does not answer says
            neither; it is asked again soon.
        """
        progress, delivery_state.progress = delivery_state.progress, None
        delivery_state.renew_at = self.runtime.now() + self.lease // HEARTBEATS_PER_LEASE
        until = self.runtime.now() + self.lease
        sets: TaskChanges = {"lease_expires_at": until}
        if progress is not None:
            sets["progress"] = progress
        if delivery_state.started_at is not None:
            sets |= late_start(task, task.started_at)
        try:
            # One that comes late must not take back what a later one has given.
            guard = Guard(fence=task.fence, leased_until_before=until)
            result = self.tasks.apply(Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), guard, sets))
            has_locks = self.locks.renew(delivery_state, task, until)
        except Unavailable as error:
            self.runtime.telemetry.note(
                "a lease was not renewed", error=str(error), delivery=delivery_state.delivery.id
            )
            delivery_state.renew_at = self.runtime.now() + _RETRY_AFTER
            return False
        if isinstance(result, Applied):
            delivery_state.leased_until = until
            delivery_state.requested_action = result.task.requested_action
        is_taken = isinstance(result, ConditionFailed) and (result.task is None or result.task.fence != task.fence)
        return is_taken or not has_locks
