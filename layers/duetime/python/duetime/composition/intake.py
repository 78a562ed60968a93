"""Composes the intake of events, and the rules by which events create and cancel tasks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.domain.errors import IntakeOff
from duetime.services.intake import EventTaskCreator, IntakeRuleAdmin, IntakeRuleCache

if TYPE_CHECKING:
    from duetime.services.bulk.filter_actions import BulkRequests


class IntakeServices(Part):
    """Takes events in, and shows and sets the rules for them."""

    @property
    def owner(self) -> str:
        """Owner of the tasks of events that name none.

        Raises:
            IntakeOff: the deployment has no intake.
        """
        if not self.settings.has_intake:
            raise IntakeOff
        return self.settings.intake_owner

    @cached_property
    def rule_admin(self) -> IntakeRuleAdmin:
        """Shows and sets rules.

        Raises:
            IntakeOff: the deployment has no intake.
        """
        if not self.settings.has_intake:
            raise IntakeOff
        return IntakeRuleAdmin(self.part(CoreServices).stores.intake_rules, self.runtime)

    @cached_property
    def rule_cache(self) -> IntakeRuleCache:
        """The rules in force."""
        return IntakeRuleCache(self.part(CoreServices).stores.intake_rules, self.runtime)

    @cached_property
    def event_tasks(self) -> EventTaskCreator:
        """Creates and cancels tasks as events say."""
        from duetime.adapters.sqs import SqsRejects

        settings, runtime = self.settings, self.runtime
        rejects = SqsRejects(self.platform.clients.sqs(), settings.intake_rejects, runtime.executor)
        creator = self.part(TaskServices).batch_creator
        return EventTaskCreator(creator, lambda: self._bulk_requests, rejects, runtime.telemetry)

    @property
    def _bulk_requests(self) -> BulkRequests:
        # Few events cancel tasks, so the modules are imported only for them.
        from duetime.composition.bulk import FilterActionServices

        return self.part(FilterActionServices).requests
