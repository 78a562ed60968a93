"""Erasing tasks before their retention is over.

What is left in the place of an erased task is its record without anything that its user gave or that its attempts
told: to whoever goes by it, it is a task that has ended, as it was before. So nothing can make the task anew: neither a
repeat of the request or of the event that it was made of, nor its schedule, nor an attempt that comes late. It expires
when the task would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, Unavailable, VersionMismatch
from duetime.domain.tasks.states import NOT_STARTED, Move
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task_changes import NOTHING_LEFT

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.tasks.update import TaskUpdater

_TRIES = 5


@dataclass(frozen=True, slots=True)
class TaskEraser:
    """Erases tasks that have ended, with their contents and attempts."""

    stores: Stores
    task_updater: TaskUpdater
    runtime: Runtime

    def erase(self, owner: str, task_id: TaskId, version: int | None, prepare: Callable[[Task], None]) -> Task:
        """Erase a task; one that has not started is cancelled first.

        Args:
            owner: who asks.
            task_id: the task.
            version: the only one to erase it at; any, if there is none.
            prepare: is called with the ended task before each attempt to erase it; what it raises ends this.

        Returns:
            The task as it was.

        Raises:
            TaskNotFound: there is none, or it is another owner's, or was erased before.
            StateConflict: it runs, or what follows its outcome is not done.
            VersionMismatch: it is at another version.
            Unavailable: a store failed, or others kept writing the task.
        """
        for _ in range(_TRIES):
            task = self._read(owner, task_id, version)
            if task.state in NOT_STARTED:
                task, version = self.task_updater.cancel(owner, task_id, version), None
            _check(task)
            prepare(task)
            if self.erase_record(task, self._finish(task)):
                return task
        raise Unavailable(f"the task {task_id} was written by others again and again")

    def erase_record(self, task: Task, more: TaskChanges) -> bool:
        """Erase an ended task as it was just read, and change more of it; says whether it still was at this version."""
        sets: TaskChanges = {**NOTHING_LEFT, **more}
        write = Write(task.id, Move.ERASE, self.runtime.nonce(), Guard(version=task.version), sets)
        if not isinstance(self.stores.tasks.apply(write), Applied):
            return False
        self.stores.contents.erase(task.id, task.contents_outside)
        return True

    def _read(self, owner: str, task_id: TaskId, version: int | None) -> Task:
        task = self.stores.tasks.read(task_id)
        if task is not None and task.erased and task.owner == owner:
            # Whoever erased it may not have come to its contents; the names of those in S3 are gone: they expire.
            self.stores.contents.erase(task_id, ())
        if task is None or not task.exists_for(owner):
            raise TaskNotFound(task_id)
        if version not in (None, task.version):
            raise VersionMismatch(task)
        return task

    def _finish(self, task: Task) -> TaskChanges:
        """What closes a task together with its erasure, if nobody has closed it."""
        if task.finished_at is not None:
            return {}
        now = self.runtime.now()
        return {"finished_at": now, "expires_at": now + self.task_updater.retention}


def _check(task: Task) -> None:
    if not task.is_terminal:
        raise StateConflict(task, "deleted: cancel it first")
    # A worker closes a cancelled topology; if it never began, there is nothing for that worker to do.
    never_began = isinstance(task.target, TopologyTarget) and not task.fence
    has_followers = task.callback_url is not None or task.schedule_ref is not None
    if task.finished_at is None and (has_followers or not never_began):
        raise StateConflict(task, "deleted before what follows its end is done")
