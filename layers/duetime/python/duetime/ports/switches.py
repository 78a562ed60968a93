"""The stores of switches and of circuit breakers of HTTP hosts.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.switches import Switches
    from duetime.domain.times import Millis


class SwitchStore(Protocol):
    """The switches of a deployment, which are few."""

    def read(self, *, consistent: bool) -> Switches:
        """Read all switches; there are none while nothing is stored."""
        ...

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store all switches, if they are still at the version that was read.

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

        Returns:
            Whether they are stored.
        """
        ...


class CircuitStore(Protocol):
    """The circuits of HTTP hosts that have failed, each of one owner's calls."""

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read the circuit of an owner's calls to a host; it is closed while nothing is stored."""
        ...

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, if it is still at the version that was read.

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

        Returns:
            Whether it is stored.
        """
        ...

    def list_open(self, limit: int) -> list[Circuit]:
        """Circuits that are not closed, by their hosts' names, eventually consistently."""
        ...
