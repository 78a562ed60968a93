"""Idempotency keys, in memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.tasks.idempotency_keys import RememberedKey
    from duetime.domain.times import Millis


class MemoryKeyStore:
    """`duetime.ports.tasks.KeyStore` in memory."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], RememberedKey] = {}
        self._lock = Lock()

    def remember(self, owner: str, key: str, wanted: RememberedKey, now: Millis) -> RememberedKey:
        """Keep what an owner's key stands for, unless the key is taken and not expired."""
        with self._lock:
            kept = self._kept.get((owner, key))
            if kept is not None and kept.expires_at > now:
                return kept
            self._kept[owner, key] = wanted
            return wanted
