"""Controls existing tasks: pause, resume, stop, run now, retry and roll back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.tasks.action_history import BY_SYSTEM, Action
from duetime.domain.tasks.attempt_records import PAUSED, RESUMED
from duetime.domain.tasks.attempt_run import reported_history
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.control_changes import (
    ASKED,
    DONE,
    NO_EXPIRY,
    ControlRequest,
    fence_raised,
    is_repeated,
    is_tried_again,
    no_pause,
    pause_taken_back,
    require_legal,
    require_version,
    resumes_at,
    stronger,
)
from duetime.domain.tasks.states import GOING_ON, LEGAL, STARTABLE, Move, State
from duetime.domain.tasks.targets import AwsTarget, CallbackTarget, HttpTarget, Phase, PullTarget, TopologyTarget
from duetime.domain.tasks.task import RequestedAction, unless_referenced
from duetime.domain.tasks.task_options import unique_of
from duetime.domain.tasks.waits import waits_with
from duetime.services.content_retention import extend, retain_open
from duetime.services.unique_keys import reopened_key
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import KeyTaking
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.locking import LockManager
    from duetime.services.tasks.update import TaskUpdater


_TRIES = 5


@frozen
class TaskControl:
    """Controls tasks. Each call makes one legal move, or raises an error that says why it cannot.

    Each action is recorded in the task; `by` says who acts, and why. Every method raises `TaskNotFound` if the task
    does not exist or belongs to another owner, `StateConflict` if the task's state does not allow the action, and
    `VersionMismatch` if concurrent writes keep changing the record, or if the record is not at the required `version`.
    """

    stores: Stores
    enqueuer: Enqueuer
    task_updater: TaskUpdater
    lock_manager: LockManager
    runtime: Runtime
    reopener: TaskReopener

    def pause(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Pause a task that has not started, or ask a running task to pause as soon as it can.

        A paused task does not change, regardless of its version, because the response to the first request may have
        been lost.
        """
        task = self._read(owner, task_id)
        if task.state is State.PAUSED:
            return task
        # A blocked node can be paused only by pausing its topology.
        if task.state in LEGAL[Move.PAUSE].sources and not (task.state is State.BLOCKED and task.after is None):
            require_version(task, version)
            paused = self._moved(task, Move.PAUSE, ControlRequest(Action.PAUSED, version, by, self._pausing))
            self.lock_manager.release_reservation(paused)
            return paused
        return self._ask(task, RequestedAction.PAUSE, version, by)

    def stop(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Ask a running task to stop as soon as it can."""
        return self._ask(self._read(owner, task_id), RequestedAction.CANCEL, version, by)

    def cancel_by_force(self, owner: str, task_id: TaskId, version: int | None, by: Attribution = BY_SYSTEM) -> Task:
        """Cancel a task that has not started, or ask a running task to stop, even if the task starts in between."""
        for _ in range(_TRIES):
            try:
                return self.task_updater.cancel(owner, task_id, version, by)
            except (StateConflict, VersionMismatch) as refusal:
                if is_repeated(refusal.task, Action.CANCEL_REQUESTED, version, by):
                    return refusal.task
                if isinstance(refusal, VersionMismatch) or refusal.task.state not in LEGAL[Move.REQUEST_STOP].sources:
                    raise
            with suppress(StateConflict):
                return self.stop(owner, task_id, version, by)
        raise VersionMismatch(self._read(owner, task_id))

    def resume(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Resume a paused task at its due time, or now if the due time has passed.

        A task that waited for a lock has left the line, so it is checked again at once. A task that is not paused does
        not change, regardless of its version, because the response to the first request may have been lost.
        """
        task = self._read(owner, task_id)
        is_held = task.state is State.PAUSED or task.requested_action is RequestedAction.PAUSE
        # A running topology may have paused nodes, which this method does not resume.
        if not is_held and task.state in GOING_ON and not isinstance(task.target, TopologyTarget):
            return task
        require_version(task, version)
        if task.state is State.PAUSED:
            request = ControlRequest(Action.RESUMED, version, by, self._resuming)
            if task.waits_for_tasks:
                return self._placed(task, Move.BLOCK, lambda _task: self.runtime.now(), request)
            return self._placed(task, Move.RESUME, resumes_at, request)
        if is_held:
            # The attempt that was asked to pause may have failed since; in that case, the request is removed from the
            # task that waits for its retry.
            move = Move.CHANGE if task.state in LEGAL[Move.CHANGE].sources else Move.REQUEST_STOP
            return self._moved(task, move, ControlRequest(Action.RESUMED, version, by, pause_taken_back))
        raise StateConflict(task, "resumed")

    def run_now(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Let a task that has not started run now; a running task does not change.

        A task also does not change if an earlier copy of this request, with the same version, was already applied. The
        same is true for `retry`.
        """
        return self._expedited(owner, task_id, ControlRequest(Action.RUN_REQUESTED, version, by, self._running))

    def check_now(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Let a task that has not started ask for its start now; unlike after `run_now`, it can still expire."""
        return self._expedited(owner, task_id, ControlRequest(Action.RUN_REQUESTED, version, by, self._checking))

    def retry(
        self,
        owner: str,
        task_id: TaskId,
        version: int | None = None,
        by: Attribution = BY_SYSTEM,
        nodes: tuple[str, ...] = (),
    ) -> Task:
        """Retry a failed task with its full number of attempts; a task already being retried does not change.

        Args:
            owner: owner of the task.
            task_id: id of the task.
            version: required version; `None` for any version.
            by: who requests the retry, and why.
            nodes: topology nodes to run again, with their dependents, even if the topology has succeeded.

        Raises:
            ContentExpired: the task's payload has expired.
            UniqueKeyHeld: another task now holds the task's unique key.
        """
        for _ in range(_TRIES if version is None else 1):
            task = self._read(owner, task_id)
            if is_repeated(task, Action.RETRIED, version, by, nodes):
                return task
            require_version(task, version)
            if is_tried_again(task):
                return task
            sets: TaskChanges = {"result": None, "error": None, "attempt_history": reported_history(task), **NO_EXPIRY}
            sets["reopened_at"] = self.runtime.now()
            if isinstance(task.target, TopologyTarget):
                sets |= {"reopened_fence": task.fence, "rerun_nodes": nodes}
            move = Move.RERUN if nodes else Move.REOPEN
            if task.was_never_let_start:
                move, sets["after"] = Move.BLOCK, task.after and task.after.forgotten
            with suppress(VersionMismatch):
                # The changes fit only this version, because another version has a different attempt history and fence.
                return self.reopener.reopen(replace(task, result=None), move, sets, task.version, by)
        raise VersionMismatch(self._read(owner, task_id))

    def roll_back(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Roll back an ended task by calling its target's `rollback`.

        Raises:
            StateConflict: also raised if the target is known to offer no rollback.
            ContentExpired: the task's payload has expired.
            UniqueKeyHeld: another task now holds the task's unique key.
        """
        task = self._read(owner, task_id)
        if is_repeated(task, Action.ROLLBACK_REQUESTED, version, by):
            return task
        require_version(task, version)
        lacking = isinstance(task.target, HttpTarget) and Phase.ROLLBACK not in task.target.phases
        if lacking or isinstance(task.target, PullTarget | AwsTarget | TopologyTarget | CallbackTarget):
            raise StateConflict(task, "rolled back: its target does not support rollback")
        # The last attempt's error is kept in the attempt history, because the rollback has its own error.
        sets: TaskChanges = {"attempt_history": reported_history(task)}
        return self.reopener.reopen(task, Move.REQUEST_ROLLBACK, sets, version, by)

    def _pausing(self, task: Task) -> TaskChanges:
        return {**no_pause(task), "waits": waits_with(task, PAUSED, self.runtime.now())}

    def _resuming(self, task: Task) -> TaskChanges:
        waits: TaskChanges = {"waits": waits_with(task, RESUMED, self.runtime.now())}
        return {**no_pause(task), **(waits if task.state is State.PAUSED else {})}

    def _checking(self, task: Task) -> TaskChanges:
        if task.waits_for_tasks:
            raise StateConflict(task, "run now: it waits for other tasks")
        return self._resuming(task)

    def _running(self, task: Task) -> TaskChanges:
        return {**self._checking(task), **NO_EXPIRY}

    def _expedited(self, owner: str, task_id: TaskId, request: ControlRequest) -> Task:
        task = self._read(owner, task_id)
        if is_repeated(task, request.action, request.version, request.by):
            return task
        require_version(task, request.version)
        if task.state in GOING_ON - STARTABLE:
            return task
        now = self.runtime.now()
        return self._placed(task, Move.EXPEDITE, lambda _task: now, request)

    def _read(self, owner: str, task_id: TaskId) -> Task:
        task = self.stores.tasks.read(task_id)
        if task is None or not task.exists_for(owner):
            raise TaskNotFound(task_id)
        return task

    def _ask(self, task: Task, requested_action: RequestedAction, version: int | None, by: Attribution) -> Task:
        action, refused = ASKED[requested_action]
        if is_repeated(task, action, version, by):
            return task
        require_version(task, version)
        if task.state not in LEGAL[Move.REQUEST_STOP].sources:
            raise StateConflict(task, refused)
        if task.requested_action in (requested_action, RequestedAction.CANCEL):
            # A task that is asked to stop need not pause first.
            return self._hurried(task)
        request = ControlRequest(action, version, by, partial(stronger, requested_action))
        return self._hurried(self._moved(task, Move.REQUEST_STOP, request))

    def _hurried(self, task: Task) -> Task:
        """If a stop is requested, let a worker stop the task's AWS job at once instead of at its next check."""
        if task.requested_action is RequestedAction.CANCEL and is_job(task.target) and task.awaiting_notification:
            self.enqueuer.remind(task, self.runtime.now())
        return task

    def _moved(self, task: Task, move: Move, request: ControlRequest) -> Task:
        """Make a move; repeat the move after concurrent writes while it is legal, unless a version is required.

        Each try computes the changes from the latest record, so that no concurrent request is undone.
        """
        for _ in range(_TRIES if request.version is None else 1):
            require_legal(task, move)
            changes, guard = request.changes(task, self.runtime.now()), Guard(version=task.version)
            result = self.stores.tasks.apply(Write(task.id, move, self.runtime.nonce(), guard, changes))
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        return request.after_rejection(task)

    def _placed(self, task: Task, move: Move, at_of: Callable[[Task], Millis], request: ControlRequest) -> Task:
        """Make a move, and set a new check at the time computed from the record; repeat the move as in `_moved`."""
        for _ in range(_TRIES if request.version is None else 1):
            require_legal(task, move)
            changes = request.changes(task, self.runtime.now())
            result = self.enqueuer.move(task, move, at_of(task), Guard(version=task.version), changes)
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        return request.after_rejection(task)


_ACTIONS = {
    **dict.fromkeys((Move.REOPEN, Move.RERUN, Move.BLOCK), Action.RETRIED),
    Move.REQUEST_ROLLBACK: Action.ROLLBACK_REQUESTED,
}


@frozen
class TaskReopener:
    """Reopens ended tasks."""

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime

    def reopen(self, task: Task, move: Move, sets: TaskChanges, version: int | None, by: Attribution) -> Task:
        """Reopen a task, which removes its end and all expiries, and takes its unique key again.

        Args:
            task: the record as read.
            move: `REOPEN`, `RERUN`, `BLOCK` or `REQUEST_ROLLBACK`.
            sets: other fields to change.
            version: required version; `None` for any version.
            by: who requests the reopening, and why.

        Raises:
            StateConflict: the task's state does not allow the move.
            VersionMismatch: concurrent writes keep changing the record, or the record is not at the required version.
            ContentExpired: the task's payload or checkpoint has expired.
            UniqueKeyHeld: another task now holds the task's unique key.
        """
        require_legal(task, move)
        if move is Move.RERUN and task.node_ref is not None and task.state is State.SUCCEEDED:
            # The node's children have already started, using the node's result.
            raise StateConflict(task, f"{DONE[move]} on its own: name its node in a retry of its topology")
        if task.finished_at is None:
            raise StateConflict(task, f"{DONE[move]} before its follow-ups are done")
        expiry = unless_referenced(self.runtime.now())
        extend(self.stores.contents, task, expiry)
        reopened = self._moved(task, move, sets, version, by)
        retain_open(self.stores.tasks, self.stores.contents, reopened, expiry)
        return reopened

    def _moved(self, task: Task, move: Move, sets: TaskChanges, version: int | None, by: Attribution) -> Task:
        """Make the move; repeat it if the record or its unique key is written concurrently."""
        opened: TaskChanges = {
            "attempt": 0,
            "finished_at": None,
            "expires_at": None,
            "requested_action": None,
            "lease_expires_at": None,
            "progress": None,
            **fence_raised(task, self.runtime.epoch),
        }
        nodes = sets.get("rerun_nodes", ())
        request = ControlRequest(_ACTIONS[move], version, by, lambda _task: {**opened, **sets}, nodes)
        for _ in range(_TRIES):
            if version not in (None, task.version):
                break
            require_legal(task, move)
            now, guard, taking = self.runtime.now(), Guard(version=task.version), self._taking(task, move)
            if task.group is not None and move is not Move.REQUEST_ROLLBACK:
                # Few tasks are members of a group, so the module is not imported at startup.
                from duetime.services.groups import GroupMembers  # noqa: PLC0415 - see the line above

                GroupMembers(self.stores, self.enqueuer, self.runtime).note_reopening(task)
            result = self.enqueuer.move(task, move, now, guard, request.changes(task, now), taking)
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        return request.after_rejection(task)

    def _taking(self, task: Task, move: Move) -> KeyTaking | None:
        """The write with which the task takes its unique key during the move; `None` if it has no unique key."""
        if unique_of(task.unique, task.debounce) is None:
            return None
        return reopened_key(self.stores, replace(task, state=LEGAL[move].to or task.state))
