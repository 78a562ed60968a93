"""Composes the trigger."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.lambda_invocations import EgressHeartbeat, LambdaFanOut
from duetime.composition import Part
from duetime.composition.core import BulkServices, CoreServices
from duetime.composition.schedules import ScheduleServices
from duetime.services.trigger.dispatcher import Dispatcher, DueMessages, EarlyScan


class TriggerServices(Part):
    """Reads minutes and sends due tasks."""

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Reads minutes."""
        core, look_ahead = self.part(CoreServices), self.settings.look_ahead_ms
        function = self.settings.invoked_as
        due_messages = DueMessages(
            tasks=core.stores.tasks,
            queues=core.queues,
            expander=self.part(ScheduleServices).expander,
            bulk_operations=self.part(BulkServices).operations,
            runtime=self.runtime,
            look_ahead=look_ahead,
            precision=self.settings.precision,
            pace=core.pace,
        )
        return Dispatcher(
            stores=core.stores,
            queues=core.queues,
            fan_out=LambdaFanOut(self.platform.clients.lambdas(), function, self.runtime.executor),
            runtime=self.runtime,
            shards=core.shards,
            look_ahead=look_ahead,
            due_messages=due_messages,
            early_scan=EarlyScan(core.stores.tasks, core.queues, due_messages, self.runtime),
            heartbeat=EgressHeartbeat(
                self.platform.clients.lambdas(),
                self.settings.egress_function,
                self.settings.heartbeat_url,
                self.runtime.telemetry,
            ),
        )
