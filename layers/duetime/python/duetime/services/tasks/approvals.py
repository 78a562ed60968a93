"""Approves and rejects tasks that wait for an approval."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.errors import ContentExpired, StateConflict, Unavailable
from duetime.domain.tasks.action_history import Action
from duetime.domain.tasks.approvals import is_awaited, is_being_checked, rejection
from duetime.domain.tasks.control_changes import recorded, require_version
from duetime.domain.tasks.states import STARTABLE, Move
from duetime.domain.tasks.targets import ApprovalTarget
from duetime.domain.tasks.task import after_record, unless_referenced
from duetime.domain.times import to_iso
from duetime.services.content_retention import note_end, retain_result
from duetime.services.task_telemetry import count_outcome
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.read import TaskReader

_TRIES = 5
_CHECK_PAUSE = 100
"""Pause in milliseconds before another read of a task that a worker is checking; a check takes two writes."""
_REPEATED = {Action.APPROVED: "with another payload", Action.REJECTED: "for another reason"}
"""How a repeated decision can differ from an earlier decision on the same task."""


@frozen
class Decision:
    """A person's decision.

    Attributes:
        payload: for an approval, the result of the task, as JSON text in UTF-8.
    """

    approve: bool
    payload: bytes = b"null"


@frozen
class Approvals:
    """Records decisions, each in one write, which succeeds only while the task waits for a decision.

    Attributes:
        retention: how long a finished task is kept.
    """

    task_reader: TaskReader
    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    retention: RetentionPolicy

    def decide(self, owner: str, task_id: TaskId, decision: Decision, version: int | None, by: Attribution) -> Task:
        """Approve or reject a task; repeating the same decision changes nothing.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
            StateConflict: the task does not wait for an approval, or was decided differently or with a different
                payload or reason.
            VersionMismatch: the task is not at the required version.
            Unavailable: a worker held the task longer than a check takes, or a store did not answer; the request can be
                repeated.
        """
        action = Action.APPROVED if decision.approve else Action.REJECTED
        for _ in range(_TRIES):
            task, now = self.task_reader.record(owner, task_id), self.runtime.now()
            if is_being_checked(task):
                self.runtime.clock.sleep_until(now + _CHECK_PAUSE)
                continue
            if not is_awaited(task, now):
                if self._is_repeated(task, action, decision, by):
                    # The process that recorded the decision may have crashed before retaining the result.
                    retain_result(self.stores.tasks, self.stores.contents, task)
                    return task
                raise StateConflict(task, f"{action}: {_obstacle(task, action, now)}")
            require_version(task, version)
            result = self._written(task, decision, recorded(task, action, by, now), by)
            if isinstance(result, Applied):
                count_outcome(self.runtime.telemetry, result.task)
                note_end(self.stores, self.enqueuer, self.runtime, result.task)
                return result.task
        raise Unavailable(f"the task {task_id} has too many concurrent writes")

    def _is_repeated(self, task: Task, action: Action, decision: Decision, by: Attribution) -> bool:
        """Whether the same decision has already ended a task."""
        if not task.is_terminal or _decided(task) is not action:
            return False
        if not decision.approve:
            return task.error == rejection(by.reason)
        if task.result is None:
            return False
        try:
            stored = self.stores.contents.fetch(task.id, task.result)
        except ContentExpired:
            return False
        return _canonical(stored) == _canonical(decision.payload)

    def _written(self, task: Task, decision: Decision, sets: TaskChanges, by: Attribution) -> WriteResult:
        """Write the outcome; a worker runs the steps that follow."""
        now, is_node = self.runtime.now(), task.node_ref is not None
        expires = now + self.retention.of(task.type)
        # A node is kept as long as its topology; the end of the topology sets the node's expiry.
        sets |= {"finished_at": None, "expires_at": None if is_node else expires, "waiting_for": None}
        guard = Guard(version=task.version)
        if not decision.approve:
            return self.enqueuer.move(task, Move.REJECT, now, guard, {**sets, "error": rejection(by.reason)})
        contents = self.stores.contents
        expiry = unless_referenced(now) if is_node else after_record(expires)
        kept = contents.keep(task.id, f"result.{self.runtime.nonce()}", decision.payload, expiry)
        result = self.enqueuer.move(task, Move.APPROVE, now, guard, {**sets, "result": kept, "error": None})
        if is_node and kept.is_outside and isinstance(result, Applied):
            contents.retain(task.id, kept, expiry)
        return result


def _decided(task: Task) -> Action | None:
    """The decision on a task; `None` if the task's latest action is not a decision."""
    last = task.actions.records[-1:]
    return last[0].action if last and last[0].action in _REPEATED else None


def _obstacle(task: Task, action: Action, now: Millis) -> str:
    """Why no decision on the task is possible now."""
    decided = _decided(task) if task.is_terminal else None
    if decided is None:
        is_early = isinstance(task.target, ApprovalTarget) and task.state in STARTABLE and task.due_at > now
        return f"it is due at {to_iso(task.due_at)}" if is_early else "it does not wait for an approval"
    return f"it was {decided} already" + (f", {_REPEATED[action]}" if decided is action else "")


def _canonical(data: bytes) -> str:
    """JSON text with sorted keys. Equal values result in equal strings, and 1, 1.0 and true in different strings."""
    return json.dumps(json.loads(data), sort_keys=True)
