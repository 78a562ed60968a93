"""Control of tasks that exist: pause, resume, stop, run now, retry and roll back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.tasks.action_history import BY_SYSTEM, Action
from duetime.domain.tasks.action_recording import is_repeated
from duetime.domain.tasks.attempt_records import PAUSED, RESUMED
from duetime.domain.tasks.attempt_run import reported_history, waits_with
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.control_changes import (
    ASKED,
    NO_EXPIRY,
    ControlRequest,
    goes_on_at,
    is_tried_again,
    no_pause,
    pause_taken_back,
    require_legal,
    require_version,
    stronger,
)
from duetime.domain.tasks.states import GOING_ON, LEGAL, STARTABLE, Move, State
from duetime.domain.tasks.targets import AwsTarget, HttpTarget, Phase, PullTarget, TopologyTarget
from duetime.domain.tasks.task import RequestedAction

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.locks.locking import LockManager
    from duetime.services.tasks.reopen import TaskReopener
    from duetime.services.tasks.update import TaskUpdater

_TRIES = 5


@dataclass(frozen=True, slots=True)
class TaskControl:
    """Controls tasks: each call is one legal move, or says why it cannot be made.

    What each of them does is recorded with the task: `by` says who does it, and why.
    Every method raises `TaskNotFound` for a task that does not exist or is another owner's, `StateConflict` if the
    task's state does not allow it, and `VersionMismatch` if others keep writing the record in between, or if it is not
    at the `version` at which alone its user wants that done.
    """

    stores: Stores
    enqueuer: Enqueuer
    task_updater: TaskUpdater
    lock_manager: LockManager
    runtime: Runtime
    reopener: TaskReopener

    def pause(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Hold a task that has not started; ask a running one to pause, which it does when it can.

        One that is paused stays as it is, whatever its version: the answer to the first request may have been lost.
        """
        task = self._read(owner, task_id)
        if task.state is State.PAUSED:
            return task
        if task.state in LEGAL[Move.PAUSE].sources:
            require_version(task, version)
            paused = self._moved(task, Move.PAUSE, ControlRequest(Action.PAUSED, version, by, self._pausing))
            self.lock_manager.release_reservation(paused)
            return paused
        return self._ask(task, RequestedAction.PAUSE, version, by)

    def stop(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Ask a running task to stop, which it does when it can."""
        return self._ask(self._read(owner, task_id), RequestedAction.CANCEL, version, by)

    def cancel_by_force(self, owner: str, task_id: TaskId, version: int | None, by: Attribution = BY_SYSTEM) -> Task:
        """Cancel a task that has not started, or ask it to stop if it runs: it may begin or fail meanwhile."""
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
        """Let a paused task go on: at its due time if that is still ahead, else now.

        What had waited for a lock has left its line, where nobody places it any more: it checks again at once. One that
        goes on already is left as it is, whatever its version: the answer to the first request may have been lost.
        """
        task = self._read(owner, task_id)
        is_held = task.state is State.PAUSED or task.requested_action is RequestedAction.PAUSE
        # Of a topology the nodes would have to go on as well.
        if not is_held and task.state in GOING_ON and not isinstance(task.target, TopologyTarget):
            return task
        require_version(task, version)
        if task.state is State.PAUSED:
            request = ControlRequest(Action.RESUMED, version, by, self._resuming)
            return self._placed(task, Move.RESUME, goes_on_at, request)
        if is_held:
            # The attempt that was asked may have failed since: then the request is withdrawn from its retry.
            move = Move.CHANGE if task.state in LEGAL[Move.CHANGE].sources else Move.REQUEST_STOP
            return self._moved(task, move, ControlRequest(Action.RESUMED, version, by, pause_taken_back))
        raise StateConflict(task, "resumed")

    def run_now(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Have a task that has not started run now; one that runs already is left as it is.

        So is one that this request, sent again with its version, had run before; the same holds for `retry`.
        """
        task = self._read(owner, task_id)
        if is_repeated(task, Action.RUN_REQUESTED, version, by):
            return task
        require_version(task, version)
        if task.state in GOING_ON - STARTABLE:
            return task
        now = self.runtime.now()
        request = ControlRequest(Action.RUN_REQUESTED, version, by, lambda seen: {**self._resuming(seen), **NO_EXPIRY})
        return self._placed(task, Move.EXPEDITE, lambda _task: now, request)

    def retry(
        self,
        owner: str,
        task_id: TaskId,
        version: int | None = None,
        by: Attribution = BY_SYSTEM,
        nodes: tuple[str, ...] = (),
    ) -> Task:
        """Have a failed task tried again from its first attempt on; one that is tried again already is left as it is.

        Args:
            owner: whose task it is.
            task_id: its id.
            version: the version at which alone its user wants that; `None` for any.
            by: who wants it, and why.
            nodes: of a topology: those that run again with what depends on them, even if it has succeeded.

        Raises:
            ContentExpired: also if its payload is gone.
            UniqueKeyHeld: another task holds its unique key by now.
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
            with suppress(VersionMismatch):
                # What is set is of this version: another one has another attempt history and fence.
                return self.reopener.reopen(replace(task, result=None), move, sets, task.version, by)
        raise VersionMismatch(self._read(owner, task_id))

    def roll_back(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Have an ended task undone by its target's `rollback`.

        Raises:
            StateConflict: also if the target is known to offer none.
            ContentExpired: its payload is gone.
            UniqueKeyHeld: another task holds its unique key by now.
        """
        task = self._read(owner, task_id)
        if is_repeated(task, Action.ROLLBACK_REQUESTED, version, by):
            return task
        require_version(task, version)
        lacking = isinstance(task.target, HttpTarget) and Phase.ROLLBACK not in task.target.phases
        if lacking or isinstance(task.target, PullTarget | AwsTarget | TopologyTarget):
            raise StateConflict(task, "rolled back: its target offers no rollback")
        # With the error of its last attempt told in the attempt history: that of the rollback is another.
        sets: TaskChanges = {"attempt_history": reported_history(task)}
        return self.reopener.reopen(task, Move.REQUEST_ROLLBACK, sets, version, by)

    def _pausing(self, task: Task) -> TaskChanges:
        return {**no_pause(task), "waits": waits_with(task, PAUSED, self.runtime.now())}

    def _resuming(self, task: Task) -> TaskChanges:
        waits: TaskChanges = {"waits": waits_with(task, RESUMED, self.runtime.now())}
        return {**no_pause(task), **(waits if task.state is State.PAUSED else {})}

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
            # What is to stop for good need not pause.
            return self._hurried(task)
        request = ControlRequest(action, version, by, partial(stronger, requested_action))
        return self._hurried(self._moved(task, Move.REQUEST_STOP, request))

    def _hurried(self, task: Task) -> Task:
        """Have a worker stop the job that AWS runs, at once and not with its next check, if that is requested."""
        if task.requested_action is RequestedAction.CANCEL and is_job(task.target) and task.awaiting_notification:
            self.enqueuer.remind(task, self.runtime.now())
        return task

    def _moved(self, task: Task, move: Move, request: ControlRequest) -> Task:
        """Make a move, again while others write in between and it stays legal, unless only this version is meant.

        What it changes is made of the record as it was last seen: nothing that was asked in between is undone.
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
        """Make a move that sets a new check; again as `_moved` does, at the time that the record then asks for."""
        for _ in range(_TRIES if request.version is None else 1):
            require_legal(task, move)
            changes = request.changes(task, self.runtime.now())
            result = self.enqueuer.move(task, move, at_of(task), Guard(version=task.version), changes)
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        return request.after_rejection(task)
