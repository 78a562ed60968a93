"""Locks and their lines, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock as Mutex
from typing import TYPE_CHECKING

from duetime.domain.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.locks import Holder, LockName, Waiter
    from duetime.domain.times import Millis


class MemoryLockStore:
    """`duetime.ports.locks.LockStore` in memory."""

    def __init__(self) -> None:
        self._locks: dict[LockName, tuple[Lock, str]] = {}
        self._lines: dict[LockName, dict[tuple[Millis, TaskId], Waiter]] = {}
        self._mutex = Mutex()

    def read(self, name: LockName, waiters: int) -> tuple[Lock, list[Waiter]]:
        """Read a lock and the first of its line."""
        with self._mutex:
            lock, _ = self._locks.get(name, (Lock(name), ""))
            return lock, sorted(self._lines.get(name, {}).values())[:waiters]

    def read_many(self, names: Sequence[LockName]) -> list[Lock]:
        """Read many locks without their lines; those that are not stored are left out."""
        with self._mutex:
            return [self._locks[name][0] for name in names if name in self._locks]

    def save(self, lock: Lock, nonce: str, expires_at: Millis, taker: Holder | None = None) -> bool:
        """Store a lock's holders, if it is still at the version that was read."""
        del expires_at  # memory forgets with its process
        with self._mutex:
            stored, stored_nonce = self._locks.get(lock.name, (Lock(lock.name), ""))
            if stored_nonce == nonce:
                return True
            if stored.version != lock.version or (taker is not None and stored.is_held_by_later(taker)):
                return False
            self._locks[lock.name] = (replace(lock, version=lock.version + 1), nonce)
            return True

    def renew(self, name: LockName, holder: Holder, expires_at: Millis) -> bool:
        """Let a hold last until the holder's new end."""
        del expires_at  # memory forgets with its process
        with self._mutex:
            lock, nonce = self._locks.get(name, (Lock(name), ""))
            held = lock.holder(holder.task_id)
            if held is None or held.fence != holder.fence:
                return False
            if held.until > holder.until:
                return True
            self._locks[name] = (replace(lock.held_by(holder), version=lock.version + 1), nonce)
            return True

    def join(self, name: LockName, waiter: Waiter, expires_at: Millis) -> None:
        """Put a task into a lock's line."""
        del expires_at  # memory forgets with its process
        with self._mutex:
            self._lines.setdefault(name, {})[waiter.due_at, waiter.task_id] = waiter

    def leave(self, name: LockName, waiter: Waiter) -> None:
        """Take a task out of a lock's line, unless it has joined again at a later turn."""
        with self._mutex:
            line = self._lines.get(name, {})
            if line.get((waiter.due_at, waiter.task_id)) == waiter:
                del line[waiter.due_at, waiter.task_id]

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Keys of an owner's locks in their order."""
        with self._mutex:
            return sorted(name.key for name in self._locks if name.owner == owner and name.key > after)[:limit]
