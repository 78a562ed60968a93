"""A world with switches and circuits: what is stopped does not begin, and hosts that fail are left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.memory.circuit_breakers import MemoryCircuitStore
from duetime.adapters.memory.switches import MemorySwitchStore
from duetime.domain.admins import Admins
from duetime.domain.errors import Unavailable
from duetime.domain.switches import Switch, SwitchKey, SwitchScope
from duetime.services.switches.admin import SwitchAdmin
from duetime.services.switches.gate import SwitchGate
from duetime.services.worker.circuit_breaker import CircuitBreakers
from tests.virtual.world import World

if TYPE_CHECKING:
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.switches import Switches
    from duetime.domain.times import Millis

OPERATOR = "ops"


class FaultySwitchStore(MemorySwitchStore):
    """Switches in memory, which can be away; counts its readings.

    Attributes:
        quarrels: so many times yet, somebody else's write comes first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.readable = True
        self.readings = 0
        self.quarrels = 0

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store all switches, after somebody else if there is a quarrel."""
        if self.quarrels:
            self.quarrels -= 1
            other = Switch(SwitchKey(SwitchScope.EVERYTHING), stopped=True, changed_at=self.quarrels)
            super().save(self._stored[0].with_switch(other), f"quarrel {self.quarrels}")
        return super().save(switches, nonce)

    def read(self, *, consistent: bool) -> Switches:
        """Read all switches, unless that is not possible just now."""
        self.readings += 1
        if not self.readable:
            raise Unavailable("away")
        return super().read(consistent=consistent)


class FaultyCircuitStore(MemoryCircuitStore):
    """Circuits in memory, which can be away; counts what is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.available = True
        self.readings = 0
        self.savings = 0

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read a circuit, unless that is not possible just now."""
        self.readings += 1
        if not self.available:
            raise Unavailable("away")
        return super().read(owner, host, consistent=consistent)

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, unless that is not possible just now."""
        self.savings += 1
        if not self.available:
            raise Unavailable("away")
        return super().save(circuit, nonce, expires_at)


class SwitchedWorld(World):
    """A world whose workers heed switches and circuits."""

    def _wire(self) -> None:
        super()._wire()
        self.switches = FaultySwitchStore()
        self.circuits = FaultyCircuitStore()
        self.stores.switches, self.stores.circuit_breakers = self.switches, self.circuits
        self.switch_gate = SwitchGate(self.switches, self.runtime)
        operators = Admins(frozenset({OPERATOR}))
        self.switch_admin = SwitchAdmin(self.stores, operators, self.runtime)
        self.circuit_breakers = CircuitBreakers(self, self.circuits, self.runtime)
        self.lock_manager = replace(self.lock_manager, concurrency_caps=self.switch_gate)
        self.task_control = replace(self.task_control, lock_manager=self.lock_manager)
        self.attempt_runner = replace(
            self.attempt_runner,
            lock_manager=self.lock_manager,
            start_gate=self.switch_gate,
            targets=self.circuit_breakers,
        )
        self.batch_worker = replace(self.batch_worker, attempt_runner=self.attempt_runner)

    def stop(self, key: SwitchKey) -> None:
        """Stop something."""
        self.switch_admin.put(OPERATOR, Switch(key, stopped=True, reason="an incident"))

    def lift(self, key: SwitchKey) -> None:
        """Let it go on."""
        self.switch_admin.remove(OPERATOR, key)
