"""Control of tasks that exist: pause, resume, stop, run now, retry and roll back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.tasks.action_history import BY_SYSTEM, Action
from duetime.domain.tasks.attempt_records import PAUSED, RESUMED
from duetime.domain.tasks.attempt_run import reported_history, waits_with
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.content import unless_referenced
from duetime.domain.tasks.control_changes import (
    ASKED,
    DONE,
    NO_EXPIRY,
    ControlRequest,
    goes_on_at,
    is_repeated,
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
from duetime.domain.tasks.task_options import unique_of
from duetime.services.content_retention import extend, retain_open

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.tasks.unique_key_holders import KeyTaking
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.locking import LockManager
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


_ACTIONS = {Move.REOPEN: Action.RETRIED, Move.RERUN: Action.RETRIED, Move.REQUEST_ROLLBACK: Action.ROLLBACK_REQUESTED}


@dataclass(frozen=True, slots=True)
class TaskReopener:
    """Has ended tasks worked on again."""

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime

    def reopen(self, task: Task, move: Move, sets: TaskChanges, version: int | None, by: Attribution) -> Task:
        """Open a task again: without an end and an expiry, its contents neither, and with its unique key.

        Args:
            task: the record as it was read.
            move: `REOPEN`, `RERUN` or `REQUEST_ROLLBACK`.
            sets: what else it changes.
            version: the version at which alone its user wants that; `None` for any.
            by: who wants it, and why.

        Raises:
            StateConflict: its state does not allow it.
            VersionMismatch: others keep writing the record in between, or it is at another version.
            ContentExpired: its payload or its checkpoint is gone.
            UniqueKeyHeld: another task holds its unique key by now.
        """
        require_legal(task, move)
        if move is Move.RERUN and task.node_ref is not None and task.state is State.SUCCEEDED:
            # Its children have begun with its result.
            raise StateConflict(task, f"{DONE[move]} by itself: name its node in a retry of the topology that it is in")
        if task.finished_at is None:
            raise StateConflict(task, f"{DONE[move]} before what follows its end is done")
        expiry = unless_referenced(self.runtime.now())
        extend(self.stores.contents, task, expiry)
        reopened = self._moved(task, move, sets, version, by)
        retain_open(self.stores.tasks, self.stores.contents, reopened, expiry)
        return reopened

    def _moved(self, task: Task, move: Move, sets: TaskChanges, version: int | None, by: Attribution) -> Task:
        """Make the move, again while others write the record, or take its key and end, in between."""
        opened: TaskChanges = {
            "attempt": 0,
            "finished_at": None,
            "expires_at": None,
            "requested_action": None,
            "lease_expires_at": None,
        }
        nodes = sets.get("rerun_nodes", ())
        request = ControlRequest(_ACTIONS[move], version, by, lambda _task: {**opened, **sets}, nodes)
        for _ in range(_TRIES):
            if version not in (None, task.version):
                break
            require_legal(task, move)
            now, guard, taking = self.runtime.now(), Guard(version=task.version), self._taking(task, move)
            result = self.enqueuer.move(task, move, now, guard, request.changes(task, now), taking)
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        return request.after_rejection(task)

    def _taking(self, task: Task, move: Move) -> KeyTaking | None:
        """The taking of the unique key that the task holds by the move; `None` if it holds none."""
        if unique_of(task.unique, task.debounce) is None:
            return None
        # Few tasks have one, and functions start without it.
        from duetime.services.unique_keys import reopened_key  # noqa: PLC0415 - see the line above

        return reopened_key(self.stores, replace(task, state=LEGAL[move].to or task.state))
