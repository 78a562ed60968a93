"""The lease and the locks of an attempt that goes on, as what its worker does with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write, WriteResult
from duetime.domain.operating_parameters import HEARTBEATS_PER_LEASE
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.attempt_run import Arrival
from duetime.domain.tasks.notices import time_to_tell
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.task import Progress, RequestedAction, Task
    from duetime.domain.tasks.task_options import LockScope
    from duetime.ports.queues import Delivery
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.locking import LockManager


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


@dataclass(slots=True)
class DeliveryState:
    """What one delivery is at, shared between the thread that works on it and the one that watches over it.

    Each field has one writer at a time, and a reader that sees it a moment late does no harm: every write to the
    record is fenced.

    Attributes:
        received_at: when its batch was received.
        task: the record as it was claimed; `None` before the claim and after the end.
        started_at: when the target was called first in this attempt: its time is for all phases. What follows the
            outcome has a time of its own.
        had_turn: it was to start when its rate allowed it, and has.
        ended: the target has returned; its end is being written down.
        requested_action: what the user asks of the attempt, as of the last heartbeat.
        progress: what the target reported last, written with the next heartbeat.
        renew_at: when its lease must be renewed.
        leased_until: when its lease is over, as far as its own writes were answered.
        locks: what the attempt holds besides its lease.
        disposition: what happens to the message; `None` while that is open.
    """

    delivery: Delivery
    received_at: Millis = 0
    task: Task | None = None
    started_at: Millis | None = None
    had_turn: bool = False
    ended: bool = False
    requested_action: RequestedAction | None = None
    progress: Progress | None = None
    renew_at: Millis = 0
    leased_until: Millis = 0
    locks: tuple[LockClaim, ...] = ()
    disposition: DeleteMessage | RedeliverMessage | None = None

    @property
    def arrival(self) -> Arrival:
        """How the message came."""
        return Arrival(self.delivery.sent_at, self.received_at)

    def overdue_at(self) -> Millis | None:
        """When its target must have ended, if it runs."""
        task, started = self.task, self.started_at
        if task is None or started is None or self.ended:
            return None
        room = time_to_tell(task) if task.is_terminal else 0
        return task.overdue_at(started) + room


@dataclass(frozen=True, slots=True)
class Watch:
    """What the thread that watches over a batch offers to the one that works on a delivery.

    Attributes:
        holder: who works, for the attempt history.
        ends_at: when Lambda ends the function, whatever it does then.
        is_closing_time: whether nothing new may be claimed any more.
        heartbeat: renews the lease at once, when the target asks for it.
    """

    holder: str
    ends_at: Millis
    is_closing_time: Callable[[], bool]
    heartbeat: Callable[[], None]
