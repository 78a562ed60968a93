"""Composes what tells operators how far dispatch has come."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.trigger.dispatch_status import DispatchStatusReader


class DispatchStatusServices(Part):
    """How far dispatch has come."""

    @cached_property
    def reader(self) -> DispatchStatusReader:
        """Reads the trigger's cursors and the queues."""
        core, settings = self.part(CoreServices), self.settings
        return DispatchStatusReader(
            cursors=core.stores.cursors,
            queues=core.queues,
            shards=core.shards,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            pulled_types=sorted(settings.pulled_queue_urls),
            operators=settings.operators,
        )
