"""Previews the start of a task: reads all that it would wait for, and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Entry, queue_of
from duetime.domain.explanations.start_preview import SpentQuota, StartConditions, StartPreview, preview
from duetime.domain.quotas import Quota
from duetime.domain.tasks.creation import due_of, new_id, new_task
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import unique_of
from duetime.services.unique_keys import key_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.explanations.start_preview import StartPreview
    from duetime.domain.tasks.creation import Order
    from duetime.domain.tasks.task import Task
    from duetime.ports.queues import WorkQueues
    from duetime.services.explanations.tasks import TaskExplainer
    from duetime.services.quotas.admin import QuotaUsage
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.tasks.create import TaskCreator

_TAIL_BITS = 64
_REFUSING = (Quota.CREATES, Quota.PAYLOAD_BYTES, Quota.OPEN_TASKS)
_LAST_NUMBER = 10**15 - 1
"""Comes after every number in the line of an ordered key."""
_DELAYING = (Quota.CONCURRENT_ATTEMPTS,)


@dataclass(frozen=True, slots=True)
class StartPreviewer:
    """Estimates when a task would start if it were created now.

    Attributes:
        quotas: the quotas of owners and what they use; `None` if the deployment has none.
    """

    creator: TaskCreator
    explainer: TaskExplainer
    queues: WorkQueues
    quotas: Callable[[], tuple[QuotaBook, QuotaUsage]] | None

    def preview(self, owner: str, order: Order, size: int) -> StartPreview:
        """Estimate when a task would start, with the reasons.

        Args:
            owner: owner of the task.
            order: the request.
            size: size of the request in bytes.

        Raises:
            FieldInvalid: as in `TaskCreator.create_once`.
            Unavailable: the store or a queue did not answer.
        """
        task = self._new_task(owner, order)
        facts, closed = self.explainer.gates_ahead(task)
        unique = unique_of(task.unique, task.debounce)
        holder = None if unique is None else key_status(self.explainer.stores, owner, unique.key).holder
        known = StartConditions(
            now=facts.now,
            closed=closed,
            unique=unique,
            holder=holder,
            quotas=tuple(self._spent(owner, size)),
            queue=queue_of(Entry.of(task)).rpartition(":")[2],
            backlog=self.queues.depth(task.priority, task.pull_queue).waiting,
        )
        return preview(task, known)

    def _new_task(self, owner: str, order: Order) -> Task:
        """The record that the creation would write, with its payload in it whatever its size."""
        creator = self.creator
        spec = creator.resolved(owner, order)
        spec = replace(spec, target=creator.rules.accept(owner, spec, order.graph))
        now = creator.runtime.now()
        due = due_of(spec, now)
        task_id = new_id(due, now, 0, creator.runtime.random_source.bits(_TAIL_BITS))
        task = new_task(task_id, spec, owner, due, now, Content(ContentPlace.RECORD, "", spec.payload))
        if spec.order is not None:
            task = replace(task, order_number=_LAST_NUMBER)
        return task if spec.after is None else replace(task, state=State.BLOCKED, after=spec.after)

    def _spent(self, owner: str, size: int) -> Iterator[SpentQuota]:
        if self.quotas is None:
            return
        book, usage = self.quotas()
        limits = book.of(owner)
        amounts = {Quota.CREATES: 1, Quota.PAYLOAD_BYTES: size, Quota.OPEN_TASKS: 1, Quota.CONCURRENT_ATTEMPTS: 1}
        for quota in (*_REFUSING, *_DELAYING):
            limit = limits.limit(quota)
            if limit is not None and (used := usage.used(owner, quota)) + amounts[quota] > limit:
                yield SpentQuota(quota, limit, used, quota in _REFUSING)
