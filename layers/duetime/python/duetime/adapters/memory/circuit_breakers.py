"""Circuits of HTTP hosts, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.circuit_breakers import Circuit

if TYPE_CHECKING:
    from duetime.domain.times import Millis


class MemoryCircuitStore:
    """`duetime.ports.switches.CircuitStore` in memory."""

    def __init__(self) -> None:
        self._circuits: dict[tuple[str, str], tuple[Circuit, str]] = {}
        self._lock = Lock()

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read the circuit of an owner's calls to a host; it is closed while nothing is stored."""
        del consistent  # memory always is
        with self._lock:
            return self._circuits.get((owner, host), (Circuit(owner, host), ""))[0]

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, if it is still at the version that was read."""
        del expires_at  # memory forgets with its process
        with self._lock:
            key = (circuit.owner, circuit.host)
            stored, stored_nonce = self._circuits.get(key, (Circuit(*key), ""))
            if stored_nonce == nonce:
                return True
            if stored.version != circuit.version:
                return False
            self._circuits[key] = (replace(circuit, version=circuit.version + 1), nonce)
            return True

    def list_open(self, limit: int) -> list[Circuit]:
        """Circuits that are not closed, by their hosts' names."""
        with self._lock:
            circuits = [circuit for circuit, _ in self._circuits.values() if circuit.openings]
        return sorted(circuits, key=lambda circuit: (circuit.host, circuit.owner))[:limit]
