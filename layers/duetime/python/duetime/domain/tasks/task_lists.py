"""Lists of an owner's tasks by state, type, name, tag and more, so that a filter reads no other tasks.

The lists are derived from the table's stream, so they do not slow down tasks, but lag behind them by the stream's
batching window. A list contains all tasks that belong to it, but may also name tasks that no longer belong to it, so
readers compare each record with the filter. There are two kinds:

* Postings list tasks by unchangeable properties; a task is added once and never removed. Many postings share an item.
* Entries list tasks in states that a task leaves again; each task that stays in the state for longer than a batch of
  changes has one item. A task that starts, runs and ends within one batch has no entry. Entries include the nodes of
  topologies, because a page needs another read for each additional list.

Lists are kept for owners with about a thousand tasks or more. With fewer tasks, one page reads all of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import (
    LIST_BLOCK,
    LIST_BUILD_DELAY,
    LIST_KEPT,
    LIST_LATE,
    LIST_SPAN,
    LIST_SWEEP_EVERY,
)
from duetime.domain.tasks.states import TERMINAL, State
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duetime.domain.change_events import TaskChange, TaskSnapshot
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy

ENTRY_STATES = frozenset(State) - {State.SCHEDULED, State.SUCCEEDED, State.FAILED}
"""States with a complete list. Scheduled tasks are found by their ids, which begin with the due time; only scheduled
tasks that cannot be found by their ids have an entry. Succeeded tasks are found by their ids or in the list of ended
tasks. Failed tasks have a table index, which is updated at once."""
TOPOLOGY_STATES = ENTRY_STATES | {State.FAILED}
"""States with a complete list of topologies."""


class ListKind(StrEnum):
    """The kinds of lists; all but `ENDED` and `MOVED` are in the order of ids.

    Attributes:
        TYPE: tasks of a type.
        NAME: tasks with a name.
        TAG: tasks with a tag; the value is `key:value`.
        SCHEDULE: runs of a schedule.
        TOPOLOGY: topologies.
        DEFINITION: runs of a topology definition.
        PARENT: nodes of a topology.
        STATE: tasks in a state, including nodes.
        TOPOLOGY_STATE: topologies in a state, except sub-topologies.
        ENDED: ended tasks, ordered by their end.
        EARLY: tasks that succeeded or failed before the time in their ids, including nodes.
        MOVED: tasks whose due time is not the time in their ids, ordered by due time. The list that includes nodes also
            contains all other tasks.
    """

    TYPE = "type"
    NAME = "name"
    TAG = "tag"
    SCHEDULE = "schedule"
    TOPOLOGY = "topology"
    DEFINITION = "definition"
    PARENT = "parent"
    STATE = "state"
    TOPOLOGY_STATE = "topology-state"
    ENDED = "ended"
    EARLY = "early"
    MOVED = "moved"


@frozen(order=True)
class ListName:
    """One list of one owner.

    Attributes:
        value: the property that the tasks have in common; empty if the kind alone determines the property.
        of_nodes: for kinds that separate nodes from other tasks, whether the list contains the nodes.
    """

    owner: str
    kind: ListKind
    value: str = ""
    of_nodes: bool = False


@frozen
class Posting:
    """A task in a list.

    Attributes:
        at: the time by which the list is ordered, which is the id's time, the end or the due time.
        expires_at: when the list's item may be removed.
    """

    list: ListName
    at: Millis
    task_id: TaskId
    expires_at: Millis

    @property
    def place(self) -> TaskId:
        """The task's place in the list, which is the task's id with the time by which the list is ordered."""
        return place_of(self.at, self.task_id)


@frozen
class Entry:
    """An entry for a task in the list of a state.

    Attributes:
        expires_at: when the list's item may be removed.
    """

    list: ListName
    task_id: TaskId
    expires_at: Millis


@frozen
class Block:
    """A list's postings within `LIST_SPAN`, stored as one item.

    Attributes:
        postings: ordered by place.
    """

    postings: Sequence[Posting]

    @property
    def list(self) -> ListName:
        """The list that the postings belong to."""
        return self.postings[0].list

    @property
    def first_at(self) -> Millis:
        """The time of the first posting."""
        return self.postings[0].at

    @property
    def expires_at(self) -> Millis:
        """When the item may be removed."""
        return max(each.expires_at for each in self.postings)


@frozen
class ListWrites:
    """Changes to lists; applying the changes again has no effect.

    Attributes:
        blocks: postings to add.
        added: entries to add.
        removed: entries to remove.
    """

    blocks: Sequence[Block] = ()
    added: Sequence[Entry] = ()
    removed: Sequence[tuple[ListName, TaskId]] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.blocks or self.added or self.removed)


def place_of(at: Millis, task_id: TaskId) -> TaskId:
    """A task's place in a list, which is an id with the given time that differs from other tasks' places."""
    return task_id if at == task_id.home else task_id.at_time(at)


def writes_of(changes: Iterable[TaskChange], retention: RetentionPolicy) -> ListWrites:
    """The changes to lists that result from changes to tasks.

    Args:
        changes: changes to one or more owners' tasks; the changes to each task are in order.
        retention: how long an ended task is kept.
    """
    first: dict[TaskId, TaskChange] = {}
    last: dict[TaskId, TaskChange] = {}
    for change in changes:
        task = change.after or change.before
        if task is not None:
            first.setdefault(task.id, change)
            last[task.id] = change
    postings: list[Posting] = []
    added: list[Entry] = []
    removed: list[tuple[ListName, TaskId]] = []
    for task_id, change in last.items():
        before = first[task_id].before
        postings += _postings(before, change.after, change.at, retention)
        added += _added(before, change.after, change.at, retention)
        removed += _removed(before, change.after, change.at)
    return ListWrites(blocks_of(postings), added, removed)


def writes_of_snapshots(tasks: Iterable[TaskSnapshot], now: Millis, retention: RetentionPolicy) -> ListWrites:
    """The changes to lists that add existing tasks, independent of any changes to these tasks.

    Args:
        tasks: existing tasks.
        now: the time; scheduled tasks with an earlier time get entries.
        retention: how long an ended task is kept.
    """
    postings: list[Posting] = []
    added: list[Entry] = []
    for task in tasks:
        postings += _postings(None, task, now, retention)
        added += _added(None, task, now, retention)
    return ListWrites(blocks_of(postings), added)


def late_entries(tasks: Iterable[TaskSnapshot], now: Millis, retention: RetentionPolicy) -> ListWrites:
    """The entries for tasks that are still scheduled after the time in their ids."""
    late = [each for each in tasks if each.state is State.SCHEDULED]
    return ListWrites(added=[each for task in late for each in _added(None, task, now, retention)])


def blocks_of(postings: Iterable[Posting]) -> list[Block]:
    """Packs postings into as few items as possible."""
    lists: dict[ListName, dict[TaskId, Posting]] = defaultdict(dict)
    for each in postings:
        lists[each.list][each.place] = each
    blocks: list[list[Posting]] = []
    for by_place in lists.values():
        block: list[Posting] = []
        for _, each in sorted(by_place.items()):
            if not block or len(block) == LIST_BLOCK or each.at > block[0].at + LIST_SPAN:
                block = []
                blocks.append(block)
            block.append(each)
    return list(map(Block, blocks))


def lists_of_state(task: Task | TaskSnapshot, now: Millis) -> list[ListName]:
    """The lists of states that must have an entry for a task at a given time."""
    found = []
    if task.state in ENTRY_STATES or (task.state is State.SCHEDULED and not _is_found_by_id(task, now)):
        found.append(ListName(task.owner, ListKind.STATE, task.state.value))
    if task.state in TOPOLOGY_STATES and task.is_topology and task.node_ref is None:
        found.append(ListName(task.owner, ListKind.TOPOLOGY_STATE, task.state.value))
    return found


def _is_found_by_id(task: Task | TaskSnapshot, now: Millis) -> bool:
    """Whether a search by due time, which reads ids from about now on, finds a scheduled task."""
    return task.node_ref is None and not _is_moved(task) and task.id.home >= now - LIST_LATE


def _postings(
    before: TaskSnapshot | None, after: TaskSnapshot | None, at: Millis, retention: RetentionPolicy
) -> Iterator[Posting]:
    if after is None or after.erased:
        return
    for name in _facets(after):
        # A task that ends long after the time in its id is listed again, because its first posting may expire before
        # its record.
        is_new = before is None or name not in _facets(before)
        if is_new or (_has_ended(before, after) and at - after.id.home > LIST_KEPT // 2):
            yield Posting(name, after.id.home, after.id, max(at, after.id.home) + retention.of(after.type) + LIST_KEPT)
    if _is_moved(after) and (before is None or before.due_at != after.due_at):
        expires_at = max(at, after.due_at) + retention.of(after.type) + LIST_KEPT
        for of_nodes in {True, after.node_ref is not None}:
            yield Posting(ListName(after.owner, ListKind.MOVED, "", of_nodes), after.due_at, after.id, expires_at)
    yield from _endings(before, after, at, retention)


def _endings(
    before: TaskSnapshot | None, after: TaskSnapshot, at: Millis, retention: RetentionPolicy
) -> Iterator[Posting]:
    """Postings for a task's end, which are made when the outcome is stored, and again if the follow-ups end later."""
    has_ended = _has_ended(before, after)
    ended_at = at if after.finished_at is None else after.finished_at
    expires_at = ended_at + retention.of(after.type) + LIST_KEPT
    if has_ended or (before is not None and after.finished_at not in (None, before.finished_at)):
        yield Posting(_list(after, ListKind.ENDED), ended_at, after.id, expires_at)
    if has_ended and after.state in {State.SUCCEEDED, State.FAILED} and after.id.home > ended_at:
        kept_until = max(expires_at, after.id.home + retention.of(after.type))
        yield Posting(ListName(after.owner, ListKind.EARLY), after.id.home, after.id, kept_until)


def _has_ended(before: TaskSnapshot | None, after: TaskSnapshot) -> bool:
    return after.state in TERMINAL and (before is None or before.state != after.state)


def _facets(task: TaskSnapshot) -> list[ListName]:
    """The lists that a task belongs to because of its unchangeable properties."""
    found = [(ListKind.TYPE, task.type), *((ListKind.TAG, f"{key}:{value}") for key, value in task.tags.items())]
    if task.name:
        found.append((ListKind.NAME, task.name))
    if task.schedule_ref is not None:
        found.append((ListKind.SCHEDULE, task.schedule_ref.schedule))
    if task.is_topology:
        found.append((ListKind.TOPOLOGY, ""))
    if task.definition is not None:
        found.append((ListKind.DEFINITION, task.definition))
    if task.node_ref is not None:
        found.append((ListKind.PARENT, task.node_ref.topology.text))
    return [_list(task, kind, value) for kind, value in found]


def _list(task: TaskSnapshot, kind: ListKind, value: str = "") -> ListName:
    return ListName(task.owner, kind, value, of_nodes=task.node_ref is not None)


def _is_moved(task: Task | TaskSnapshot) -> bool:
    """Whether a task's due time differs from the time in its id."""
    return task.due_at != task.id.home


def _added(
    before: TaskSnapshot | None, after: TaskSnapshot | None, at: Millis, retention: RetentionPolicy
) -> Iterator[Entry]:
    if after is None or after.erased:
        return
    had = [] if before is None else lists_of_state(before, at)
    for name in lists_of_state(after, at):
        # The search for late tasks has already added tasks that became late while they were in this state.
        if name not in had or before is None or before.erased:
            yield Entry(name, after.id, _entry_expiry(after, at, retention))


def _removed(before: TaskSnapshot | None, after: TaskSnapshot | None, at: Millis) -> Iterator[tuple[ListName, TaskId]]:
    if before is None:
        return
    has = [] if after is None or after.erased else lists_of_state(after, at)
    for name in lists_of_state(before, at):
        if name not in has:
            yield name, before.id


def _entry_expiry(task: TaskSnapshot, at: Millis, retention: RetentionPolicy) -> Millis:
    # An open task may stay in its state longer than any retention time.
    kept = retention.of(task.type) + LIST_KEPT if task.state in TERMINAL else 10 * LIST_KEPT
    return max(at, task.id.home) + kept


@frozen
class ListHead:
    """The progress of an owner's lists.

    Attributes:
        building_from: when to start adding tasks that existed before the lists; by then, every process adds changed
            tasks to them.
        built_to: id of the last task that was added; `None` at the beginning.
        is_complete: whether all tasks have been added, so that the lists may be read.
        swept_to: upper bound of the ids up to which late scheduled tasks have entries.
        changed_at: when the lists were last changed, to within some seconds.
        version: increases with each write; 0 if nothing is stored.
    """

    owner: str
    building_from: Millis
    swept_to: TaskId
    built_to: TaskId | None = None
    is_complete: bool = False
    changed_at: Millis = 0
    version: int = 0

    @classmethod
    def new(cls, owner: str, now: Millis) -> ListHead:
        """Returns the head of lists that start now."""
        return cls(owner, now + LIST_BUILD_DELAY, TaskId.of(now, 0, 0))

    def may_build(self, now: Millis) -> bool:
        """Whether existing tasks should be added now."""
        return not self.is_complete and now >= self.building_from

    def sweep_end(self, now: Millis) -> TaskId | None:
        """The upper bound of ids for a search for late tasks; `None` if it is too early for a search."""
        end = now - 2 * LIST_LATE
        is_due = self.is_complete and end - self.swept_to.home >= LIST_SWEEP_EVERY
        return TaskId.of(end, 0, 0) if is_due else None

    def after_building(self, last: TaskId | None, now: Millis, *, is_last: bool) -> ListHead:
        """The head after adding existing tasks up to an id."""
        return replace(self, built_to=last, is_complete=is_last, changed_at=now)

    def after_sweep(self, swept_to: TaskId, now: Millis) -> ListHead:
        """The head after a search for late tasks among ids below `swept_to`."""
        return replace(self, swept_to=swept_to, changed_at=now)
