"""Composes what requests and events need besides tasks: API keys, audit log, groups, links and intake.

The authorizer needs API keys only, so what the others need is imported within their properties.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.api_keys import DynamoApiKeyStore
from duetime.composition import Part
from duetime.domain.errors import IntakeOff
from duetime.domain.times import to_iso
from duetime.services.api_keys import ApiKeyAdmin, ApiKeyCheck

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.links import DynamoLinkStore
    from duetime.ports.stores import AuditLog
    from duetime.services.bulk.filter_actions import BulkRequests
    from duetime.services.group_admin import GroupManager
    from duetime.services.intake import EventTaskCreator, IntakeRuleAdmin, RuleReader
    from duetime.services.links import LinkHolders, TaskLinks


class ApiKeyServices(Part):
    """API keys."""

    @cached_property
    def admin(self) -> ApiKeyAdmin:
        """Creates, lists and revokes keys."""
        return ApiKeyAdmin(self._store, self.runtime, self.settings.accepts_api_keys)

    @cached_property
    def check(self) -> ApiKeyCheck:
        """Checks the keys of requests."""
        return ApiKeyCheck(self._store, self.runtime)

    @cached_property
    def _store(self) -> DynamoApiKeyStore:
        return DynamoApiKeyStore(self.platform.clients.dynamodb(), self.settings.table)


class AuditServices(Part):
    """The audit log."""

    @cached_property
    def log(self) -> AuditLog:
        """The log of this process."""
        from duetime.adapters.audit_log import CloudWatchAuditLog

        day = to_iso(self.runtime.now())[:10].replace("-", "/")
        stream = f"{day}/{self.runtime.nonce()}"
        return CloudWatchAuditLog(self.platform.clients.logs(), self.settings.audit_log_group, stream)


class GroupServices(Part):
    """Shows and closes groups."""

    @cached_property
    def manager(self) -> GroupManager:
        """Shows and closes groups."""
        from duetime.composition.core import CoreServices
        from duetime.composition.tasks import TaskServices
        from duetime.services.group_admin import GroupManager
        from duetime.services.groups import GroupMembers

        core = self.part(CoreServices)
        members = GroupMembers(core.stores, core.enqueuer, self.runtime)
        return GroupManager(core.stores, members, self.part(TaskServices).creator, core.long_polls, self.runtime)


class LinkServices(Part):
    """Links to tasks."""

    @cached_property
    def admin(self) -> TaskLinks:
        """Creates, lists and deletes links."""
        from duetime.composition.core import CoreServices
        from duetime.services.links import TaskLinks

        return TaskLinks(self._store, self.part(CoreServices).task_reader, self.runtime)

    @cached_property
    def holders(self) -> LinkHolders:
        """Carries out the requests of links' holders."""
        from duetime.composition.core import CoreServices
        from duetime.composition.tasks import TaskServices
        from duetime.services.links import LinkHolders

        tasks = self.part(TaskServices)
        return LinkHolders(
            store=self._store,
            task_reader=self.part(CoreServices).task_reader,
            runtime=self.runtime,
            approvals=lambda: tasks.approvals,
            reports=lambda: tasks.attempt_reports,
            admit=self._admit,
        )

    def _admit(self, owner: str) -> None:
        if self.settings.has_quotas:
            # Most deployments have no quotas, and import nothing for them.
            from duetime.composition.quotas import QuotaServices

            self.part(QuotaServices).guard.admit_read(owner)

    @cached_property
    def _store(self) -> DynamoLinkStore:
        from duetime.adapters.dynamodb.links import DynamoLinkStore

        return DynamoLinkStore(self.platform.clients.dynamodb(), self.settings.table)


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
        from duetime.composition.core import CoreServices
        from duetime.services.intake import IntakeRuleAdmin

        if not self.settings.has_intake:
            raise IntakeOff
        return IntakeRuleAdmin(self.part(CoreServices).stores.intake_rules, self.runtime)

    @cached_property
    def event_tasks(self) -> EventTaskCreator:
        """Creates and cancels tasks as events say."""
        from duetime.adapters.sqs import SqsRejects
        from duetime.composition.core import CoreServices
        from duetime.composition.tasks import TaskServices
        from duetime.services.intake import EventTaskCreator, IntakeRuleCache

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
