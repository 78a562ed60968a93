"""Shows which of an owner's tasks hold unique keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import UniqueKeyNotFound
from duetime.domain.tasks.creation import holds_key
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import TERMINAL, State
from duetime.ports.tasks import ListQuery
from duetime.services.unique_keys import key_status
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.ports.stores import Stores
    from duetime.services.tasks.read import TaskReader


_OPEN = tuple(state for state in State if state not in TERMINAL)
_MOST_PAGES = 10
"""Maximum number of pages of open tasks that are read for one page of keys."""


@frozen
class UniqueKeyReader:
    """Shows the unique keys of an owner's tasks."""

    stores: Stores
    task_reader: TaskReader

    def list(self, owner: str, after: TaskId | None, limit: int) -> tuple[Sequence[Task], TaskId | None]:
        """A page of tasks that hold keys, ordered by due time, and the id after which the next page begins, if any."""
        query = ListQuery(owner, after, descending=False, limit=limit)
        found: list[Task] = []
        for _ in range(_MOST_PAGES):
            page = self.task_reader.list(query, TaskFilter(states=_OPEN))
            found += [task for task in page.tasks if holds_key(task)]
            if page.after is None or len(found) >= limit:
                break
            query = replace(query, after=page.after)
        return (found, page.after) if len(found) <= limit else (found[:limit], found[limit - 1].id)

    def holder(self, owner: str, key: str) -> Task:
        """The task that holds a key.

        Raises:
            UniqueKeyNotFound: no task of the owner holds the key.
        """
        holder = key_status(self.stores, owner, key).holder
        if holder is None or not holder.exists_for(owner):
            raise UniqueKeyNotFound(key)
        return holder
