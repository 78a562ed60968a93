"""Composes the use cases of switches."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.start_gates import SwitchGate
from duetime.services.switch_admin import SwitchAdmin


class SwitchServices(Part):
    """Setting switches, and respecting them."""

    @cached_property
    def gate(self) -> SwitchGate:
        """Respects switches."""
        return SwitchGate(self.part(CoreServices).stores.switches, self.runtime)

    @cached_property
    def admin(self) -> SwitchAdmin:
        """Sets switches, and shows what is postponed."""
        return SwitchAdmin(self.part(CoreServices).stores, self.settings.operators, self.runtime)
