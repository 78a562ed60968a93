"""Updates the lists of owners' tasks from the table's stream."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.change_events import task_snapshot
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import LIST_BUILD_TASKS, LIST_KNOWN, LIST_SWEEP_TASKS, SUMMARY_GAP
from duetime.domain.tasks.task_lists import (
    ListHead,
    ListWrites,
    late_entries,
    lists_of_state,
    writes_of,
    writes_of_snapshots,
)
from duetime.ports.tasks import ListQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import ChangeBatch, TaskChange
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import TaskListStore, TaskStore

_TRIES = 10
_OWNERS_KNOWN = 10_000
"""Number of owners without lists that a process remembers."""


class TaskListUpdater:
    """`duetime.ports.change_consumers.ChangeConsumer` that keeps the lists of owners with many tasks.

    Args:
        tasks: records of tasks.
        lists: store of the lists.
        runtime: clock; updates several owners in parallel.
        retention: how long an ended task is kept.
        begin_at: how many tasks a partition of an owner's list must have before lists are kept.
    """

    name = "lists"

    def __init__(
        self,
        tasks: TaskStore,
        lists: TaskListStore,
        runtime: Runtime,
        retention: RetentionPolicy,
        begin_at: int,
    ) -> None:
        self._begin_at = begin_at
        self._tasks = tasks
        self._lists = lists
        self._runtime = runtime
        self._retention = retention
        self._without: dict[str, Millis] = {}
        """Owners without lists, with the time at which the missing lists were noticed."""

    def consume(self, changes: ChangeBatch) -> None:
        """Update the lists of every owner in a batch.

        Raises:
            Unavailable: the store did not answer; a repeat of the batch updates the lists.
        """
        by_owner: dict[str, list[TaskChange]] = defaultdict(list)
        for change in changes.tasks:
            if (task := change.after or change.before) is not None:
                by_owner[task.owner].append(change)
        self._runtime.executor.map(lambda each: self._update(*each), by_owner.items())

    def _update(self, owner: str, changes: Sequence[TaskChange]) -> None:
        head = self._head(owner)
        if head is None:
            return
        now = self._runtime.now()
        # The stream keeps changes for only a day, so some changes may have been lost.
        lacks_changes = changes[0].at < now - SUMMARY_GAP
        try:
            if writes := writes_of(changes, self._retention):
                self._lists.write(writes)
        except Unavailable:
            # An owner whose changes come faster than its lists can follow must not delay other owners.
            lacks_changes = True
        if lacks_changes:
            self._begin_anew(head, now)
        elif head.may_build(now):
            self._build(head, now)
        elif (end := head.sweep_end(now)) is not None:
            self._sweep(head, end)

    def _begin_anew(self, head: ListHead, now: Millis) -> None:
        """Begin an owner's lists again, because changes are missing from the lists.

        Raises:
            Unavailable: other processes kept storing their progress; a repeat of the batch may begin the lists again.
        """
        for _ in range(_TRIES):
            anew = replace(ListHead.new(head.owner, now), version=head.version)
            if self._lists.save_head(anew, self._runtime.nonce()):
                self._runtime.telemetry.count("task_lists_begun_anew")
                return
            head = self._lists.head(head.owner) or replace(head, version=0)
        raise Unavailable(f"the lists of {head.owner} could not be restarted")

    def _head(self, owner: str) -> ListHead | None:
        """The progress of an owner's lists, which are begun if the owner has many tasks by now."""
        now = self._runtime.now()
        if now - self._without.get(owner, -LIST_KNOWN) < LIST_KNOWN:
            return None
        head = self._lists.head(owner)
        if head is None and self._tasks.count_listed(owner, self._begin_at) >= self._begin_at:
            self._lists.save_head(ListHead.new(owner, now), self._runtime.nonce())
            head = self._lists.head(owner)
        if head is None:
            if len(self._without) > _OWNERS_KNOWN:
                self._without.clear()
            self._without[owner] = now
        return head

    def _build(self, head: ListHead, now: Millis) -> None:
        """Add some tasks that existed before the lists. If several processes do so, one stores its progress."""
        query = ListQuery(head.owner, head.built_to, descending=False, limit=LIST_BUILD_TASKS)
        ids = self._tasks.list_ids(query)
        tasks = [task_snapshot(each) for each in self._tasks.read_many(ids).values()]
        self._write_checked(writes_of_snapshots(tasks, now, self._retention))
        last = ids[-1] if ids else head.built_to
        self._lists.save_head(
            head.after_building(last, now, is_last=len(ids) < LIST_BUILD_TASKS), self._runtime.nonce()
        )

    def _sweep(self, head: ListHead, end: TaskId) -> None:
        """Add entries of tasks that did not start in time."""
        query = ListQuery(head.owner, head.swept_to, descending=False, limit=LIST_SWEEP_TASKS)
        ids = [each for each in self._tasks.list_ids(query) if each < end]
        tasks = [task_snapshot(each) for each in self._tasks.read_many(ids).values()]
        now = self._runtime.now()
        self._write_checked(late_entries(tasks, now, self._retention))
        swept_to = ids[-1] if len(ids) == LIST_SWEEP_TASKS else end
        self._lists.save_head(head.after_sweep(swept_to, now), self._runtime.nonce())

    def _write_checked(self, writes: ListWrites) -> None:
        """Write entries, then remove outdated entries, because the stream may already have reported a state change."""
        if not writes:
            return
        self._lists.write(writes)
        found = self._tasks.read_many([each.task_id for each in writes.added], consistent=True)
        now = self._runtime.now()
        left = [
            (each.list, each.task_id)
            for each in writes.added
            if (task := found.get(each.task_id)) is None or each.list not in lists_of_state(task, now)
        ]
        if left:
            self._lists.write(ListWrites(removed=left))
