"""Switches, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from duetime.domain.switches import Switches


class MemorySwitchStore:
    """`duetime.ports.switches.SwitchStore` in memory."""

    def __init__(self) -> None:
        self._stored = (Switches(), "")
        self._lock = Lock()

    def read(self, *, consistent: bool) -> Switches:
        """Read all switches; there are none while nothing is stored."""
        del consistent  # memory always is
        with self._lock:
            return self._stored[0]

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store all switches, if they are still at the version that was read."""
        with self._lock:
            stored, stored_nonce = self._stored
            if stored_nonce == nonce:
                return True
            if stored.version != switches.version:
                return False
            self._stored = (replace(switches, version=switches.version + 1), nonce)
            return True
