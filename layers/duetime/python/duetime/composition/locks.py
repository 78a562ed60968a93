"""Composes the use cases of locks and switches."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.locking import LockAdmin, LockManager
from duetime.services.start_gates import SwitchGate
from duetime.services.switch_admin import SwitchAdmin


class LockServices(Part):
    """Takes, shows and releases locks."""

    @cached_property
    def manager(self) -> LockManager:
        """Takes and hands on locks."""
        core = self.part(CoreServices)
        return LockManager(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            lease=self.settings.lease_ms,
            concurrency_caps=self.part(SwitchServices).gate,
        )

    @cached_property
    def admin(self) -> LockAdmin:
        """Shows locks, and releases them by force."""
        return LockAdmin(self.part(CoreServices).stores.locks, self.manager, self.runtime)


class SwitchServices(Part):
    """Applies and sets switches."""

    @cached_property
    def gate(self) -> SwitchGate:
        """Applies switches."""
        return SwitchGate(self.part(CoreServices).stores.switches, self.runtime)

    @cached_property
    def admin(self) -> SwitchAdmin:
        """Sets switches, and lists what postpones tasks."""
        return SwitchAdmin(self.part(CoreServices).stores, self.settings.operators, self.runtime)
