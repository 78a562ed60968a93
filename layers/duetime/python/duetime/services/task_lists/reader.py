"""Finds tasks for a list, in the lists kept for an owner with many tasks, or among all of the owner's tasks."""

from __future__ import annotations

import heapq
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import LIST_EXAMINED, LIST_LATE
from duetime.domain.tasks.filters import Range
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_lists import ENTRY_STATES, TOPOLOGY_STATES, ListKind, ListName, place_of
from duetime.domain.times import LAST_INSTANT
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from duetime.domain.tasks.filters import TaskFilter
    from duetime.domain.tasks.task_lists import ListHead
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Executor
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import ListQuery

    Place: TypeAlias = tuple[TaskId, TaskId]
    """The place of a task in a list, and the task's id."""
    Source: TypeAlias = Callable[[TaskId | None, int], Sequence[Place]]
    """Reads up to a given number of places after a given place; returns fewer places only at the end."""

_MOST_MOVED = 1_000
"""Maximum number of tasks with a changed due time that are read for a range of due times."""


@frozen
class Listed:
    """The candidates for a list, in the order of the list.

    Attributes:
        sources: where to find the candidates; together, the sources contain every task that matches the filter.
        executor: reads the sources in parallel.
        changed_at: when the kept lists were last updated; `None` if these lists are not read.
    """

    query: ListQuery
    sources: Sequence[Source]
    executor: Executor
    changed_at: Millis | None = None

    def after(self, after: TaskId | None, limit: int) -> list[Place]:
        """The next candidates after a place, which may include repeats; fewer than the limit only at the end."""
        found = self.executor.map(lambda source: source(after, limit), self.sources)
        return list(islice(heapq.merge(*found, reverse=self.query.descending), limit))


@frozen
class TaskFinder:
    """Chooses where to find the tasks of a list."""

    stores: Stores
    clock: Clock
    executor: Executor

    def listed(self, query: ListQuery, wanted: TaskFilter) -> Listed:
        """The candidates for a list, which are all of an owner's tasks if they are few or no kept list helps."""
        sources, changed_at = self._sources(query, wanted)
        return Listed(query, sources, self.executor, changed_at)

    def _sources(self, query: ListQuery, wanted: TaskFilter) -> tuple[list[Source], Millis | None]:
        if wanted.parent_task_id is not None and not query.by_end:
            children = replace(query, children_of=wanted.parent_task_id)
            return self._all(children, _bounds(query, wanted)), None
        if wanted.group is not None and not query.by_end:
            failed_only = wanted.states == (State.FAILED,)
            members = replace(query, in_group=wanted.group, failed_only=failed_only)
            return self._all(members, _bounds(query, wanted)), None
        if wanted.states == (State.FAILED,) and not query.by_end and not _is_of_few(wanted):
            return self._failed(query, wanted), None
        head = self._head(query, wanted)
        if head is None and query.by_end:
            return [self._ended_of_all(query)], None
        if head is None and wanted.states == (State.FAILED,):
            return self._failed(query, wanted), None
        if head is None:
            return self._all(query, _bounds(query, wanted)), None
        return self._kept(query, wanted, head), head.changed_at

    def _head(self, query: ListQuery, wanted: TaskFilter) -> ListHead | None:
        if not query.by_end and not _helps(wanted):
            return None
        head = self.stores.task_lists.head(query.owner)
        return head if head is not None and head.is_complete else None

    def _kept(self, query: ListQuery, wanted: TaskFilter, head: ListHead) -> list[Source]:
        if query.by_end:
            return self._posted(query, ListKind.ENDED, "", wanted.finished)
        is_in_listed_states = bool(wanted.states) and _LISTED_STATES.issuperset(wanted.states)
        for kind, value in _facets(wanted):
            # The lists of these states are shorter than the lists of a tag, a type, or all topologies.
            if not (is_in_listed_states and kind in _LARGE):
                return self._posted(query, kind, value, _bounds(query, wanted))
        if is_in_listed_states and wanted.is_topology:
            return [
                self._entries(query, ListName(query.owner, ListKind.TOPOLOGY_STATE, each.value))
                for each in wanted.states
            ]
        if is_in_listed_states:
            return self._in_listed_states(query, wanted, wanted.states)
        if wanted.states:
            return self._in_states(query, wanted, head)
        return self._due(query, wanted.due, _bounds(query, wanted))

    def _in_listed_states(self, query: ListQuery, wanted: TaskFilter, states: Iterable[State]) -> list[Source]:
        sources: list[Source] = []
        for state in states:
            if state is State.FAILED:
                sources += self._failed(query, wanted)
            else:
                sources.append(self._entries(query, ListName(query.owner, ListKind.STATE, state.value)))
        return sources

    def _in_states(self, query: ListQuery, wanted: TaskFilter, head: ListHead) -> list[Source]:
        """Find scheduled and succeeded tasks by the times in their ids, and tasks with other due times in lists."""
        bounds = _bounds(query, wanted)
        if State.SUCCEEDED not in wanted.states:
            bounds = _narrowed(_narrowed(bounds, Range(after=head.swept_to.home)), wanted.due)
            # Nodes, and tasks with other due times, have entries in lists.
            by_id = self._all(replace(query, with_nodes=False), bounds)
            return [*self._in_listed_states(query, wanted, wanted.states), *by_id]
        if State.SCHEDULED in wanted.states:
            return self._due(query, wanted.due, bounds)
        # The clocks of writers differ from this clock by less than `LIST_LATE`.
        present = self.clock.now() + LIST_LATE
        sources = self._in_listed_states(query, wanted, set(wanted.states) - {State.SUCCEEDED, State.FAILED})
        if wanted.due.before is None or wanted.due.before > present:
            sources.append(self._postings(query, ListName(query.owner, ListKind.EARLY), bounds))
        return [*sources, *self._due(query, wanted.due, _narrowed(bounds, Range(before=present)))]

    def _failed(self, query: ListQuery, wanted: TaskFilter) -> list[Source]:
        """Find failed tasks through their index, which is updated at once."""
        return self._all(replace(query, failed_only=True), _bounds(query, wanted))

    def _due(self, query: ListQuery, due: Range, bounds: Range) -> list[Source]:
        """Find tasks due in a range by the times in their ids, plus tasks with a changed due time."""
        moved = self._moved(query, due)
        if moved is None:
            return self._all(query, bounds)
        return [*self._all(query, _narrowed(bounds, due)), moved]

    def _all(self, query: ListQuery, bounds: Range) -> list[Source]:
        """Find all of an owner's tasks whose ids are in a range of times, in parts that can be read in parallel."""

        def read(part: ListQuery, after: TaskId | None, limit: int) -> list[Place]:
            asked = replace(part, after=_start(after, bounds, descending=query.descending), limit=limit)
            return [(each, each) for each in self.stores.tasks.list_ids(asked)]

        return [_within(partial(read, part), bounds) for part in self.stores.tasks.parts_of(query)]

    def _posted(self, query: ListQuery, kind: ListKind, value: str, bounds: Range) -> list[Source]:
        return [self._postings(query, name, bounds) for name in _names(query, kind, value)]

    def _postings(self, query: ListQuery, name: ListName, bounds: Range) -> Source:
        def read(after: TaskId | None, limit: int) -> list[Place]:
            start = _start(after, bounds, descending=query.descending)
            return self.stores.task_lists.postings(name, start, limit, descending=query.descending)

        return _within(read, bounds)

    def _entries(self, query: ListQuery, name: ListName) -> Source:
        def read(after: TaskId | None, limit: int) -> list[Place]:
            found = self.stores.task_lists.entries(name, after, limit, descending=query.descending)
            return [(each, each) for each in found]

        return read

    def _moved(self, query: ListQuery, due: Range) -> Source | None:
        """Tasks that are due in a range although their ids show another time; `None` if there are too many."""
        if due == Range():
            return None
        first = None if due.after is None else _first_at(due.after)
        name = ListName(query.owner, ListKind.MOVED, "", query.with_nodes)
        found = self.stores.task_lists.postings(name, first, _MOST_MOVED, descending=False)
        if len(found) == _MOST_MOVED:
            return None
        places = {(task_id, task_id) for place, task_id in found if due.before is None or place.home < due.before}
        return _of_places(sorted(places, reverse=query.descending), descending=query.descending)

    def _ended_of_all(self, query: ListQuery) -> Source:
        """The ended tasks of an owner with few tasks, ordered by the times of their ends."""
        asked = replace(query, after=None, limit=LIST_EXAMINED)
        found = self.stores.tasks.read_many(self.stores.tasks.list_ids(asked)).values()
        places = [
            (place_of(each.finished_at, each.id), each.id)
            for each in found
            if each.is_terminal and each.finished_at is not None
        ]
        return _of_places(sorted(places, reverse=query.descending), descending=query.descending)


def _is_of_few(wanted: TaskFilter) -> bool:
    """Whether the filter has a condition whose list is likely to be shorter than the list of failed tasks."""
    return wanted.is_topology or any(kind not in _LARGE for kind, _ in _facets(wanted))


def _helps(wanted: TaskFilter) -> bool:
    """Whether kept lists help to find the tasks that match a filter."""
    by_what_they_are = (wanted.type, wanted.name, wanted.tags, wanted.schedule, wanted.parent, wanted.definition)
    return any(by_what_they_are) or bool(wanted.states) or wanted.is_topology or wanted.due != Range()


_LISTED_STATES = ENTRY_STATES | TOPOLOGY_STATES
"""States whose tasks are found without reading the owner's complete list."""
_LARGE = frozenset({ListKind.TAG, ListKind.TYPE, ListKind.TOPOLOGY})
"""Lists that are likely to be longer than the list of any state that tasks leave again."""


def _facets(wanted: TaskFilter) -> Iterator[tuple[ListKind, str]]:
    """The lists for a filter, beginning with those that are likely to be short."""
    if wanted.parent is not None:
        yield ListKind.PARENT, wanted.parent.text
    if wanted.schedule is not None:
        yield ListKind.SCHEDULE, wanted.schedule
    if wanted.name:
        yield ListKind.NAME, wanted.name
    if wanted.definition is not None:
        yield ListKind.DEFINITION, wanted.definition
    for key, value in wanted.tags.items():
        yield ListKind.TAG, f"{key}:{value}"
    if wanted.type is not None:
        yield ListKind.TYPE, wanted.type
    if wanted.is_topology:
        yield ListKind.TOPOLOGY, ""


_ALWAYS_NODES = frozenset({ListKind.PARENT})


def _names(query: ListQuery, kind: ListKind, value: str) -> list[ListName]:
    """The lists of a kind, including the list of nodes if nodes are requested."""
    if kind in _ALWAYS_NODES:
        return [ListName(query.owner, kind, value, of_nodes=True)]
    kinds = (False, True) if query.with_nodes else (False,)
    return [ListName(query.owner, kind, value, of_nodes) for of_nodes in kinds]


def _bounds(query: ListQuery, wanted: TaskFilter) -> Range:
    """The range of times that matching ids may have; no task is created after the time in its id."""
    return _narrowed(Range(after=query.since), Range(after=wanted.created.after))


def _narrowed(first: Range, second: Range) -> Range:
    starts = [each.after for each in (first, second) if each.after is not None]
    ends = [each.before for each in (first, second) if each.before is not None]
    return Range(max(starts, default=None), min(ends, default=None))


def _start(after: TaskId | None, bounds: Range, *, descending: bool) -> TaskId | None:
    """The place after which to read, which is the query's place, or the bound if the bound comes later."""
    bound = bounds.before if descending else bounds.after
    if bound is None:
        return after
    limit = _first_at(bound)
    if after is None:
        return limit
    return min(after, limit) if descending else max(after, limit)


def _first_at(at: Millis) -> TaskId:
    """The smallest id for a time, or for the nearest time that an id can have."""
    return TaskId.of(max(0, min(at, LAST_INSTANT)), 0, 0)


def _within(read: Source, bounds: Range) -> Source:
    """A source without the places that are outside the bounds."""

    def bounded(after: TaskId | None, limit: int) -> list[Place]:
        return [each for each in read(after, limit) if bounds.holds(each[0].home)]

    return bounded


def _of_places(places: Sequence[Place], *, descending: bool) -> Source:
    def read(after: TaskId | None, limit: int) -> list[Place]:
        if after is None:
            return list(places[:limit])
        return [each for each in places if (each[0] < after if descending else each[0] > after)][:limit]

    return read
