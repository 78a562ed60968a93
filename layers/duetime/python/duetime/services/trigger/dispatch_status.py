"""Shows operators the progress of dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import DispatchStatus, WorkQueue, dispatch_status, groups_of
from duetime.domain.tasks.task_options import Priority
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import CursorStore
    from duetime.services.enqueue import Shards


@frozen
class DispatchStatusReader:
    """Reads the trigger's cursors and the depths of the queues; writes nothing.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads minutes, in milliseconds.
        pulled_types: types that have their own queue.
    """

    cursors: CursorStore
    queues: WorkQueues
    shards: Shards
    runtime: Runtime
    look_ahead: Millis
    pulled_types: Sequence[str]

    def read(self) -> DispatchStatus:
        """The progress of dispatch for all owners' tasks.

        Raises:
            Unavailable: the table or a queue did not answer.
        """
        shards = self.shards.announced().number
        groups = groups_of(shards)
        # Pull queues have no priority of their own; any value works.
        names = [*((each, "") for each in Priority), *((Priority.NORMAL, name) for name in self.pulled_types)]
        cursors = self.runtime.executor.map(self.cursors.read, groups)
        queues = self.runtime.executor.map(lambda each: self._queue(*each), names)
        return dispatch_status(cursors, shards, self.look_ahead, queues)

    def _queue(self, priority: Priority, pulled_type: str) -> WorkQueue:
        return WorkQueue(priority, self.queues.depth(priority, pulled_type), pulled_type or None)
