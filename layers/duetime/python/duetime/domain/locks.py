"""Locks, which are named resources with a limited number of concurrent holders. Decisions are returned as values."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import LOCK_LIFE, LONGEST_LOCK_HOLD, MAX_CLOCK_DIFFERENCE
from duetime.domain.tasks.states import LEASED, STARTABLE, State
from duetime.domain.tasks.task_options import LockMode
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import LockScope
    from duetime.domain.times import Millis

RESERVED = 0
"""Fence of a holder whose task was admitted to the lock but not claimed yet; a claimed task's fence is never 0."""


@frozen(order=True)
class LockName:
    """Name of a lock; keys are unique per owner."""

    owner: str
    key: str


@frozen
class LockClaim:
    """A task's request for a lock.

    Attributes:
        limit: maximum number of holders; if tasks name different limits, each task uses its own limit.
        scope: the part of an attempt during which the lock is held.
        is_shared: whether other tasks may share the lock; exclusive and shared holders exclude each other.
    """

    name: LockName
    limit: int
    scope: LockScope
    is_shared: bool = False


@frozen
class Holder:
    """A task that holds a lock.

    Attributes:
        fence: fence of the attempt; `RESERVED` while the lock is reserved for the task.
        expires_at: when the hold expires unless a heartbeat renews the hold.
        is_shared: whether the task shares the lock.
    """

    task_id: TaskId
    fence: int
    expires_at: Millis
    is_shared: bool = False


@frozen(order=True)
class Waiter:
    """A task that waits for a lock. The line of waiting tasks is ordered by due time.

    Attributes:
        generation: generation of the task while it waits; if the task has a different generation, it no longer waits.
        is_shared: whether the task wants to share the lock.
    """

    due_at: Millis
    task_id: TaskId
    generation: int
    is_shared: bool = False


@frozen
class Lock:
    """The holders and waiters of a lock.

    Attributes:
        version: incremented by every change that is not just a renewal; 0 if nothing is stored.
    """

    name: LockName
    holders: tuple[Holder, ...] = ()
    version: int = 0

    def holder(self, task_id: TaskId) -> Holder | None:
        """A task's hold; `None` if the task does not hold the lock."""
        return next((holder for holder in self.holders if holder.task_id == task_id), None)

    def room(self, claim: LockClaim) -> int:
        """Number of places that are free for tasks with this claim."""
        if any(holder.is_shared != claim.is_shared for holder in self.holders):
            return 0
        return claim.limit - len(self.holders)

    def is_closed_for(self, claim: LockClaim, task_id: TaskId, ahead: Sequence[Waiter]) -> bool:
        """Whether a task must wait, because it has no place and every free place is for a task ahead in line.

        The task also waits if a task ahead in line needs the lock in the other mode. Otherwise, tasks that share the
        lock could keep an exclusive task waiting forever.
        """
        held = self.holder(task_id)
        others = self if held is None else self.without(task_id, held.fence)
        if held is not None and held.is_shared == claim.is_shared:
            # In the meantime, tasks with a higher limit may have taken the lock as well.
            return others.room(claim) <= 0
        is_mixed = any(waiter.is_shared != claim.is_shared for waiter in ahead)
        return is_mixed or others.room(claim) <= len(ahead)

    def living(self, now: Millis) -> Lock:
        """The lock without holds that have expired by every process's clock."""
        return replace(self, holders=tuple(h for h in self.holders if h.expires_at + MAX_CLOCK_DIFFERENCE > now))

    def is_held_by_later(self, holder: Holder) -> bool:
        """Whether a later attempt of the same task holds the lock, because this attempt's lease has ended."""
        held = self.holder(holder.task_id)
        return held is not None and held.fence > holder.fence

    def held_by(self, holder: Holder) -> Lock:
        """The lock with a holder added. The holder replaces its task's earlier hold, but not a later attempt's hold."""
        if self.is_held_by_later(holder):
            return self
        return replace(self, holders=(*self.without(holder.task_id, holder.fence).holders, holder))

    def without(self, task_id: TaskId, fence: int) -> Lock:
        """The lock without a task's hold, if the hold has this fence or an earlier fence."""
        kept = tuple(h for h in self.holders if h.task_id != task_id or h.fence > fence)
        return replace(self, holders=kept)

    def expires_at(self, now: Millis) -> Millis:
        """When the lock can be removed if it is no longer used."""
        return (
            max(now, *(holder.expires_at for holder in self.holders)) + LOCK_LIFE if self.holders else now + LOCK_LIFE
        )

    @staticmethod
    def renewal_expires_at(now: Millis, until: Millis) -> Millis:
        """When a lock can be removed, computed from the renewed hold alone, without reading the other holds.

        The lock must not be removed before every hold has ended, and other tasks may hold it too, so the result is the
        latest possible time. The next acquisition or release reads all holders and sets an earlier time.
        """
        return max(until, now + LONGEST_LOCK_HOLD) + LOCK_LIFE

    def frees_at(self, claim: LockClaim) -> Millis:
        """When the next place becomes free if no hold is renewed; a time in the past if a place is free now."""
        opposed = [holder.expires_at for holder in self.holders if holder.is_shared != claim.is_shared]
        if opposed:
            return max(opposed) + MAX_CLOCK_DIFFERENCE
        ends = sorted(holder.expires_at for holder in self.holders)
        return ends[len(ends) - claim.limit] + MAX_CLOCK_DIFFERENCE if len(ends) >= claim.limit else 0


def claims_of(task: Task) -> tuple[LockClaim, ...]:
    """The locks that a task requests itself, without locks that enforce switches' limits."""
    return tuple(
        LockClaim(LockName(task.owner, lock.key), lock.limit, lock.scope, lock.mode is LockMode.SHARED)
        for lock in task.all_locks
    )


class WaiterStatus(Enum):
    """Status of a task's place in a line."""

    WAITS = "it may be admitted"
    COMING = "it has joined, but its worker has not returned it yet, and checks the lock again afterwards"
    GONE = "it no longer waits"


def waiter_status(waiter: Waiter, task: Task | None) -> WaiterStatus:
    """Status of a task's place in a line."""
    if task is None or task.generation > waiter.generation:
        return WaiterStatus.GONE
    if task.generation < waiter.generation:
        return WaiterStatus.COMING if task.state in LEASED else WaiterStatus.GONE
    is_put_back = task.lease_expires_at is None and task.finished_at is None
    if task.state in STARTABLE or (is_put_back and (task.state is State.ROLLING_BACK or task.is_terminal)):
        return WaiterStatus.WAITS
    return WaiterStatus.COMING if task.is_terminal and task.finished_at is None else WaiterStatus.GONE


def is_dead(holder: Holder, task: Task | None) -> bool:
    """Whether a hold is left over from an attempt that has ended, for example because of a notification."""
    if holder.fence == RESERVED:
        return False
    if task is None or task.fence > holder.fence:
        return True
    # While a lease exists, the attempt's process may still be running.
    is_over = task.state in STARTABLE or task.state is State.PAUSED or task.finished_at is not None
    return is_over and task.lease_expires_at is None


@frozen
class HandOver:
    """Progress of admitting waiting tasks to a lock.

    Attributes:
        lock: the lock with a reservation for each admitted task.
        admitted: the admitted waiters and their tasks.
        departed: waiters whose tasks no longer wait.
        is_full: whether no more tasks can be admitted.
    """

    lock: Lock
    admitted: tuple[tuple[Waiter, Task], ...] = ()
    departed: tuple[Waiter, ...] = ()
    is_full: bool = False

    def admit(self, waiter: Waiter, task: Task, claim: LockClaim, until: Millis) -> HandOver:
        """A copy with a place reserved until `until` for a waiting task, if a place is free for the task's claim."""
        lock = self.lock
        if lock.holder(task.id) is None:
            if lock.room(claim) <= 0:
                return replace(self, is_full=True)
            lock = lock.held_by(Holder(task.id, RESERVED, until, claim.is_shared))
        return replace(self, lock=lock, admitted=(*self.admitted, (waiter, task)))

    def dismiss(self, waiter: Waiter, task: Task | None) -> HandOver:
        """A copy without a waiter that no longer waits; its reservation is also removed unless its task will use it.

        A concurrent hand-over may have reserved the lock and enqueued the task, but not yet removed the waiter.

        Args:
            waiter: the waiter.
            task: its task; `None` if it was deleted or no longer needs the lock.
        """
        held = self.lock.holder(waiter.task_id)
        is_used = held is not None and task is not None and _checks_before(task, held.expires_at)
        lock = self.lock if is_used else self.lock.without(waiter.task_id, RESERVED)
        return replace(self, lock=lock, departed=(*self.departed, waiter))


def _checks_before(task: Task, end: Millis) -> bool:
    """Whether a task is about to take its locks, because an attempt has started, or starts before `end`."""
    return task.state in LEASED or (task.state in STARTABLE and task.next_at < end)
