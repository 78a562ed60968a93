"""Locks: named resources that at most so many running tasks hold at once. Decisions as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import LOCK_LIFE, LONGEST_LOCK_HOLD, MAX_CLOCK_DIFFERENCE
from duetime.domain.tasks.states import LEASED, STARTABLE, State

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import LockScope
    from duetime.domain.times import Millis

RESERVED = 0
"""Fence of a holder that has been let in but has not come yet; a claim's fence is never 0."""


@dataclass(frozen=True, slots=True, order=True)
class LockName:
    """Which lock: keys are an owner's own."""

    owner: str
    key: str


@dataclass(frozen=True, slots=True)
class LockClaim:
    """What a task asks for.

    Attributes:
        limit: most holders at once; where tasks disagree, each goes by its own.
        scope: for how much of an attempt.
    """

    name: LockName
    limit: int
    scope: LockScope


@dataclass(frozen=True, slots=True)
class Holder:
    """A task that holds a lock.

    Attributes:
        fence: of the attempt; `RESERVED` while the lock waits for the task.
        expires_at: when the hold ends by itself, unless a heartbeat renews it.
    """

    task_id: TaskId
    fence: int
    expires_at: Millis


@dataclass(frozen=True, slots=True, order=True)
class Waiter:
    """A task in a lock's line: the earliest due comes first.

    Attributes:
        generation: the task's generation while it waits; at another one it waits no more.
    """

    due_at: Millis
    task_id: TaskId
    generation: int


@dataclass(frozen=True, slots=True)
class Lock:
    """Who holds a lock.

    Attributes:
        version: grows with every change but renewals' own; 0 while nothing is stored.
    """

    name: LockName
    holders: tuple[Holder, ...] = ()
    version: int = 0

    def holder(self, task_id: TaskId) -> Holder | None:
        """How a task holds the lock, if it does."""
        return next((holder for holder in self.holders if holder.task_id == task_id), None)

    def room(self, limit: int) -> int:
        """How many more may hold it."""
        return limit - len(self.holders)

    def living(self, now: Millis) -> Lock:
        """The lock without those whose hold is over by every clock."""
        return replace(self, holders=tuple(h for h in self.holders if h.expires_at + MAX_CLOCK_DIFFERENCE > now))

    def is_held_by_later(self, holder: Holder) -> bool:
        """Whether a later attempt of the same task holds it: then the lease of this one is over."""
        held = self.holder(holder.task_id)
        return held is not None and held.fence > holder.fence

    def held_by(self, holder: Holder) -> Lock:
        """The lock with one more holder, or with the task's hold replaced, unless that is a later attempt's."""
        if self.is_held_by_later(holder):
            return self
        return replace(self, holders=(*self.without(holder.task_id, holder.fence).holders, holder))

    def without(self, task_id: TaskId, fence: int) -> Lock:
        """The lock without what a task holds by this fence or an earlier one."""
        kept = tuple(h for h in self.holders if h.task_id != task_id or h.fence > fence)
        return replace(self, holders=kept)

    def expires_at(self, now: Millis) -> Millis:
        """When the lock may be forgotten, if nobody touches it any more."""
        return (
            max(now, *(holder.expires_at for holder in self.holders)) + LOCK_LIFE if self.holders else now + LOCK_LIFE
        )

    @staticmethod
    def renewal_expires_at(now: Millis, until: Millis) -> Millis:
        """When a lock may be forgotten of which only the hold that is renewed now is known.

        Others may share it, and hold it as long as anything can be held: it must not be forgotten before any of them.
        The next who takes it or gives it back knows all its holders, and sets an earlier time.
        """
        return max(until, now + LONGEST_LOCK_HOLD) + LOCK_LIFE

    def frees_at(self, limit: int) -> Millis:
        """When the next place is free if nobody renews; the past if one is free now."""
        ends = sorted(holder.expires_at for holder in self.holders)
        return ends[len(ends) - limit] + MAX_CLOCK_DIFFERENCE if len(ends) >= limit else 0


def claims_of(task: Task) -> tuple[LockClaim, ...]:
    """The locks that a task asks for itself."""
    if task.lock is None:
        return ()
    return (LockClaim(LockName(task.owner, task.lock.key), task.lock.max_holders, task.lock.scope),)


class WaiterStatus(Enum):
    """How a task stands to the place that it took in a line."""

    WAITS = "it may be let in"
    COMING = "it has joined, but its worker has not put it back yet, and will look again when it has"
    GONE = "it waits no more"


def waiter_status(waiter: Waiter, task: Task | None) -> WaiterStatus:
    """How a task stands to its place in a line."""
    if task is None or task.generation > waiter.generation:
        return WaiterStatus.GONE
    if task.generation < waiter.generation:
        return WaiterStatus.COMING if task.state in LEASED else WaiterStatus.GONE
    is_put_back = task.lease_expires_at is None and task.finished_at is None
    if task.state in STARTABLE or (is_put_back and (task.state is State.ROLLING_BACK or task.is_terminal)):
        return WaiterStatus.WAITS
    return WaiterStatus.COMING if task.is_terminal and task.finished_at is None else WaiterStatus.GONE


def is_dead(holder: Holder, task: Task | None) -> bool:
    """Whether a holder's attempt is over, although its hold is not: it was deferred, and ended by a notification."""
    if holder.fence == RESERVED:
        return False
    if task is None or task.fence > holder.fence:
        return True
    # As long as there is a lease the attempt's process may not be gone yet.
    is_over = task.state in STARTABLE or task.state is State.PAUSED or task.finished_at is not None
    return is_over and task.lease_expires_at is None


@dataclass(frozen=True, slots=True)
class HandOver:
    """One round of letting waiting tasks in, as far as it has come.

    Attributes:
        lock: with a reservation for each task that is let in.
        admitted: the waiters that are let in, each with its task.
        departed: the waiters that wait no more.
        is_full: whether no more can be let in.
    """

    lock: Lock
    admitted: tuple[tuple[Waiter, Task], ...] = ()
    departed: tuple[Waiter, ...] = ()
    is_full: bool = False

    def admit(self, waiter: Waiter, task: Task, limit: int, until: Millis) -> HandOver:
        """With a place reserved for a waiting task until then, if there is one under its limit."""
        lock = self.lock
        if lock.holder(task.id) is None:
            if lock.room(limit) <= 0:
                return replace(self, is_full=True)
            lock = lock.held_by(Holder(task.id, RESERVED, until))
        return replace(self, lock=lock, admitted=(*self.admitted, (waiter, task)))

    def dismiss(self, waiter: Waiter) -> HandOver:
        """Without a waiter that waits no more, nor what is reserved for it."""
        lock = self.lock.without(waiter.task_id, RESERVED)
        return replace(self, lock=lock, departed=(*self.departed, waiter))
