"""Defects in locks."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "a lock has one more holder than its limit allows",
        "domain/locks.py",
        "return claim.limit - len(self.holders)",
        "return claim.limit + 1 - len(self.holders)",
    ),
    Mutant(
        "a lock's hold ends without the margin for clocks",
        "domain/locks.py",
        "if h.expires_at + MAX_CLOCK_DIFFERENCE > now)",
        "if h.expires_at > now)",
    ),
    Mutant(
        "a lock is removed by its TTL while it is held",
        "domain/locks.py",
        "return max(until, now + LONGEST_LOCK_HOLD) + LOCK_LIFE",
        "return now",
    ),
    Mutant(
        "the holds of a worker's locks are not renewed",
        "services/worker/batch.py",
        "has_locks = self.locks.renew(delivery_state, task, until)",
        "has_locks = True",
    ),
    Mutant(
        "a task whose target has accepted the work keeps its lock no longer than a lease",
        "services/worker/attempt.py",
        "if self.locks.renew(delivery_state, task, until) or is_job(task.target):\n            return deferred",
        "if True:\n            return deferred",
    ),
    Mutant(
        "an older attempt takes a lock's hold from a newer attempt",
        "domain/locks.py",
        "        if self.is_held_by_later(holder):\n"
        "            return self\n"
        "        return replace(self, holders=(*self.without(holder.task_id, holder.fence).holders, holder))",
        "        return replace(self, holders=(*self.without(holder.task_id, holder.fence + 9).holders, holder))",
    ),
    Mutant(
        "an older attempt releases the hold of a newer attempt",
        "domain/locks.py",
        "if h.task_id != task_id or h.fence > fence)",
        "if h.task_id != task_id)",
    ),
    Mutant(
        "a released lock is not passed to a waiting task",
        "services/locking.py",
        "for waiter in line:",
        "for waiter in line[:0]:",
    ),
    Mutant(
        "a holder whose attempt is still running is treated as gone",
        "domain/locks.py",
        "is_over = task.state in STARTABLE",
        "is_over = True or task.state in STARTABLE",
    ),
    Mutant(
        "a shared lock is given to a task that wants it exclusively",
        "domain/locks.py",
        "if any(holder.is_shared != claim.is_shared for holder in self.holders):",
        "if any(holder.is_shared < claim.is_shared for holder in self.holders):",
    ),
    Mutant(
        "tasks that share a lock overtake a task that wants it exclusively",
        "domain/locks.py",
        "return is_mixed or others.room(claim) <= len(ahead)",
        "return others.room(claim) <= (0 if is_mixed else len(ahead))",
    ),
    Mutant(
        "a task releases only the first of its locks",
        "services/worker/attempt_lease.py",
        "for claim in sorted(claims - kept, key=lambda claim: claim.name):",
        "for claim in sorted(claims - kept, key=lambda claim: claim.name)[:1]:",
    ),
    Mutant(
        "tasks take their locks in different orders and keep the locks that they already hold",
        "services/locking.py",
        "if claim.scope in scopes), key=lambda claim: claim.name))",
        "if claim.scope in scopes), key=lambda claim: claim.name, reverse=task.id.text[-1] < 'G'))",
        also=(("claim.name.key < held.keeps_before", "claim.name.key != held.keeps_before"),),
    ),
    Mutant(
        "a pull worker leases a task although its lock is refused",
        "services/pull/lease.py",
        "            if held := self.lock_manager.take(task, claim):\n                return held",
        "            self.lock_manager.take(task, claim)",
    ),
)
