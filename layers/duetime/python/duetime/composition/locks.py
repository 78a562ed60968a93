"""Composes the use cases of locks."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.composition.switches import SwitchServices
from duetime.services.locking import LockAdmin, LockManager


class LockServices(Part):
    """Taking locks, and looking after them."""

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
        """Shows locks, and frees them by force."""
        return LockAdmin(self.part(CoreServices).stores.locks, self.manager, self.runtime)
