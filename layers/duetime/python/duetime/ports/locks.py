"""The store of locks.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.locks import Holder, Lock, LockName, Waiter
    from duetime.domain.times import Millis


class LockStore(Protocol):
    """Locks and the lines before them."""

    def read(self, name: LockName, waiters: int) -> tuple[Lock, list[Waiter]]:
        """Read a lock and the first of its line, consistently; one that is not stored has no holders."""
        ...

    def read_many(self, names: Sequence[LockName]) -> list[Lock]:
        """Read many locks without their lines, eventually consistently; those that are not stored are left out."""
        ...

    def save(self, lock: Lock, nonce: str, expires_at: Millis, taker: Holder | None = None) -> bool:
        """Store a lock's holders, if it is still at the version that was read.

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

        Args:
            lock: at the version that was read, with its new holders.
            nonce: of this save.
            expires_at: when the lock may be forgotten.
            taker: the attempt that takes it; rejected if a later attempt of the same task is among the stored holders.

        Returns:
            Whether they are stored.
        """
        ...

    def renew(self, name: LockName, holder: Holder, expires_at: Millis) -> bool:
        """Let a hold last until the holder's new end; one that comes late takes back nothing that a later one gave.

        Args:
            name: the lock.
            holder: the task, its fence and its new end.
            expires_at: when the lock may be forgotten: not before any hold of it can end.

        Returns:
            Whether the task still holds the lock by this fence.
        """
        ...

    def join(self, name: LockName, waiter: Waiter, expires_at: Millis) -> None:
        """Put a task into a lock's line; joining twice is joining once."""
        ...

    def leave(self, name: LockName, waiter: Waiter) -> None:
        """Take a task out of a lock's line, unless it has joined again with a later generation."""
        ...

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Keys of an owner's locks in their order, eventually consistently; the list goes on behind `after`."""
        ...
