"""Composes links: their management, and the requests of their holders."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.dynamodb.links import DynamoLinkStore
from duetime.composition import Part
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.services.links import LinkHolders, TaskLinks


class LinkServices(Part):
    """Links to tasks."""

    @cached_property
    def admin(self) -> TaskLinks:
        """Creates, lists and deletes links."""
        return TaskLinks(self._store, self.part(CoreServices).task_reader, self.runtime)

    @cached_property
    def holders(self) -> LinkHolders:
        """Carries out the requests of links' holders."""
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
        return DynamoLinkStore(self.platform.clients.dynamodb(), self.settings.table)
