"""Sets switches, and lists everything that postpones tasks: switches and open circuits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import OperatorRequired, SwitchesFull, SwitchNotFound, Unavailable
from duetime.domain.limits import MAX_PAGE, MAX_SWITCHES
from duetime.domain.switches import ALL_TASKS, SwitchKey, SwitchScope, SwitchSetter
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.callers import Caller
    from duetime.domain.circuit_breakers import Circuit, CircuitState
    from duetime.domain.switches import StoredSwitches, Switch, Switches
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores


_TRIES = 20


@frozen
class SwitchAdmin:
    """Sets switches. Operators can set all switches, and other owners can set only the switch for their own tasks."""

    stores: Stores
    runtime: Runtime

    def list(self, caller: Caller) -> tuple[Sequence[Switch], Sequence[tuple[Circuit, CircuitState]]]:
        """The switches, and the circuits that are not closed; for other callers than operators, only their switches."""
        found = sorted(
            self.stores.switches.read(consistent=True).in_force.by_key.values(), key=lambda switch: switch.key
        )
        if not caller.is_operator:
            return [switch for switch in found if _concerns(switch.key, caller.owner)], []
        now = self.runtime.now()
        return found, [(circuit, circuit.state(now)) for circuit in self.stores.circuit_breakers.list_open(MAX_PAGE)]

    def get(self, caller: Caller, key: SwitchKey) -> Switch:
        """One switch.

        Raises:
            SwitchNotFound: the switch does not exist, or concerns only other owners.
        """
        found = self.stores.switches.read(consistent=True).in_force.by_key.get(key)
        if found is None or not (_concerns(key, caller.owner) or caller.is_operator):
            raise SwitchNotFound(key)
        return found

    def put(self, caller: Caller, switch: Switch) -> Switch:
        """Set a switch, replacing an earlier switch with the same key; a switch that has no effect is removed.

        Raises:
            OperatorRequired: the switch also concerns other owners, or an operator has set it.
            SwitchesFull: there are too many switches.
            Unavailable: too many concurrent writes.
        """
        wanted = replace(switch, updated_at=self.runtime.now(), updated_by=caller.owner)

        def change(switches: Switches) -> Switches:
            changed = switches.with_switch(wanted)
            if _counted(changed) > max(MAX_SWITCHES, _counted(switches)):
                raise SwitchesFull(MAX_SWITCHES)
            return changed

        self._change(caller, switch.key, _setter(caller), change)
        return wanted

    def delete(self, caller: Caller, key: SwitchKey) -> Switch:
        """Delete a switch; tasks that it postponed are checked again anyway.

        Operators can also delete owners' switches.

        Raises:
            OperatorRequired: the switch also concerns other owners, or an operator has set it.
            SwitchNotFound: the switch does not exist.
            Unavailable: too many concurrent writes.
        """
        setters = SwitchSetter if caller.is_operator else (SwitchSetter.OWNERS,)
        found = [self._change(caller, key, each, lambda switches: switches.without(key)) for each in setters]
        # If both an owner and an operator had set the switch, the operator's switch was in effect, so that switch is
        # returned.
        deleted = next((before.by_key[key] for before in found if key in before.by_key), None)
        if deleted is None:
            raise SwitchNotFound(key)
        return deleted

    def _change(
        self, caller: Caller, key: SwitchKey, setter: SwitchSetter, change: Callable[[Switches], Switches]
    ) -> Switches:
        """Apply a change to a setter's current switches; returns the switches before the change."""
        for _ in range(_TRIES):
            stored = self.stores.switches.read(consistent=True)
            self._check(caller, key, stored)
            before = stored.of(setter)
            after = change(before)
            if after == before or self.stores.switches.save(after, self.runtime.nonce()):
                return before
        raise Unavailable("too many concurrent writes to the switches; try again")

    def _check(self, caller: Caller, key: SwitchKey, stored: StoredSwitches) -> None:
        if caller.is_operator:
            return
        if key != SwitchKey(SwitchScope.OWNER, caller.owner) or key in stored.operators.by_key:
            raise OperatorRequired


def _setter(caller: Caller) -> SwitchSetter:
    return SwitchSetter.OPERATORS if caller.is_operator else SwitchSetter.OWNERS


def _counted(switches: Switches) -> int:
    """The number of switches except the switch for all tasks, which can be set even if the limit is reached."""
    return len(switches.by_key.keys() - {ALL_TASKS})


def _concerns(key: SwitchKey, owner: str) -> bool:
    return key.scope is not SwitchScope.OWNER or key.name == owner
