"""Showing locks, and releasing them by force."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import LockNotFound, Unavailable
from duetime.domain.locks import LockName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.locks import Lock, Waiter
    from duetime.ports.locks import LockStore
    from duetime.ports.runtime import Runtime
    from duetime.services.locks.locking import LockManager

_LINE_SHOWN = 100
_TRIES = 20


@dataclass(frozen=True, slots=True)
class LockAdmin:
    """Lets an owner see its locks, and take them away from whoever holds them."""

    locks: LockStore
    lock_manager: LockManager
    runtime: Runtime

    def list(self, owner: str, after: str, limit: int) -> tuple[Sequence[Lock], str | None]:
        """A page of an owner's locks that were used lately, and the key to go on behind, if there are more."""
        keys = self.locks.list_keys(owner, after, limit)
        now = self.runtime.now()
        found = {lock.name.key: lock.living(now) for lock in self.locks.read_many([LockName(owner, k) for k in keys])}
        return [found[key] for key in keys if key in found], keys[-1] if len(keys) == limit else None

    def get(self, owner: str, key: str) -> tuple[Lock, Sequence[Waiter]]:
        """One lock, with the first of its line.

        Raises:
            LockNotFound: no task has taken it lately.
        """
        lock, line = self.locks.read(LockName(owner, key), _LINE_SHOWN)
        if not lock.version and not line:
            raise LockNotFound(key)
        return lock.living(self.runtime.now()), line

    def release(self, owner: str, key: str) -> Lock:
        """Take a lock away from all who hold it, and let in the first of its line.

        Whoever held it learns of it by its next heartbeat, and stops.

        Raises:
            LockNotFound: no task has taken it lately.
            Unavailable: too many concurrent writes.
        """
        for _ in range(_TRIES):
            lock, _line = self.get(owner, key)
            emptied = replace(lock, holders=())
            if self.locks.save(emptied, self.runtime.nonce(), emptied.expires_at(self.runtime.now())):
                with suppress(Unavailable):
                    # It is free all the same, and the first of its line checks it by itself.
                    self.lock_manager.hand_over(lock.name)
                return self._read(owner, key) or emptied
        raise Unavailable("too many concurrent writes to the lock; try again")

    def _read(self, owner: str, key: str) -> Lock | None:
        """The lock after it was released: what its user asked is done, whether or not it can be shown."""
        try:
            return self.get(owner, key)[0]
        except Unavailable:
            return None
