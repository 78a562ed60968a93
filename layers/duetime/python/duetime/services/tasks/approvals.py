"""Approving and rejecting tasks that wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.errors import StateConflict, Unavailable
from duetime.domain.tasks.action_history import Action
from duetime.domain.tasks.action_recording import recorded
from duetime.domain.tasks.approvals import is_awaited, rejection
from duetime.domain.tasks.content_expiry import after_record, unless_referenced
from duetime.domain.tasks.control_changes import require_version
from duetime.domain.tasks.states import Move
from duetime.services.content_retention import let_key_expire
from duetime.services.outcomes.attempt_metrics import count_outcome

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.read import TaskReader

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person has decided.

    Attributes:
        payload: of an approval, the result of the task: JSON text in UTF-8.
    """

    approve: bool
    payload: bytes = b"null"


@dataclass(frozen=True, slots=True)
class Approvals:
    """Takes decisions: each is one write, which only applies while the task waits for it.

    Attributes:
        retention: how long a finished task is kept, in milliseconds.
    """

    task_reader: TaskReader
    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    retention: Millis

    def decide(self, owner: str, task_id: TaskId, decision: Decision, version: int | None, by: Attribution) -> Task:
        """Approve or reject a task; deciding the same again changes nothing.

        Raises:
            TaskNotFound: there is none, or it is another owner's.
            StateConflict: it does not wait for an approval, or was decided otherwise.
            VersionMismatch: it is at another version.
        """
        action = Action.APPROVED if decision.approve else Action.REJECTED
        for _ in range(_TRIES):
            task = self.task_reader.record(owner, task_id)
            if not is_awaited(task):
                if task.is_terminal and any(each.action is action for each in task.actions.records[-1:]):
                    return task
                raise StateConflict(task, f"{action}: it does not wait for an approval")
            require_version(task, version)
            result = self._written(task, decision, recorded(task, action, by, self.runtime.now()), by)
            if isinstance(result, Applied):
                count_outcome(self.runtime.telemetry, result.task)
                let_key_expire(self.stores, result.task)
                return result.task
        raise Unavailable(f"the task {task_id} was written by others again and again")

    def _written(self, task: Task, decision: Decision, sets: TaskChanges, by: Attribution) -> WriteResult:
        """Write the outcome; a worker does what follows it."""
        now, is_node = self.runtime.now(), task.node_ref is not None
        # A node is kept as long as its topology, whose end gives it its expiry.
        sets |= {"finished_at": None, "expires_at": None if is_node else now + self.retention, "waiting_for": None}
        guard = Guard(version=task.version)
        if not decision.approve:
            return self.enqueuer.move(task, Move.REJECT, now, guard, {**sets, "error": rejection(by.reason)})
        contents = self.stores.contents
        expiry = unless_referenced(now) if is_node else after_record(now + self.retention)
        kept = contents.keep(task.id, f"result.{self.runtime.nonce()}", decision.payload, expiry)
        result = self.enqueuer.move(task, Move.APPROVE, now, guard, {**sets, "result": kept, "error": None})
        if is_node and kept.is_outside and isinstance(result, Applied):
            contents.retain(task.id, kept, expiry)
        return result
