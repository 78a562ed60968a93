"""Creates the tasks that post outcomes to callback URLs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.callback_tasks import callback_spec, outcome_origin
from duetime.domain.tasks.content_expiry import unless_referenced
from duetime.domain.tasks.creation import new_task
from duetime.services.content_retention import retain_open

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.targets import Callbacks
    from duetime.services.enqueue import Enqueuer
    from duetime.services.shards import Shards

_PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class CallbackTasks:
    """Creates the task that posts an outcome: once for each outcome, however often this is repeated."""

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    shards: Shards
    callbacks: Callbacks

    def create(self, task: Task) -> None:
        """Create the callback of a task that has ended, if it has a URL for that.

        Raises:
            Unavailable: the table did not answer.
        """
        if (url := task.callback_url) is None:
            return
        origin = outcome_origin(task)
        task_id = origin.task_id(origin.at, self.shards.at(origin.at))
        if self.stores.tasks.read(task_id) is not None:
            return
        event, expiry = self.callbacks.outcome_event(task), unless_referenced(origin.at)
        content = self.stores.contents.keep(task_id, _PAYLOAD, event, expiry)
        made = new_task(task_id, callback_spec(task, url, event), task.owner, origin.at, origin.at, content)
        made = replace(made, next_at=max(made.next_at, self.runtime.now()), traceparent=task.traceparent)
        if not self.enqueuer.create(made):
            return
        if content.is_outside:
            retain_open(self.stores.tasks, self.stores.contents, made, expiry)
        self.enqueuer.send_due([made])
