"""Accepting many tasks with few requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.tasks.creation import Draft
from duetime.domain.tasks.idempotency_keys import Accepted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from duetime.domain.tasks.creation import Order
    from duetime.domain.tasks.task import Task
    from duetime.services.tasks.create import TaskCreator

E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True)
class BatchCreator:
    """Accepts many tasks, each for itself: what becomes of one has nothing to do with the others."""

    task_creator: TaskCreator

    def create_many(self, owner: str, orders: Sequence[Order]) -> list[Accepted[Task] | RequestError | Unavailable]:
        """A task of each order, or the reason why not, in the order they were requested."""
        refusals: tuple[type[RequestError | Unavailable], ...] = (RequestError, Unavailable)
        return self._create_each(owner, orders, refusals)

    def create_each(self, owner: str, orders: Sequence[Order]) -> list[Task | Exception]:
        """A task of each order, whatever goes wrong with any, or why there is none; in order."""
        ends = self._create_each(owner, orders, (Exception,))
        return [end.value if isinstance(end, Accepted) else end for end in ends]

    def _create_each(
        self, owner: str, orders: Sequence[Order], refusals: tuple[type[E], ...]
    ) -> list[Accepted[Task] | E]:
        """Make all records ready, write them with few requests, and then by itself each that this left out."""
        creator, executor = self.task_creator, self.task_creator.runtime.executor

        def draft(order: Order) -> Accepted[Task] | Draft | E:
            try:
                return creator.draft(owner, order)
            except refusals as refusal:
                return refusal

        def finish(made: Accepted[Task] | Draft | E) -> Accepted[Task] | E:
            if not isinstance(made, Draft):
                return made
            try:
                return creator.finish(made, is_new=made.task.nonce in written or creator.enqueuer.create(made.task))
            except refusals as refusal:
                return refusal

        creator.shards.prepare()
        drafts = executor.map(draft, orders)
        written = self._insert([each.task for each in drafts if isinstance(each, Draft)], refusals)
        ends = executor.map(finish, drafts)
        creator.enqueuer.send_due([end.value for end in ends if isinstance(end, Accepted) and end.is_new])
        return ends

    def _insert(self, tasks: Sequence[Task], refusals: tuple[type[Exception], ...]) -> Collection[str]:
        """Write records with few requests; a defect that one meets must not take others with it."""
        try:
            return self.task_creator.enqueuer.insert(tasks)
        except refusals as defect:
            note = "records could not be written in a batch, and are written one by one"
            self.task_creator.runtime.telemetry.note(note, error=type(defect).__name__)
            return ()
