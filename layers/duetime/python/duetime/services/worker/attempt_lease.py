"""Manages the lease and locks of a running attempt, and defines the state that the attempt's threads share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write, WriteResult
from duetime.domain.operating_parameters import HEARTBEATS_PER_LEASE
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.attempt_run import Arrival
from duetime.domain.tasks.notices import time_to_tell
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import SECOND, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.task import Content, Progress, RequestedAction, Task
    from duetime.ports.queues import Delivery
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import BatchGroups
    from duetime.ports.tasks import TaskStore
    from duetime.services.locking import LockManager
    from duetime.services.quotas.at_once import AttemptQuota


@frozen
class AttemptLease:
    """Restricts an attempt's writes to the duration of the attempt's lease, and to its fence.

    Attributes:
        duration: duration of a lease, in milliseconds.
    """

    tasks: TaskStore
    locks: AttemptLocks
    runtime: Runtime
    duration: Millis

    def begin(self, delivery_state: DeliveryState, task: Task) -> None:
        """Record the lease that was claimed with the task."""
        if delivery_state.task is None:
            # This is not done again for the steps that follow the outcome, which use the same lease with its current
            # renewal time.
            delivery_state.renew_at = self.runtime.now() + self.duration // HEARTBEATS_PER_LEASE
            delivery_state.leased_until = task.lease_expires_at or 0
        delivery_state.started_at = self.runtime.now() if task.is_terminal else None
        delivery_state.ended, delivery_state.checkpoint = False, None
        delivery_state.task = task

    def confirm(self, delivery_state: DeliveryState, task: Task) -> ConditionFailed | Postponed | None:
        """Why the target must not be called, because the lease has ended and could not be renewed; otherwise `None`.

        A lease that has ended, for example while the process was suspended, is requested once more. If no other worker
        has the task, the attempt continues.
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
        """Move to the next phase, if the task still has this attempt's fence."""
        result = self.tasks.apply(Write(task.id, move, self.runtime.nonce(), Guard(fence=task.fence)))
        stored = result.task
        if stored is not None and stored.fence == task.fence and stored.state is LEGAL[move].to:
            # No other process moves the task under this fence, so the write was applied: it was sent twice, or a later
            # write set the nonce.
            return Applied(stored)
        return result

    def give_up(self, task: Task) -> WriteResult:
        """End the lease before the task is finished, so that another worker runs the next steps."""
        write = Write(
            task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence), {"lease_expires_at": None}
        )
        return self.tasks.apply(write)


@frozen
class AttemptLocks:
    """Takes, renews and releases the locks of attempts.

    Attributes:
        quota: limits the attempts of each owner; `None` if there are no quotas.
    """

    lock_manager: LockManager
    quota: AttemptQuota | None

    def take(self, delivery_state: DeliveryState, task: Task, scope: LockScope) -> Postponed | None:
        """Take the locks of a scope; if a lock is not free, the locks already taken are released after the attempt."""
        is_first = scope is LockScope.TASK and not task.is_terminal
        if self.quota is not None and is_first and (held := self.quota.held(task, delivery_state.leased_until)):
            return held
        for claim in self.lock_manager.claims(task, {scope}):
            if claim in delivery_state.locks:
                continue
            if held := self.lock_manager.take(task, claim):
                delivery_state.lock_wait = held
                return held
            delivery_state.locks = (*delivery_state.locks, claim)
        return None

    def renew(self, delivery_state: DeliveryState, task: Task, until: Millis) -> bool:
        """Extend the attempt's locks until the given time; returns whether the attempt still holds all of them."""
        if self.quota is not None:
            self.quota.renew(task, until)
        # The renewal of a lock that was released in the meantime is rejected, which does no harm.
        return all(
            self.lock_manager.renew(task, claim, until) or claim not in delivery_state.locks
            for claim in delivery_state.locks
        )

    def leave(self, task: Task | None) -> None:
        """Give up the attempt's place in its owner's quota, if it still has a place."""
        if self.quota is not None and task is not None:
            self.quota.leave(task)

    def release(self, delivery_state: DeliveryState, task: Task, end: WriteResult, scope: LockScope) -> None:
        """Release the attempt's locks, and hand on a lock that it did not get, unless the target is still working.

        The attempt keeps locks that its task can use once the missing lock is free.
        """
        # The place is also given up if the target continues outside the worker after accepting the call.
        self.leave(task)
        if isinstance(end, Applied) and end.task.state is State.RUNNING:
            return
        claims = {claim for claim in delivery_state.locks if claim.scope is scope}
        delivery_state.locks = tuple(claim for claim in delivery_state.locks if claim not in claims)
        missing = delivery_state.lock_wait
        kept = set() if missing is None else self.lock_manager.keep(end, task, missing, claims)
        # A task that has waited may have reserved a lock that this attempt has not reached.
        may_wait = task.waiting_for is not None or (isinstance(end, Applied) and end.task.waiting_for is not None)
        if isinstance(end, Applied) and (may_wait or end.task.is_terminal):
            claims.update(self.lock_manager.claims(task, {scope}))
        for claim in sorted(claims - kept, key=lambda claim: claim.name):
            self.lock_manager.give_back(task, claim)


@dataclass(slots=True)
class DeliveryState:
    """The state of one delivery, shared between its worker thread and the watching thread.

    Each field has one writer at a time. If a reader sees a change slightly late, this does no harm, because every write
    to the record is fenced.

    Attributes:
        received_at: when the batch of the delivery was received.
        task: the claimed record; `None` before the claim and after the end.
        started_at: time of the target's first call in this attempt; the timeout covers all phases. The steps that
            follow the outcome have their own timeout.
        had_turn: whether a rate granted a start time, and the attempt has started.
        ended: whether the target has returned, so that its end is being recorded.
        reported_long: whether the notice of a long run was sent for this attempt.
        requested_action: the user's request to the attempt, as of the last heartbeat.
        progress: progress last reported by the target, written with the next heartbeat.
        renew_at: when the lease must be renewed.
        leased_until: end of the lease, according to the writes that succeeded.
        locks: locks that the attempt holds.
        lock_wait: the wait for the lock that the attempt did not get; `None` if it got all locks.
        checkpoint: checkpoint that the attempt has saved, if any.
        executed: name and version of the Lambda function that runs the attempt, as `name:version`; empty outside
            Lambda.
        disposition: what to do with the message; `None` until that is decided.
    """

    delivery: Delivery
    received_at: Millis = 0
    task: Task | None = None
    started_at: Millis | None = None
    had_turn: bool = False
    ended: bool = False
    reported_long: bool = False
    requested_action: RequestedAction | None = None
    progress: Progress | None = None
    renew_at: Millis = 0
    leased_until: Millis = 0
    locks: tuple[LockClaim, ...] = ()
    lock_wait: Postponed | None = None
    checkpoint: Content | None = None
    executed: str = ""
    disposition: DeleteMessage | RedeliverMessage | None = None

    @property
    def function_version(self) -> str:
        """The version of the Lambda function that runs the attempt; empty outside Lambda."""
        return self.executed.rpartition(":")[2]

    @property
    def arrival(self) -> Arrival:
        """When the message was sent and received."""
        return Arrival(self.delivery.sent_at, self.received_at)

    def long_at(self) -> Millis | None:
        """When to report the attempt as a long run; `None` if it is not running or was already reported."""
        task, started = self.task, self.started_at
        if task is None or task.notify_on is None or task.notify_on.running_seconds is None:
            return None
        is_running = started is not None and not (self.ended or self.reported_long or task.is_terminal)
        return started + task.notify_on.running_seconds * SECOND if started is not None and is_running else None

    def overdue_at(self) -> Millis | None:
        """When the target must have ended; `None` if the target is not running."""
        task, started = self.task, self.started_at
        if task is None or started is None or self.ended:
            return None
        room = time_to_tell(task) if task.is_terminal else 0
        return task.overdue_at(started) + room


@frozen
class Watch:
    """The functions and limits that a batch's watching thread provides to a delivery's thread.

    Attributes:
        holder: name of the worker in the attempt history.
        ends_at: when Lambda ends the function.
        is_closing_time: whether no new task may be claimed.
        heartbeat: renews the lease at once, at the target's request.
        batch_groups: groups attempts of the batch for a common call.
    """

    holder: str
    ends_at: Millis
    is_closing_time: Callable[[], bool]
    heartbeat: Callable[[], None]
    batch_groups: Callable[[], BatchGroups]
