"""Reads one or many tasks, waits for outcomes, and queries endpoints about their progress."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.domain.errors import ContentExpired, QueryNotOffered, TaskArchived, TaskNotFound
from duetime.domain.limits import MAX_EXAMINED, MAX_EXPANDED_BYTES, MAX_PAGE
from duetime.domain.tasks.costs import cost_of, total_of
from duetime.domain.tasks.filters import MatchCount
from duetime.domain.tasks.targets import HttpTarget
from duetime.domain.tasks.task_lists import place_of
from duetime.domain.times import SECOND
from duetime.services.task_lists.reader import TaskFinder
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.filters import TaskFilter
    from duetime.domain.tasks.targets import Query
    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Clock, Executor, RandomSource
    from duetime.ports.stores import Stores
    from duetime.ports.targets import QueryResponse, TargetQueries
    from duetime.ports.tasks import ListQuery, TaskStore
    from duetime.services.long_poll_limit import LongPolls


@frozen
class Page:
    """A page of listed tasks.

    Attributes:
        after: id after which the next page begins; `None` on the last page.
        examined: number of tasks read for the page.
        changed_at: when the lists used for the page were last updated; `None` if the page was read from records.
        by_end: whether the page is ordered by the times of the tasks' ends.
    """

    tasks: Sequence[Task]
    after: TaskId | None
    examined: int = 0
    changed_at: Millis | None = None
    by_end: bool = False


@frozen
class ArchiveAge:
    """Decides by a task's age whether the archive may have the task.

    Attributes:
        clock: the clock.
        retention: how long a task stays in the table after its end.
        archived: how long the archive then keeps the task, by the task's type.
    """

    clock: Clock
    retention: RetentionPolicy
    archived: RetentionPolicy

    def may_hold(self, task_id: TaskId) -> bool:
        """Whether the archive may have a task; a task with a later due time cannot have ended long enough ago."""
        return task_id.home + self.retention.shortest < self.clock.now()


@frozen
class TaskReader:
    """Reads an owner's tasks; other owners' tasks count as missing.

    Attributes:
        archive: decides whether a missing task may be archived; `None` if there is no archive.
        executor: reads the parts of a list in parallel.
    """

    stores: Stores
    archive: ArchiveAge | None
    clock: Clock
    executor: Executor

    def get(self, owner: str, task_id: TaskId) -> Task:
        """Read one task with its payload and result.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner; `TaskArchived` if the task may be
                archived.
        """
        return self.with_contents(self.record(owner, task_id))

    def record(self, owner: str, task_id: TaskId) -> Task:
        """Read the record of a task, without payloads and results that are stored outside the record.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner; `TaskArchived` if the task may be
                archived.
        """
        task = self.stores.tasks.read(task_id)
        if task is not None and task.exists_for(owner):
            return task
        is_erased = task is not None and task.owner == owner
        # The response does not reveal whether another owner has a task with this id.
        if self.archive is not None and not is_erased and self.archive.may_hold(task_id):
            raise TaskArchived(task_id, self.archive.retention.shortest, self.archive.archived)
        raise TaskNotFound(task_id)

    def with_contents(self, task: Task, fields: Collection[str] = ("payload", "result")) -> Task:
        """A task with its payload and result, regardless of where these are stored; expired contents are left out."""
        found = {name: getattr(task, name) for name in fields}
        fetched: Any = {name: each and self._fetched(task.id, each) for name, each in found.items()}
        return replace(task, **fetched)

    def get_many(self, owner: str, task_ids: Sequence[TaskId], *, consistent: bool = False) -> list[Task]:
        """Read many tasks in the requested order; unknown tasks are left out.

        Args:
            owner: owner of the tasks.
            task_ids: ids of the tasks.
            consistent: whether to read consistently, at twice the price of eventually consistent reads.
        """
        found = self.stores.tasks.read_many(list(dict.fromkeys(task_ids)), consistent=consistent)
        return [task for task_id in task_ids if (task := found.get(task_id)) and task.exists_for(owner)]

    def list(self, query: ListQuery, wanted: TaskFilter) -> Page:
        """Read a page of an owner's tasks, from the lists kept for the owner if there are many tasks.

        A page ends when it is full or when it has examined `MAX_EXAMINED` tasks, so it can be shorter than its limit,
        or empty, and still have a next page.
        """
        listed = TaskFinder(self.stores, self.clock, self.executor).listed(query, wanted)
        page = partial(Page, changed_at=listed.changed_at, by_end=query.by_end)
        matching: dict[TaskId, Task] = {}
        after, examined, chunk = query.after, 0, query.limit
        while True:
            # Reading one more place than needed shows whether there are more tasks.
            places = listed.after(after, chunk + 1)
            for some in _growing(places[:chunk], query.limit):
                tasks = {each.id: each for each in self.get_many(query.owner, [task_id for _, task_id in some])}
                for place, task_id in some:
                    if len(matching) == query.limit:
                        return page(list(matching.values()), after, examined)
                    task = tasks.get(task_id)
                    if task is not None and wanted.matches(task) and _is_listed(task, place, query):
                        matching[task_id] = task
                    after = place
                    examined += 1
            if len(places) <= chunk:
                return page(list(matching.values()), None, examined)
            chunk = min(4 * chunk, MAX_EXAMINED - examined)
            if len(matching) == query.limit or chunk <= 0:
                return page(list(matching.values()), after, examined)

    def count(self, query: ListQuery, wanted: TaskFilter) -> MatchCount:
        """How many tasks match on all pages; at most `MAX_EXAMINED` tasks are examined."""
        page = self.list(replace(query, after=None, limit=MAX_EXAMINED), wanted)
        return MatchCount(len(page.tasks), page.after is None, total_of(map(cost_of, page.tasks)))

    def expanded(self, page: Page, fields: Collection[str]) -> Page:
        """A page with its tasks' payloads or results; the page ends before it becomes too large for a response.

        Args:
            page: page of a list.
            fields: `payload`, `result`, or both.
        """
        shown: list[Task] = []
        size = 0
        for task in page.tasks:
            whole = self.with_contents(task, fields)
            size += sum(len(each.data or b"") for name in fields if (each := getattr(whole, name)) is not None)
            if shown and size > MAX_EXPANDED_BYTES:
                return replace(page, tasks=shown, after=_place(shown[-1], by_end=page.by_end))
            shown.append(whole)
        return replace(page, tasks=shown)

    def _fetched(self, task_id: TaskId, content: Content) -> Content:
        if content.data is not None:
            return content
        try:
            return replace(content, data=self.stores.contents.fetch_or_link(task_id, content))
        except ContentExpired:
            return content


def _growing(places: Sequence[tuple[TaskId, TaskId]], size: int) -> Iterator[Sequence[tuple[TaskId, TaskId]]]:
    """Split places for reading: first as many as are wanted, then larger parts, because few tasks may match."""
    start = 0
    while start < len(places):
        yield places[start : start + size]
        start, size = start + size, min(2 * size, MAX_PAGE)


def _is_listed(task: Task, place: TaskId, query: ListQuery) -> bool:
    """Whether a list shows a task at a place; a stored list may also contain nodes, or the task's earlier ends."""
    return place == _place(task, by_end=query.by_end) and (query.with_nodes or task.node_ref is None)


def _place(task: Task, *, by_end: bool) -> TaskId | None:
    """The place of a task in a list; `None` if the list is ordered by ends and the task is not finished."""
    if not by_end:
        return task.id
    return None if task.finished_at is None else place_of(task.finished_at, task.id)


FIRST_PAUSE: Millis = 100
LONGEST_PAUSE: Millis = SECOND
"""Longest pause between reads of a record; pauses double up to this length, because each read costs money."""


@frozen
class OutcomeWaiter:
    """Waits for outcomes."""

    tasks: TaskStore
    clock: Clock
    long_polls: LongPolls

    def wait(self, task: Task, limit: Millis) -> Task:
        """Read a task repeatedly until it has an outcome, or the given number of milliseconds has passed.

        If the maximum number of requests is already waiting, the task is returned at once.

        Returns:
            The task as last read, with or without an outcome.

        Raises:
            QuotaExceeded: the owner already has as many waiting requests as its quota allows.
            TaskNotFound: the task was deleted during the wait.
        """
        if task.is_terminal:
            return task
        with self.long_polls.place(task.owner, limit) as may_wait:
            return self._seen(task, limit) if may_wait else task

    def _seen(self, task: Task, limit: Millis) -> Task:
        until = self.clock.now() + limit
        pause = FIRST_PAUSE
        while not task.is_terminal and (now := self.clock.now()) < until:
            self.clock.sleep_until(min(now + pause, until))
            task = self.tasks.read(task.id) or task
            pause = min(2 * pause, LONGEST_PAUSE)
        if task.erased:
            raise TaskNotFound(task.id)
        return task


@frozen
class TargetQueryService:
    """Sends queries to the endpoints of an owner's tasks."""

    task_reader: TaskReader
    queries: TargetQueries
    random_source: RandomSource

    def ask(self, owner: str, task_id: TaskId, query: Query) -> QueryResponse:
        """Send a query to the target of a task.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
            QueryNotOffered: the task's target is not an endpoint that answers this query.
            TargetSilent: the endpoint did not answer in time.
            TargetUnreachable: the endpoint's answer cannot be passed on.
            Unavailable: the endpoint could not be called.
        """
        task = self.task_reader.record(owner, task_id)
        if not isinstance(task.target, HttpTarget) or query not in task.target.queries:
            raise QueryNotOffered(query)
        return self.queries.ask(task.target, task, query, self.random_source.nonce())
