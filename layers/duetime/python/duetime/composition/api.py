"""Composes the use cases for requests and events that are not about tasks, schedules or topologies.

These use cases concern API keys, the audit log, groups, links, limits, intake, and bulk operations. The authorizer
needs only API keys, so the modules of the other use cases are imported within their properties.
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
    from duetime.composition.core import BulkServices, CoreServices, QuotaServices
    from duetime.composition.tasks import TaskServices, TopologyServices
    from duetime.domain.bulk import BulkKind, BulkRequest
    from duetime.ports.stores import AuditLog
    from duetime.services.bulk.executor import BulkExecutor
    from duetime.services.bulk.filter_actions import BulkRequests
    from duetime.services.explanations.tasks import StartPreviewer
    from duetime.services.group_admin import GroupManager
    from duetime.services.intake import EventTaskCreator, IntakeRuleAdmin, RuleReader
    from duetime.services.links import LinkHolders, TaskLinks
    from duetime.services.order_lines import OrderedKeyReader
    from duetime.services.purges import OwnerResources, Purges, PurgeSteps
    from duetime.services.quotas.admin import QuotaUsage
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.rates import RateAdmin
    from duetime.services.schedules.manage import FilteredSchedules
    from duetime.services.signals import Signals
    from duetime.services.tasks.held_keys import UniqueKeyReader
    from duetime.services.topologies.deletion import TopologyEraser
    from duetime.services.topologies.service import TopologyService


class ApiKeyServices(Part):
    """Manages and checks API keys."""

    @cached_property
    def admin(self) -> ApiKeyAdmin:
        """Creates, lists and revokes keys."""
        return ApiKeyAdmin(self._store, self.runtime, self.settings.accepts_api_keys)

    @cached_property
    def check(self) -> ApiKeyCheck:
        """Checks the API keys that requests contain."""
        return ApiKeyCheck(self._store, self.runtime)

    @cached_property
    def _store(self) -> DynamoApiKeyStore:
        return DynamoApiKeyStore(self.platform.clients.dynamodb(), self.settings.table)


class AuditServices(Part):
    """Writes the audit log."""

    @cached_property
    def log(self) -> AuditLog:
        """The audit log, with a log stream for this process."""
        from duetime.adapters.audit_log import CloudWatchAuditLog

        day = to_iso(self.runtime.now())[:10].replace("-", "/")
        stream = f"{day}/{self.runtime.nonce()}"
        return CloudWatchAuditLog(self.platform.clients.logs(), self.settings.audit_log_group, stream)


class GroupServices(Part):
    """Shows and closes groups."""

    @cached_property
    def manager(self) -> GroupManager:
        """Shows and closes groups."""
        from duetime.services.group_admin import GroupManager
        from duetime.services.groups import GroupMembers

        core = _core(self)
        members = GroupMembers(core.stores, core.enqueuer, self.runtime)
        return GroupManager(core.stores, members, _tasks(self).creator, core.long_polls, self.runtime)


class LinkServices(Part):
    """Manages links to tasks, and processes their holders' requests."""

    @cached_property
    def admin(self) -> TaskLinks:
        """Creates, lists and deletes links."""
        from duetime.services.links import TaskLinks

        return TaskLinks(self._store, _core(self).task_reader, self.runtime)

    @cached_property
    def holders(self) -> LinkHolders:
        """Processes the requests of link holders."""
        from duetime.services.links import LinkHolders

        tasks = _tasks(self)
        return LinkHolders(
            store=self._store,
            task_reader=_core(self).task_reader,
            runtime=self.runtime,
            approvals=lambda: tasks.approvals,
            reports=lambda: tasks.attempt_reports,
            admit=self._admit,
        )

    def _admit(self, owner: str) -> None:
        if self.settings.has_quotas:
            _quotas(self).guard.admit_read(owner)

    @cached_property
    def _store(self) -> DynamoLinkStore:
        from duetime.adapters.dynamodb.links import DynamoLinkStore

        return DynamoLinkStore(self.platform.clients.dynamodb(), self.settings.table)


class LimitServices(Part):
    """Manages rates, unique keys and ordered keys. `LockServices` manages locks, because workers also need them."""

    @cached_property
    def rates(self) -> RateAdmin:
        """Shows, pauses, resets and pins rates."""
        from duetime.services.rates import RateAdmin

        tasks = _tasks(self)
        return RateAdmin(_core(self).stores.rates, tasks.reader, tasks.control, self.runtime)

    @cached_property
    def unique_keys(self) -> UniqueKeyReader:
        """Shows unique keys."""
        from duetime.services.tasks.held_keys import UniqueKeyReader

        core = _core(self)
        return UniqueKeyReader(core.stores, core.task_reader)

    @cached_property
    def ordered_keys(self) -> OrderedKeyReader:
        """Shows ordered keys."""
        from duetime.services.order_lines import OrderedKeyReader

        return OrderedKeyReader(_core(self).stores, self.runtime.clock)

    @cached_property
    def previewer(self) -> StartPreviewer:
        """Previews when tasks would start."""
        from duetime.services.explanations.tasks import StartPreviewer

        tasks, core = _tasks(self), _core(self)
        quotas = self._quotas if self.settings.has_quotas else None
        return StartPreviewer(tasks.creator, tasks.explainer, core.queues, quotas)

    def _quotas(self) -> tuple[QuotaBook, QuotaUsage]:
        quotas = _quotas(self)
        return quotas.book, quotas.usage


class IntakeServices(Part):
    """Processes events, and manages the rules for events."""

    @property
    def owner(self) -> str:
        """Owner of tasks that are created from events without an owner.

        Raises:
            IntakeOff: the deployment has no intake.
        """
        if not self.settings.has_intake:
            raise IntakeOff
        return self.settings.intake_owner

    @cached_property
    def rule_admin(self) -> IntakeRuleAdmin:
        """Shows and sets intake rules.

        Raises:
            IntakeOff: the deployment has no intake.
        """
        from duetime.services.intake import IntakeRuleAdmin

        if not self.settings.has_intake:
            raise IntakeOff
        return IntakeRuleAdmin(_core(self).stores.intake_rules, self.runtime)

    @cached_property
    def event_tasks(self) -> EventTaskCreator:
        """Creates and cancels tasks for events."""
        from duetime.adapters.sqs import SqsRejects
        from duetime.services.intake import EventTaskCreator, IntakeRuleCache

        return EventTaskCreator(
            batch_creator=_tasks(self).batch_creator,
            owner=self.owner,
            rule_cache=IntakeRuleCache(_core(self).stores.intake_rules, self.runtime),
            read_rule=_rule_reader,
            bulk_requests=lambda: self._bulk_requests,
            rejects=SqsRejects(self.platform.clients.sqs(), self.settings.intake_rejects, self.runtime.executor),
            telemetry=self.runtime.telemetry,
        )

    @property
    def _bulk_requests(self) -> BulkRequests:
        return self.part(FilterActionServices).requests


class FilterActionServices(Part):
    """Applies actions to all tasks that match a filter."""

    @cached_property
    def requests(self) -> BulkRequests:
        """Applies actions to the tasks that match a filter."""
        from duetime.services.bulk.filter_actions import BulkRequests, FilteredTasks

        stores, tasks = _core(self).stores, _tasks(self)
        filtered_tasks = FilteredTasks(
            stores.tasks, tasks.reader, tasks.updater, tasks.control, self._eraser, self._topology_service, self.runtime
        )
        operations = _bulk(self).operations
        return BulkRequests(
            operations=operations,
            filtered_tasks=filtered_tasks,
            filtered_schedules=lambda: self._filtered_schedules,
            signals=lambda: self._signals,
            stores=stores,
            runtime=self.runtime,
            read_request=read_bulk_request,
        )

    def _eraser(self) -> TopologyEraser:
        return _topologies(self).eraser

    def _topology_service(self) -> TopologyService:
        return _topologies(self).service

    @cached_property
    def _signals(self) -> Signals:
        # Few operations are signals, so the module is imported only for them.
        from duetime.services.signals import Signals

        core = _core(self)
        return Signals(core.stores, core.enqueuer, self.runtime)

    @cached_property
    def _filtered_schedules(self) -> FilteredSchedules:
        # Few operations are about schedules, and the module for schedule times takes long to import.
        from duetime.composition.schedules import ScheduleServices
        from duetime.services.schedules.manage import FilteredSchedules

        return FilteredSchedules(self.part(ScheduleServices).manager, self.runtime.clock)


class BulkExecutorServices(Part):
    """Runs bulk operations."""

    @cached_property
    def executor(self) -> BulkExecutor:
        """Runs bulk operations."""
        from duetime.services.bulk.executor import BulkExecutor
        from duetime.services.topologies.bulk_node_actions import TopologySteps

        topologies = _topologies(self)
        return BulkExecutor(
            store=_core(self).stores.bulk,
            runtime=self.runtime,
            filter_steps=self.part(FilterActionServices).requests,
            topology_steps=TopologySteps(topologies.outlines, topologies.reconciler, topologies.node_eraser),
            purge_steps=lambda: self.part(PurgeServices).steps,
        )


class PurgeServices(Part):
    """Accepts and carries out purges."""

    @cached_property
    def purges(self) -> Purges:
        """Accepts purges."""
        from duetime.services.purges import Purges

        stores, operations = _core(self).stores, _bulk(self).operations
        return Purges(operations, stores, self.runtime)

    @cached_property
    def steps(self) -> PurgeSteps:
        """Carries out the steps of purges."""
        from duetime.adapters.archive_bucket import ArchiveBucket
        from duetime.contract.bulk.purges import PurgeBodies
        from duetime.services.purges import PurgeSteps, TaskPurger

        stores, bucket = _core(self).stores, self.settings.archive_bucket
        control, eraser = _tasks(self).control, _topologies(self).eraser
        return PurgeSteps(
            filtered_tasks=self.part(FilterActionServices).requests.filtered_tasks,
            task_purger=TaskPurger(control, eraser, stores, self.runtime),
            resources=lambda: self._resources,
            archive=ArchiveBucket(self.platform.clients.s3(), bucket) if bucket else None,
            stores=stores,
            runtime=self.runtime,
            read_request=PurgeBodies(),
        )

    @cached_property
    def _resources(self) -> OwnerResources:
        from duetime.composition.attempts import SwitchServices
        from duetime.composition.schedules import ScheduleServices
        from duetime.services.purges import OwnerResources

        core, schedules = _core(self), self.part(ScheduleServices)
        return OwnerResources(
            schedules=schedules.manager,
            calendars=schedules.calendar_manager,
            definitions=core.topology_definitions,
            types=core.type_admin,
            switches=self.part(SwitchServices).admin,
            rates=self.part(LimitServices).rates,
            stores=core.stores,
            runtime=self.runtime,
        )


def read_bulk_request(kind: BulkKind, text: bytes) -> BulkRequest:
    """The `duetime.ports.stores.BulkRequestReader` that parses requests with the REST contract's pydantic models."""
    from duetime.domain.bulk import BulkKind

    if kind.is_of_schedules:
        from duetime.contract.schedules import bodies

        return bodies.read_stored(kind, text)
    if kind is BulkKind.SIGNAL:
        from duetime.contract import signals

        return signals.read_stored(text)
    from duetime.contract.bulk.bodies import read_stored

    return read_stored(kind, text)


def _rule_reader() -> RuleReader:
    # Few deployments have rules, so the module is imported only for them.
    from duetime.contract import intake_rules

    return intake_rules.RuleReader()


def _core(part: Part) -> CoreServices:
    from duetime.composition.core import CoreServices

    return part.part(CoreServices)


def _bulk(part: Part) -> BulkServices:
    from duetime.composition.core import BulkServices

    return part.part(BulkServices)


def _quotas(part: Part) -> QuotaServices:
    from duetime.composition.core import QuotaServices

    return part.part(QuotaServices)


def _tasks(part: Part) -> TaskServices:
    from duetime.composition.tasks import TaskServices

    return part.part(TaskServices)


def _topologies(part: Part) -> TopologyServices:
    from duetime.composition.tasks import TopologyServices

    return part.part(TopologyServices)
