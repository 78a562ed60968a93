"""Asking the endpoint of a task how it stands with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import QueryNotOffered
from duetime.domain.tasks.targets import HttpTarget

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.targets import Query
    from duetime.ports.runtime import RandomSource
    from duetime.ports.targets import QueryResponse, TargetQueries
    from duetime.services.tasks.read import TaskReader


@dataclass(frozen=True, slots=True)
class TargetQueryService:
    """Asks the endpoints of an owner's tasks."""

    task_reader: TaskReader
    queries: TargetQueries
    random_source: RandomSource

    def ask(self, owner: str, task_id: TaskId, query: Query) -> QueryResponse:
        """Ask the target of a task.

        Raises:
            TaskNotFound: there is none, or it is another owner's.
            QueryNotOffered: its target is no endpoint that offers this.
            TargetSilent: the endpoint did not answer in time.
            TargetUnreachable: the endpoint gave no answer that can be passed on.
            Unavailable: the endpoint could not be called just now.
        """
        task = self.task_reader.record(owner, task_id)
        if not isinstance(task.target, HttpTarget) or query not in task.target.queries:
            raise QueryNotOffered(query)
        return self.queries.ask(task.target, task, query, self.random_source.nonce())
