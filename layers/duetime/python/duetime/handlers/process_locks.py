"""Locks that the handlers of one process share."""

from __future__ import annotations

from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAKING = Lock()
_PROCESS_LOCKS: dict[str, tuple[BoundedSemaphore, int]] = {}


@contextmanager
def process_lock(key: str, limit: int = 1) -> Iterator[None]:
    """Let at most `limit` handlers of this process into a block at once, without a call or a write.

    For resources within a process: a model in memory, a connection, a file of the machine. Resources shared by several
    machines need a task's `lock`. Waiting counts towards the attempt's timeout; the lease is renewed meanwhile.

    Raises:
        ValueError: the key was used with another limit, or the limit is not positive.
    """
    if limit < 1:
        raise ValueError(f"the limit of process lock {key!r} should be at least 1")
    with _MAKING:
        places, kept = _PROCESS_LOCKS.setdefault(key, (BoundedSemaphore(limit), limit))
    if kept != limit:
        raise ValueError(f"process lock {key!r} has the limit {kept}, not {limit}")
    with places:
        yield
