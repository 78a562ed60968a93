"""The locks that an attempt holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, WriteResult
from duetime.domain.tasks.states import State

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Postponed
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import LockScope
    from duetime.domain.times import Millis
    from duetime.services.locks.locking import LockManager
    from duetime.services.worker.delivery_state import DeliveryState


@dataclass(frozen=True, slots=True)
class AttemptLocks:
    """Takes, renews and releases the locks of attempts."""

    lock_manager: LockManager

    def take(self, delivery_state: DeliveryState, task: Task, scope: LockScope) -> Postponed | None:
        """Take the locks of a scope; if one is not to be had, what was taken is released after the attempt."""
        for claim in self.lock_manager.claims(task, {scope}):
            if claim in delivery_state.locks:
                continue
            if held := self.lock_manager.take(task, claim):
                return held
            delivery_state.locks = (*delivery_state.locks, claim)
        return None

    def renew(self, delivery_state: DeliveryState, task: Task, until: Millis) -> bool:
        """Let what the attempt holds last until then; says whether it still holds it all."""
        # What is released meanwhile is rejected, and is no loss.
        return all(
            self.lock_manager.renew(task, claim, until) or claim not in delivery_state.locks
            for claim in delivery_state.locks
        )

    def release(self, delivery_state: DeliveryState, task: Task, end: WriteResult, scope: LockScope) -> None:
        """Give back what was taken, and hand on what was not to be had, unless the target still works."""
        if isinstance(end, Applied) and end.task.state is State.RUNNING:
            return
        claims = {claim for claim in delivery_state.locks if claim.scope is scope}
        delivery_state.locks = tuple(claim for claim in delivery_state.locks if claim not in claims)
        # What has waited may have been let in to a lock that it did not come to.
        may_wait = task.waiting_for is not None or (isinstance(end, Applied) and end.task.waiting_for is not None)
        if isinstance(end, Applied) and (may_wait or end.task.is_terminal):
            claims.update(self.lock_manager.claims(task, {scope}))
        for claim in sorted(claims, key=lambda claim: claim.name):
            self.lock_manager.give_back(task, claim)
