"""Erases tasks before their retention ends.

The record of an erased task is kept without user data and attempt reports, so readers still see a task that has ended.
Therefore, neither a repeated request or event nor the schedule can create the task again, and a late attempt cannot
change the task. The record expires when the unerased task would have expired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, Unavailable, VersionMismatch
from duetime.domain.tasks.states import NOT_STARTED, Move
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task_changes import NOTHING_LEFT
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.tasks.update import TaskUpdater


_TRIES = 5
"""How often a change is tried if the record is written concurrently between the read and the write."""


@frozen
class TaskEraser:
    """Erases ended tasks with their contents and attempts."""

    stores: Stores
    task_updater: TaskUpdater
    runtime: Runtime

    def erase(self, owner: str, task_id: TaskId, version: int | None, prepare: Callable[[Task], None]) -> Task:
        """Erase a task; a task that has not started is cancelled first.

        Args:
            owner: owner who requests the erasure.
            task_id: id of the task.
            version: required version; `None` for any version.
            prepare: called with the ended task before each attempt to erase the task; errors of `prepare` are passed
                on.

        Returns:
            The task before it was erased.

        Raises:
            TaskNotFound: the task does not exist, belongs to another owner, or was erased before.
            StateConflict: the task is running, or the steps after its outcome are not done.
            VersionMismatch: the task is not at the required version.
            Unavailable: a store failed, or concurrent writes kept changing the task.
        """
        for _ in range(_TRIES):
            task = self._read(owner, task_id, version)
            if task.state in NOT_STARTED:
                task, version = self.task_updater.cancel(owner, task_id, version), None
            _check(task)
            prepare(task)
            if self.erase_record(task, self._finish(task)):
                return task
        raise Unavailable(f"the task {task_id} has too many concurrent writes")

    def erase_record(self, task: Task, more: TaskChanges) -> bool:
        """Erase an ended task, with other changes in the same write; returns whether the task's version was current."""
        sets: TaskChanges = {**NOTHING_LEFT, **more}
        write = Write(task.id, Move.ERASE, self.runtime.nonce(), Guard(version=task.version), sets)
        if not isinstance(self.stores.tasks.apply(write), Applied):
            return False
        self.stores.contents.erase(task.id, task.contents_outside)
        if task.order is not None:
            # A failed task may have stopped the line of its ordered key, so the line is released.
            self.task_updater.order_lines().release_if_possible(replace(task, erased=True))
        return True

    def _read(self, owner: str, task_id: TaskId, version: int | None) -> Task:
        task = self.stores.tasks.read(task_id)
        if task is not None and task.erased and task.owner == owner:
            # The process that erased the record may have crashed before erasing its contents; the names of contents in
            # S3 are lost, so these contents expire on their own.
            self.stores.contents.erase(task_id, ())
        if task is None or not task.exists_for(owner):
            raise TaskNotFound(task_id)
        if version not in (None, task.version):
            raise VersionMismatch(task)
        return task

    def _finish(self, task: Task) -> TaskChanges:
        """Changes that finish the task in the write that erases it; empty if the task is already finished."""
        if task.finished_at is not None:
            return {}
        now = self.runtime.now()
        return {"finished_at": now, "expires_at": now + self.task_updater.retention.of(task.type)}


def _check(task: Task) -> None:
    if not task.is_terminal:
        raise StateConflict(task, "deleted: cancel it first")
    # A worker finishes a cancelled topology; no worker is needed if the topology never began.
    never_began = isinstance(task.target, TopologyTarget) and not task.claims
    has_followers = task.callback_url is not None or task.schedule_ref is not None or task.has_dependents
    if task.finished_at is None and (has_followers or not never_began):
        raise StateConflict(task, "deleted before its follow-ups are done")
