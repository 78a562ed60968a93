"""Composes the intake of events, and the rules by which events create, cancel and wake tasks."""

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
    from duetime.services.intake import RuleReader


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
    def event_tasks(self) -> EventTaskCreator:
        """Creates and cancels tasks as events say."""
        from duetime.adapters.sqs import SqsRejects

        return EventTaskCreator(
            batch_creator=self.part(TaskServices).batch_creator,
            owner=self.owner,
            rule_cache=IntakeRuleCache(self.part(CoreServices).stores.intake_rules, self.runtime),
            read_rule=_rule_reader,
            bulk_requests=lambda: self._bulk_requests,
            rejects=SqsRejects(self.platform.clients.sqs(), self.settings.intake_rejects, self.runtime.executor),
            telemetry=self.runtime.telemetry,
        )

    @property
    def _bulk_requests(self) -> BulkRequests:
        # Few events cancel tasks, so the modules are imported only for them.
        from duetime.composition.bulk import FilterActionServices

        return self.part(FilterActionServices).requests


def _rule_reader() -> RuleReader:
    # Few deployments have rules, so the module is imported only for them.
    from duetime.contract import intake_rules

    return intake_rules.RuleReader()
