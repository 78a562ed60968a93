"""Composes the use cases of tasks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import deferred, read_graph, topology_definitions
from duetime.composition.deferred_schedules import overlap_control
from duetime.composition.locks import LockServices
from duetime.composition.outcomes import OutcomeServices
from duetime.composition.root import Part
from duetime.services.long_poll_limit import LongPolls
from duetime.services.tasks.attempt_reports import AttemptReports
from duetime.services.tasks.control import TaskControl, TaskReopener
from duetime.services.tasks.create import BatchCreator, KeyConflicts, TaskCreator
from duetime.services.tasks.creation_rules import CreationRules
from duetime.services.tasks.erase import TaskEraser
from duetime.services.tasks.read import ArchiveAge, OutcomeWaiter, TaskReader
from duetime.services.tasks.update import TaskUpdater

if TYPE_CHECKING:
    from duetime.services.tasks.approvals import Approvals


class TaskServices(Part):
    """Creates, reads, changes and controls tasks."""

    @cached_property
    def creation_rules(self) -> CreationRules:
        """Rules for accepting tasks."""
        core = self.part(CoreServices)
        return CreationRules(core.target_rules, read_graph, topology_definitions(core.stores, self.runtime))

    @cached_property
    def creator(self) -> TaskCreator:
        """Creates tasks."""
        core = self.part(CoreServices)
        conflicts = deferred(self._key_conflicts)
        return TaskCreator(core.stores, core.enqueuer, self.runtime, core.shards, self.creation_rules, conflicts)

    @cached_property
    def batch_creator(self) -> BatchCreator:
        """Creates many tasks."""
        return BatchCreator(self.creator)

    def _key_conflicts(self) -> KeyConflicts:
        return KeyConflicts(self.updater, self.part(CoreServices).stores.keys, self.runtime)

    @cached_property
    def reader(self) -> TaskReader:
        """Reads tasks."""
        settings = self.settings
        archive = ArchiveAge(self.runtime.clock, settings.retention_ms) if settings.archive_bucket else None
        return TaskReader(self.part(CoreServices).stores, archive, self.runtime.clock)

    @cached_property
    def updater(self) -> TaskUpdater:
        """Changes and cancels tasks."""
        core = self.part(CoreServices)
        return TaskUpdater(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention_ms,
            lock_manager=self.part(LockServices).manager,
            rules=self.creation_rules,
            occurrence_listener=overlap_control(self),
        )

    @cached_property
    def control(self) -> TaskControl:
        """Pauses, resumes, runs, retries and stops tasks."""
        core = self.part(CoreServices)
        return TaskControl(
            stores=core.stores,
            enqueuer=core.enqueuer,
            task_updater=self.updater,
            lock_manager=self.part(LockServices).manager,
            runtime=self.runtime,
            reopener=TaskReopener(core.stores, core.enqueuer, self.runtime),
        )

    @cached_property
    def eraser(self) -> TaskEraser:
        """Erases tasks."""
        return TaskEraser(self.part(CoreServices).stores, self.updater, self.runtime)

    @cached_property
    def approvals(self) -> Approvals:
        """Records decisions on tasks that wait for an approval."""
        # Few requests are decisions, so the module is imported only for them.
        from duetime.services.tasks.approvals import Approvals

        core = self.part(CoreServices)
        return Approvals(self.reader, core.stores, core.enqueuer, self.runtime, self.settings.retention_ms)

    @cached_property
    def attempt_reports(self) -> AttemptReports:
        """Processes heartbeats and notifications of asynchronous targets."""
        core, outcomes = self.part(CoreServices), self.part(OutcomeServices)
        return AttemptReports(
            task_reader=self.reader,
            stores=core.stores,
            enqueuer=core.enqueuer,
            outcome_writer=outcomes.delegating_writer,
            completion=outcomes.delegated_completion,
            lock_manager=self.part(LockServices).manager,
            runtime=self.runtime,
        )

    @cached_property
    def waiter(self) -> OutcomeWaiter:
        """Waits for outcomes."""
        return OutcomeWaiter(self.part(CoreServices).stores.tasks, self.runtime.clock, self.long_polls)

    @cached_property
    def long_polls(self) -> LongPolls:
        """Limits how many requests wait."""
        return LongPolls(self.part(CoreServices).stores.long_polls, self.runtime, self.settings.long_polls)
