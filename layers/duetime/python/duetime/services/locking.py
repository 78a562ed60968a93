"""Takes locks after the claim, renews them with the lease, and hands them on after the outcome, in order of due time.

The write that releases a lock also reserves the lock for the first task in line, which is then scheduled. So no
newcomer can overtake that task.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, WriteResult
from duetime.domain.errors import LockNotFound, Unavailable
from duetime.domain.locks import (
    RESERVED,
    HandOver,
    Holder,
    Lock,
    LockClaim,
    LockName,
    Waiter,
    WaiterStatus,
    claims_of,
    is_dead,
    waiter_status,
)
from duetime.domain.operating_parameters import LOCK_CHECK_INTERVAL, MAX_CLOCK_DIFFERENCE
from duetime.domain.switches import SYSTEM
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.states import STARTABLE, Move
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import LockStore, Stores
    from duetime.ports.targets import ConcurrencyCaps
    from duetime.services.enqueue import Enqueuer


_TRIES = 20
_RETURN_TRIES = 3
"""Number of attempts to release a lock, in addition to the retries of each store request."""
_LINE = 10
"""Number of waiting tasks that are examined at once for a hand-over; a longer line is processed in pieces."""
_BUSY_PAUSE = SECOND
"""How long a task waits before its next check if concurrent changes kept it from taking a lock."""


@frozen
class LockManager:
    """Takes, renews and hands on locks.

    Every method may raise `Unavailable` unless its docstring says otherwise; the hold then expires on its own.

    Attributes:
        lease: duration of a lease and of a hold, in milliseconds.
        concurrency_caps: additional locks that enforce the operator's caps on a task.
    """

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    lease: Millis
    concurrency_caps: ConcurrencyCaps

    def claims(self, task: Task, scopes: Collection[LockScope] = tuple(LockScope)) -> tuple[LockClaim, ...]:
        """The locks that a task needs, in an order that is the same for all tasks."""
        claims = (*claims_of(task), *self.concurrency_caps.caps(task))
        return tuple(sorted((claim for claim in claims if claim.scope in scopes), key=lambda claim: claim.name))

    def take(self, task: Task, claim: LockClaim) -> Postponed | None:
        """Take one lock for the attempt that holds the task's lease.

        Returns:
            `None` if this call took the lock. Otherwise the task has joined the line with its next generation, and the
            caller must postpone the task as returned, and then call `hand_over`.
        """
        for _ in range(_TRIES):
            now = self.runtime.now()
            lock, line = self.stores.locks.read(claim.name, claim.limit)
            lock = self._living(lock, claim, now)
            taken = Holder(task.id, task.fence, now + self.lease, claim.is_shared)
            if lock.is_held_by_later(taken):
                # This attempt's lease has ended, so its postponement will be rejected, and it must not join the line.
                return Postponed(now + _BUSY_PAUSE, f"lock {claim.name.key}")
            place = Waiter(task.due_at, task.id, task.generation)
            ahead = [waiter for waiter in line if waiter < place and waiter.task_id != task.id]
            if lock.is_closed_for(claim, task.id, ahead):
                return self._in_line(task, claim, lock, len(ahead), now)
            held = lock.held_by(taken)
            if self.stores.locks.save(held, self.runtime.nonce(), held.expires_at(now), taken):
                return None
        return self._in_line(task, claim, Lock(claim.name), 0, self.runtime.now())

    def renew(self, task: Task, claim: LockClaim, until: Millis) -> bool:
        """Extend a hold until the given time; returns whether the task still holds the lock."""
        expires = Lock.renewal_expires_at(self.runtime.now(), until)
        # A task that started before the limit was set runs without this lock, and is not stopped.
        return (
            self.stores.locks.renew(claim.name, Holder(task.id, task.fence, until, claim.is_shared), expires)
            or claim.name.owner == SYSTEM
        )

    def keep(self, end: WriteResult, task: Task, held: Postponed, taken: Collection[LockClaim]) -> set[LockClaim]:
        """Reserve a task's locks for its next check, while the task is first in line for another lock.

        Without this, a task that needs two busy locks might find one of the locks taken at every check. Only locks that
        sort before the missing lock are kept, so no two tasks can each keep a lock that the other needs.

        This method never raises `Unavailable`; locks that could not be reserved are released.

        Args:
            end: the write that postponed the task.
            task: the claimed record.
            held: why the task is postponed.
            taken: the locks that the attempt has.

        Returns:
            The locks that are kept; all other locks must be released.
        """
        is_waiting = isinstance(end, Applied) and end.task.state in STARTABLE and end.task.waiting_for == held.reason
        if held.keeps_before is None or not isinstance(end, Applied) or not is_waiting:
            return set()
        before = {claim for claim in taken if claim.name.owner == task.owner and claim.name.key < held.keeps_before}
        with suppress(Unavailable):
            return {claim for claim in before if self._reserved(task, claim, end.task.next_at + self.lease)}
        return set()

    def _reserved(self, task: Task, claim: LockClaim, until: Millis) -> bool:
        """Reserve a lock that the attempt holds; returns `False` if the attempt no longer holds it."""
        for _ in range(_TRIES):
            stored, _line = self.stores.locks.read(claim.name, 0)
            if (holder := stored.holder(task.id)) is None or holder.fence > task.fence:
                return False
            reserved = Holder(task.id, RESERVED, until, claim.is_shared)
            lock = stored.without(task.id, task.fence).held_by(reserved)
            if self.stores.locks.save(lock, self.runtime.nonce(), lock.expires_at(self.runtime.now())):
                # The task's outdated place in line would delay the tasks behind it.
                self.stores.locks.leave(claim.name, Waiter(task.due_at, task.id, task.generation))
                return True
        return False

    def give_back(self, task: Task, claim: LockClaim) -> None:
        """Release a task's hold, and let in the first task in line.

        This method never raises `Unavailable`, because the outcome is stored, and the response must say so. If the
        release fails, the hold expires, and the next task in line checks for the expiry.
        """
        for _ in range(_RETURN_TRIES):
            try:
                self.hand_over(claim.name, task)
            except Unavailable as error:
                self.runtime.telemetry.note("a lock was not handed on", task=task.id.text, error=str(error))
            else:
                return

    def release_reservation(self, task: Task) -> None:
        """Hand on the reservations of a task that will not use them because it was cancelled, paused or postponed.

        This method never raises `Unavailable`, because the user's request is done, and the reservation expires on its
        own.

        Args:
            task: the record after the change; only a task that has waited can have a reservation.
        """
        if task.waiting_for is None:
            return
        try:
            for claim in self.claims(task):
                holder = self.stores.locks.read(claim.name, 0)[0].holder(task.id)
                # Another process may be turning the last attempt's hold into a reservation right now.
                if holder is not None and holder.fence <= task.fence:
                    self.hand_over(claim.name, task)
        except Unavailable as error:
            self.runtime.telemetry.note("a reserved lock was not handed on", task=task.id.text, error=str(error))

    def hand_over(self, name: LockName, leaving: Task | None = None) -> None:
        """Let in as many waiting tasks as there is room for, in order of due time, and schedule their checks.

        Args:
            name: name of the lock.
            leaving: a task whose hold ends with this call.
        """
        for _ in range(_TRIES):
            if self._handed_on(name, leaving):
                return

    def _handed_on(self, name: LockName, leaving: Task | None) -> bool:
        """Try once to hand the lock on; returns `True` if nothing is left to do."""
        now = self.runtime.now()
        stored, line = self.stores.locks.read(name, _LINE)
        lock = stored.living(now) if leaving is None else stored.living(now).without(leaving.id, leaving.fence)
        hand_over = HandOver(lock)
        for waiter in line:
            hand_over = self._with_waiter(hand_over, waiter, now)
            if hand_over.is_full:
                break
        lock = hand_over.lock
        if lock != stored and not self.stores.locks.save(lock, self.runtime.nonce(), lock.expires_at(now)):
            return False
        were_there = [self._let_in(name, waiter, task) for waiter, task in hand_over.admitted]
        for waiter in hand_over.departed:
            self.stores.locks.leave(name, waiter)
        return all(were_there) and len(hand_over.admitted) + len(hand_over.departed) < _LINE

    def _with_waiter(self, hand_over: HandOver, waiter: Waiter, now: Millis) -> HandOver:
        """Decide about the next task in line, and return the hand-over with the decision."""
        task = self.stores.tasks.read(waiter.task_id)
        status = waiter_status(waiter, task)
        if status is WaiterStatus.COMING:
            return hand_over
        claim = None if task is None else self._claim(task, hand_over.lock.name)
        if task is None or claim is None:
            return hand_over.dismiss(waiter, None)
        if status is WaiterStatus.GONE:
            return hand_over.dismiss(waiter, task)
        hand_over = replace(hand_over, lock=self._living(hand_over.lock, claim, now))
        return hand_over.admit(waiter, task, claim, now + self.lease)

    def _let_in(self, name: LockName, waiter: Waiter, task: Task) -> bool:
        """Schedule a check of a task for which the lock is reserved; returns `False` if the task has changed since."""
        now = self.runtime.now()
        if task.is_terminal:
            self.enqueuer.remind(task, now)
        elif isinstance(self.enqueuer.move(task, Move.REPLACE, now, Guard(version=task.version), {}), ConditionFailed):
            return False
        self.runtime.telemetry.count("locks_handed_on")
        self.stores.locks.leave(name, waiter)
        return True

    def _claim(self, task: Task, name: LockName) -> LockClaim | None:
        return next((claim for claim in self.claims(task) if claim.name == name), None)

    def _in_line(self, task: Task, claim: LockClaim, lock: Lock, ahead: int, now: Millis) -> Postponed:
        """Join the line. Only the first task checks when the hold ends, so that tasks do not compete for one place."""
        # Postponing sets a new check with a new generation; an ended task that still has to clean up keeps its
        # generation.
        generation = task.generation if task.is_terminal else task.generation + 1
        # The place expires later than even the longest hold.
        expires_at = Lock.renewal_expires_at(now, now)
        self.stores.locks.join(claim.name, Waiter(task.due_at, task.id, generation, claim.is_shared), expires_at)
        until = now + LOCK_CHECK_INTERVAL // 2 + self.runtime.random_source.below(LOCK_CHECK_INTERVAL // 2)
        if not ahead:
            until = min(until, max(lock.frees_at(claim), now) + _BUSY_PAUSE)
        keeps_before = claim.name.key if not ahead and claim.name.owner == task.owner else None
        return Postponed(until, f"lock {claim.name.key}", keeps_before=keeps_before)

    def _living(self, lock: Lock, claim: LockClaim, now: Millis) -> Lock:
        """Remove crashed holders from a full lock, even if their holds have not expired, and return the lock."""
        lock = lock.living(now)
        if lock.room(claim) > 0:
            return lock
        for holder in lock.holders:
            lasts = holder.expires_at > now + 2 * self.lease + MAX_CLOCK_DIFFERENCE
            if lasts and is_dead(holder, self.stores.tasks.read(holder.task_id)):
                lock = lock.without(holder.task_id, holder.fence)
        return lock


_LINE_SHOWN = 100


@frozen
class LockAdmin:
    """Shows an owner's locks, and releases them by force."""

    locks: LockStore
    lock_manager: LockManager
    runtime: Runtime

    def list(self, owner: str, after: str, limit: int) -> tuple[Sequence[Lock], str | None]:
        """A page of an owner's recently used locks, and the key after which the next page begins, if any."""
        keys = self.locks.list_keys(owner, after, limit)
        now = self.runtime.now()
        found = {lock.name.key: lock.living(now) for lock in self.locks.read_many([LockName(owner, k) for k in keys])}
        return [found[key] for key in keys if key in found], keys[-1] if len(keys) == limit else None

    def get(self, owner: str, key: str) -> tuple[Lock, Sequence[Waiter]]:
        """One lock, with the first tasks in line.

        Raises:
            LockNotFound: no task has taken the lock recently.
        """
        lock, line = self.locks.read(LockName(owner, key), _LINE_SHOWN)
        if not lock.version and not line:
            raise LockNotFound(key)
        return lock.living(self.runtime.now()), line

    def release(self, owner: str, key: str) -> Lock:
        """Release a lock from all its holders, and let in the first task in line.

        Former holders detect the release at their next heartbeat, and stop.

        Raises:
            LockNotFound: no task has taken the lock recently.
            Unavailable: too many concurrent writes.
        """
        for _ in range(_TRIES):
            lock, _line = self.get(owner, key)
            emptied = replace(lock, holders=())
            if self.locks.save(emptied, self.runtime.nonce(), emptied.expires_at(self.runtime.now())):
                with suppress(Unavailable):
                    # The lock is free even if this call fails, and the first task in line checks the lock anyway.
                    self.lock_manager.hand_over(lock.name)
                return self._read(owner, key) or emptied
        raise Unavailable("too many concurrent writes to the lock; try again")

    def _read(self, owner: str, key: str) -> Lock | None:
        """The lock after its release; `None` if the store does not answer, because the lock is released in any case."""
        try:
            return self.get(owner, key)[0]
        except Unavailable:
            return None
