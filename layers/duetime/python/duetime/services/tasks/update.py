"""Updates and cancels tasks that have not started."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write, WriteResult
from duetime.domain.errors import (
    FaultCode,
    FieldInvalid,
    RequestError,
    StateConflict,
    TaskNotFound,
    Unavailable,
    VersionMismatch,
)
from duetime.domain.locks import claims_of
from duetime.domain.tasks.action_history import BY_SYSTEM, Action, ActionRecord
from duetime.domain.tasks.control_changes import needs_new_check, recorded
from duetime.domain.tasks.creation import due_of
from duetime.domain.tasks.states import NOT_STARTED, Move, State
from duetime.domain.tasks.targets import CallbackTarget, HttpTarget, Phase, TopologyTarget
from duetime.domain.tasks.task import unless_referenced
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.services.content_retention import let_expire, note_end, replace_content
from duetime.services.tasks.creation_rules import PAYLOAD
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import TaskUpdate
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.targets import OccurrenceListener
    from duetime.services.enqueue import Enqueuer
    from duetime.services.locking import LockManager
    from duetime.services.order_lines import OrderLines
    from duetime.services.tasks.creation_rules import CreationRules


_BY_TARGET = frozenset({"target", "rollback_on_failure", "timeout_seconds", "callback_url", "notify_on"})
"""Fields whose values depend on the task's target, and on the targets that the settings allow."""
_TRIES = 5
"""How often a change is tried if the record is written concurrently between the read and the write."""


@frozen
class TaskUpdater:
    """Changes and cancels tasks; a change or cancellation is possible only until a worker claims the task.

    Attributes:
        retention: how long a finished task is kept.
        rules: rules for accepting tasks.
        occurrence_listener: notified when a schedule occurrence has been cancelled.
        order_lines: lets in the next task of an ordered key.
    """

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    retention: RetentionPolicy
    lock_manager: LockManager
    rules: CreationRules
    occurrence_listener: Callable[[], OccurrenceListener]
    order_lines: Callable[[], OrderLines]

    def update(
        self, owner: str, task_id: TaskId, wanted: TaskUpdate, version: int | None, by: Attribution = BY_SYSTEM
    ) -> Task:
        """Change a task that has not started.

        Args:
            owner: owner who requests the change.
            task_id: id of the task.
            wanted: the changes.
            version: required version; `None` for any version.
            by: who changes the task, and why.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
            StateConflict: the task has started, or is a topology that has started and would get another graph.
            VersionMismatch: the task is not at the required version.
            FieldInvalid: the task would be due more than ten years ahead, its target is not allowed, it would be a
                topology whose payload is not a valid graph, or a field merged with the change would not be valid.
            Unavailable: a concurrent write came first on every try.
        """
        task = self.stores.tasks.read(task_id)
        for _ in range(_TRIES):
            task = self._checked(owner, task_id, task, version)
            result = self._apply(task, wanted, by)
            if isinstance(result, Applied):
                return result.task
            task = result.task
        self._checked(owner, task_id, task, version)
        raise Unavailable(f"the task {task_id} has too many concurrent writes")

    def cancel(self, owner: str, task_id: TaskId, version: int | None, by: Attribution = BY_SYSTEM) -> Task:
        """Cancel a task that has not started; cancelling a task again changes nothing.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
            StateConflict: the task has started or ended.
            VersionMismatch: the task is not at the required version.
        """
        if self.retention.is_by_type:
            return self._cancelled(owner, task_id, self.stores.tasks.read(task_id), version, by)
        now = self.runtime.now()
        expires = now + self.retention.default
        after = None if version is None else version + 1
        cancellation = ActionRecord(Action.CANCELLED, now, by, after)
        sets: TaskChanges = {"finished_at": now, "expires_at": expires, "cancellation": cancellation}
        write = Write(task_id, Move.CANCEL, self.runtime.nonce(), Guard(owner=owner, version=version, alone=True), sets)
        result = self.stores.tasks.apply(write)
        if isinstance(result, Applied):
            self._follow(result.task, expires)
            return result.task
        return self._cancelled(owner, task_id, result.task, version, by)

    def _cancelled(self, owner: str, task_id: TaskId, task: Task | None, version: int | None, by: Attribution) -> Task:
        """Cancel a task whose record was read; the record of a task that is already cancelled does not change."""
        for _ in range(_TRIES):
            if task is not None and task.exists_for(owner) and task.state is State.CANCELLED:
                if task.finished_at is not None and task.expires_at is not None:
                    # The process that cancelled the task may have crashed before it ran these steps.
                    self._follow(task, task.expires_at)
                return task
            result = self._cancel(self._checked(owner, task_id, task, version, "cancelled"), by)
            if isinstance(result, Applied):
                return result.task
            task = result.task
        raise Unavailable(f"the task {task_id} has too many concurrent writes")

    def _cancel(self, task: Task, by: Attribution) -> WriteResult:
        """Cancel a task; a worker runs the next steps for topologies, nodes, and tasks that other tasks wait for."""
        now, guard = self.runtime.now(), Guard(version=task.version)
        expires = now + self.retention.of(task.type)
        cancellation = ActionRecord(Action.CANCELLED, now, by, task.version + 1)
        if task.node_ref is not None or task.has_dependents or isinstance(task.target, TopologyTarget):
            # A node is kept as long as its topology; the end of the topology sets the node's expiry.
            sets: TaskChanges = {"finished_at": None, "expires_at": None if task.node_ref is not None else expires}
            sets["cancellation"] = cancellation
            result = self.enqueuer.move(task, Move.CANCEL, now, guard, sets)
            if isinstance(result, Applied):
                note_end(self.stores, self.enqueuer, self.runtime, result.task)
            return result
        sets = {"finished_at": now, "expires_at": expires, "cancellation": cancellation}
        result = self.stores.tasks.apply(Write(task.id, Move.CANCEL, self.runtime.nonce(), guard, sets))
        if isinstance(result, Applied):
            self._follow(result.task, expires)
        return result

    def _follow(self, cancelled: Task, expires: Millis) -> None:
        """Run the steps that follow a cancellation; if they are lost, tasks waiting for this task are checked later."""
        let_expire(self.stores.contents, cancelled, expires)
        note_end(self.stores, self.enqueuer, self.runtime, cancelled)
        self.lock_manager.release_reservation(cancelled)
        if cancelled.order is not None:
            self.order_lines().release_if_possible(cancelled)
        if cancelled.schedule_ref is None or not cancelled.schedule_ref.reports:
            return
        try:
            self.occurrence_listener().follow(cancelled)
        except (RequestError, Unavailable) as error:
            # No error is raised, because the user's request is done. The schedule finds the end of its run at its next
            # timer.
            self.runtime.telemetry.note(
                "a schedule was not notified of an end", task=cancelled.id.text, error=str(error)
            )

    def _apply(self, task: Task, wanted: TaskUpdate, by: Attribution) -> WriteResult:
        """Try a change once; whichever of the old and new payloads is not used expires."""
        by_type = self.rules.targets.default_target(task.type)
        wanted = self.rules.resolved_update(task, wanted.merged_into(task, by_type))
        fields: TaskChanges = {**self._of_its_graph(task, wanted), **wanted.fields}
        self._reject_unfit(task, wanted, fields)
        if wanted.payload is None:
            return self._write(task, wanted, fields, by)
        # The name is unique, because two concurrent changes must not overwrite each other's payload.
        expiry = unless_referenced(max(self.runtime.now(), task.due_at))
        kept = self.stores.contents.keep(task.id, f"{PAYLOAD}.{self.runtime.nonce()}", wanted.payload, expiry)
        sets: TaskChanges = {**fields, "payload": kept}
        stores = (self.stores.tasks, self.stores.contents)
        return replace_content(stores, task, task.payload, kept, expiry, partial(self._write, task, wanted, sets, by))

    def _of_its_graph(self, task: Task, wanted: TaskUpdate) -> TaskChanges:
        """The other changes that a new graph requires in a topology's task; the graph is checked as in a new task."""
        target = wanted.fields.get("target", task.target)
        is_topology = isinstance(target, TopologyTarget)
        if wanted.payload is None and is_topology == isinstance(task.target, TopologyTarget):
            return {}
        if task.claims and isinstance(task.target, TopologyTarget):
            # The nodes may already have tasks, with the ids and edges of the first graph.
            raise StateConflict(task, "given another graph: an attempt at it has begun")
        if not is_topology:
            return {}
        payload = wanted.payload if wanted.payload is not None else self._payload_of(task)
        return {"notify_within_seconds": self.rules.graph_of(task.owner, payload, target).lasts_seconds}

    def _reject_unfit(self, task: Task, wanted: TaskUpdate, fields: TaskChanges) -> None:
        """Reject a change that does not fit the task, before anything is stored."""
        if isinstance(task.target, CallbackTarget) and (wanted.payload is not None or "target" in fields):
            field = "target" if "target" in fields else "payload"
            raise FieldInvalid(field, "of a callback is set by its task", FaultCode.CANNOT_CHANGE)
        target = fields.get("target", task.target)
        rollback = fields.get("rollback_on_failure", task.rollback_on_failure)
        if not fields.keys().isdisjoint(_BY_TARGET):
            timeout = fields.get("timeout_seconds", task.timeout_seconds)
            spec = TaskSpec(task.type, target=target, rollback_on_failure=rollback, timeout_seconds=timeout)
            callback_url = fields.get("callback_url", task.callback_url)
            notify_on = fields.get("notify_on", task.notify_on)
            spec = replace(spec, callback_url=callback_url, notify_on=notify_on)
            self.rules.targets.target_of(task.owner, spec)
            if rollback and isinstance(target, HttpTarget) and Phase.ROLLBACK not in target.phases:
                raise FieldInvalid(
                    "rollback_on_failure", "needs 'rollback' among the phases of the target", FaultCode.CONFLICT
                )
        if wanted.sets_due:
            due_of(TaskSpec(task.type, due_at=wanted.due_at, delay=wanted.delay), self.runtime.now())

    def _payload_of(self, task: Task) -> bytes:
        content = task.payload
        return self.stores.contents.fetch(task.id, content) if content.data is None else content.data

    def _write(self, task: Task, wanted: TaskUpdate, sets: TaskChanges, by: Attribution) -> WriteResult:
        now = self.runtime.now()
        guard = Guard(owner=task.owner, version=task.version)
        if wanted.sets_due:
            sets["due_at"] = due_of(TaskSpec(task.type, due_at=wanted.due_at, delay=wanted.delay), now)
        if task.rate is not None and task.rate.key in task.rate_places and sets.get("rate", task.rate) != task.rate:
            # A place in line was granted under the old rate.
            sets["rate_places"] = {key: at for key, at in task.rate_places.items() if key != task.rate.key}
        changed = [name for name, value in sets.items() if getattr(task, name) != value]
        sets |= recorded(task, Action.UPDATED, by, now, changed)
        if wanted.sets_due:
            result = self.enqueuer.move(task, Move.CHANGE, sets["due_at"], guard, sets, wanted.redirect)
        elif needs_new_check(task, sets):
            # A waiting task is checked again at once, because the lock it now needs may be free, and its place in line
            # is lost.
            at = task.next_at if task.waiting_for is None else task.due_at
            result = self.enqueuer.move(task, Move.CHANGE, at, guard, sets)
        else:
            # The task waits as before, and keeps its reservations.
            self.enqueuer.watch_change(task, Move.CHANGE, sets)
            return self.stores.tasks.apply(Write(task.id, Move.CHANGE, self.runtime.nonce(), guard, sets))
        if isinstance(result, Applied) and (claims_of(result.task) != claims_of(task) or result.task.next_at > now):
            # The changed task will not use reservations that it may have for its earlier locks or due time.
            self.lock_manager.release_reservation(replace(result.task, lock=task.lock, locks=task.locks))
        return result

    @staticmethod
    def _checked(owner: str, task_id: TaskId, task: Task | None, version: int | None, wanted: str = "changed") -> Task:
        if task is None or not task.exists_for(owner):
            raise TaskNotFound(task_id)
        if version not in (None, task.version):
            raise VersionMismatch(task)
        if task.state not in NOT_STARTED:
            raise StateConflict(task, wanted)
        return task
