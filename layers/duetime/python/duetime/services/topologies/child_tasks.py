"""Cancels the child tasks of a task, and all other descendants."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.operating_parameters import CHILDREN_AT_ONCE, MOST_CHILDREN_CANCELLED, MOST_CHILDREN_TIME
from duetime.domain.tasks.states import State
from duetime.ports.tasks import ListQuery
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.read import TaskReader
    from duetime.services.topologies.service import TopologyService

_ENDED, _CANCELLED, _STOPPING, _RUNNING = "ended", "cancelled", "stopping", "running"


@frozen
class CancelledChildren:
    """The results of one request to cancel the children of a task.

    Attributes:
        cancelled: number of tasks that the request has cancelled.
        stopping: number of running tasks that were asked to stop.
        running: number of running tasks that were not asked to stop.
        has_more: whether the request must be repeated, because it could not examine all children.
    """

    cancelled: int = 0
    stopping: int = 0
    running: int = 0
    has_more: bool = False


@frozen
class ChildCanceller:
    """Cancels the descendants of a task, several hundred per request.

    No progress is stored. A repeated request, even after a crash, skips ended tasks and continues with the others.
    """

    tasks: TaskStore
    task_reader: TaskReader
    task_control: TaskControl
    topologies: TopologyService
    runtime: Runtime

    def cancel(self, owner: str, task_id: TaskId, by: Attribution, *, force: bool) -> CancelledChildren:
        """Cancel tasks that have not started; with `force`, also ask running tasks to stop."""
        until = self.runtime.now() + MOST_CHILDREN_TIME
        found: Counter[str] = Counter()
        parents = [task_id]
        while parents:
            for children in self._children(owner, parents.pop()):
                if self.runtime.now() >= until or found[_CANCELLED] >= MOST_CHILDREN_CANCELLED:
                    return _counted(found, has_more=True)
                found.update(self.runtime.executor.map(partial(self._cancelled, by, force), children))
                parents += [each.id for each in children]
        return _counted(found, has_more=False)

    def _children(self, owner: str, parent: TaskId) -> Iterator[Sequence[Task]]:
        after: TaskId | None = None
        while True:
            query = ListQuery(owner, after, descending=False, limit=CHILDREN_AT_ONCE, children_of=parent)
            ids = self.tasks.list_ids(query)
            yield self.task_reader.get_many(owner, ids, consistent=True)
            if len(ids) < CHILDREN_AT_ONCE:
                return
            after = ids[-1]

    def _cancelled(self, by: Attribution, force: bool, task: Task) -> str:  # noqa: FBT001 - given by `partial`
        """Cancel one task; returns what happened to it."""
        if task.is_terminal:
            return _ENDED
        try:
            if force:
                asked = self.task_control.cancel_by_force(task.owner, task.id, None, by)
                ended = self.topologies.apply_gate(asked).task
            else:
                ended = self.task_control.task_updater.cancel(task.owner, task.id, None, by)
        except (StateConflict, VersionMismatch) as refusal:
            return _ENDED if refusal.task.is_terminal else _RUNNING
        except TaskNotFound:
            return _ENDED
        return _CANCELLED if ended.state is State.CANCELLED else _STOPPING


def _counted(found: Counter[str], *, has_more: bool) -> CancelledChildren:
    return CancelledChildren(found[_CANCELLED], found[_STOPPING], found[_RUNNING], has_more)
