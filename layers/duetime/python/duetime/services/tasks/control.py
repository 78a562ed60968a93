"""Control of tasks that exist: pause, resume, stop, run now, retry and roll back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.tasks.action_changes import is_repeated, recorded
from duetime.domain.tasks.action_history import BY_SYSTEM, Action
from duetime.domain.tasks.attempt_records import PAUSED, RESUMED
from duetime.domain.tasks.attempt_run import reported_history, waits_with
from duetime.domain.tasks.content_expiry import unless_referenced
from duetime.domain.tasks.control_changes import (
    ASKED,
    DONE,
    NO_EXPIRY,
    goes_on_at,
    no_pause,
    pause_taken_back,
    require_legal,
    require_version,
    stronger,
)
from duetime.domain.tasks.states import GOING_ON, LEGAL, STARTABLE, Move, State
from duetime.domain.tasks.targets import AwsTarget, HttpTarget, Phase, PullTarget, TopologyTarget
from duetime.domain.tasks.task import RequestedAction
from duetime.services.content_retention import extend, retain_open

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
    from duetime.services.tasks.update import TaskUpdater

_TRIES = 5
_REOPENED = {Move.REOPEN: Action.RETRIED, Move.REQUEST_ROLLBACK: Action.ROLLBACK_REQUESTED}


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

    def pause(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Hold a task that has not started; ask a running one to pause, which it does when it can.

        One that is paused stays as it is, whatever its version: the answer to the first request may have been lost.
        """
        task = self._read(owner, task_id)
        if task.state is State.PAUSED:
            return task
        require_version(task, version)
        if task.state in LEGAL[Move.PAUSE].sources:
            paused = self._moved(task, Move.PAUSE, self._recorded(Action.PAUSED, by, self._pausing), version)
            self.lock_manager.release_reservation(paused)
            return paused
        return self._ask(task, RequestedAction.PAUSE, version, by)

    def stop(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Ask a running task to stop, which it does when it can."""
        return self._ask(self._read(owner, task_id, version), RequestedAction.CANCEL, version, by)

    def cancel_by_force(self, owner: str, task_id: TaskId, version: int | None, by: Attribution = BY_SYSTEM) -> Task:
        """Cancel a task that has not started, or ask it to stop if it runs: it may begin or fail meanwhile."""
        for _ in range(_TRIES):
            try:
                return self.task_updater.cancel(owner, task_id, version, by)
            except StateConflict as refusal:
                if refusal.task.state not in LEGAL[Move.REQUEST_STOP].sources:
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
            sets_of = self._recorded(Action.RESUMED, by, self._resuming)
            return self._placed(task, Move.RESUME, goes_on_at, sets_of, version)
        if is_held:
            # The attempt that was asked may have failed since: then the request is withdrawn from its retry.
            move = Move.CHANGE if task.state in LEGAL[Move.CHANGE].sources else Move.REQUEST_STOP
            return self._moved(task, move, self._recorded(Action.RESUMED, by, pause_taken_back), version)
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
        sets_of = self._recorded(Action.RUN_REQUESTED, by, lambda seen: {**self._resuming(seen), **NO_EXPIRY})
        return self._placed(task, Move.EXPEDITE, lambda _task: now, sets_of, version)

    def retry(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Have a failed task tried again from its first attempt on; one that is tried again already is left as it is.

        Raises:
            ContentExpired: also if its payload is gone.
        """
        for _ in range(_TRIES if version is None else 1):
            task = self._read(owner, task_id)
            if is_repeated(task, Action.RETRIED, version, by):
                return task
            require_version(task, version)
            if task.state in GOING_ON and task.attempt_history and not isinstance(task.target, TopologyTarget):
                return task
            sets: TaskChanges = {"result": None, "error": None, "attempt_history": reported_history(task), **NO_EXPIRY}
            if isinstance(task.target, TopologyTarget) or task.node_ref is not None:
                sets["reopened_fence"] = task.fence
            with suppress(VersionMismatch):
                # What is set is of this version: another one has another attempt history and fence.
                return self._reopened(replace(task, result=None), Move.REOPEN, sets, task.version, by)
        raise VersionMismatch(self._read(owner, task_id))

    def roll_back(self, owner: str, task_id: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM) -> Task:
        """Have an ended task undone by its target's `rollback`.

        Raises:
            StateConflict: also if the target is known to offer none.
            ContentExpired: its payload is gone.
        """
        task = self._read(owner, task_id)
        if is_repeated(task, Action.ROLLBACK_REQUESTED, version, by):
            return task
        require_version(task, version)
        lacking = isinstance(task.target, HttpTarget) and Phase.ROLLBACK not in task.target.phases
        if lacking or isinstance(task.target, PullTarget | AwsTarget | TopologyTarget):
            raise StateConflict(task, "rolled back: its target offers no rollback")
        # With the error of its last attempt told in the attempt history: that of the rollback is another.
        return self._reopened(task, Move.REQUEST_ROLLBACK, {"attempt_history": reported_history(task)}, version, by)

    def _pausing(self, task: Task) -> TaskChanges:
        return {**no_pause(task), "waits": waits_with(task, PAUSED, self.runtime.now())}

    def _resuming(self, task: Task) -> TaskChanges:
        waits: TaskChanges = {"waits": waits_with(task, RESUMED, self.runtime.now())}
        return {**no_pause(task), **(waits if task.state is State.PAUSED else {})}

    def _read(self, owner: str, task_id: TaskId, version: int | None = None) -> Task:
        task = self.stores.tasks.read(task_id)
        if task is None or not task.exists_for(owner):
            raise TaskNotFound(task_id)
        require_version(task, version)
        return task

    def _recorded(
        self, action: Action, by: Attribution, sets_of: Callable[[Task], TaskChanges]
    ) -> Callable[[Task], TaskChanges]:
        """What a move sets, the record of the action with it."""
        return lambda task: {**sets_of(task), **recorded(task, action, by, self.runtime.now())}

    def _ask(self, task: Task, requested_action: RequestedAction, version: int | None, by: Attribution) -> Task:
        if task.state not in LEGAL[Move.REQUEST_STOP].sources:
            raise StateConflict(task, ASKED[requested_action][1])
        if task.requested_action in (requested_action, RequestedAction.CANCEL):
            # What is to stop for good need not pause.
            return task
        sets_of = self._recorded(ASKED[requested_action][0], by, partial(stronger, requested_action))
        return self._moved(task, Move.REQUEST_STOP, sets_of, version)

    def _moved(self, task: Task, move: Move, sets_of: Callable[[Task], TaskChanges], version: int | None) -> Task:
        """Make a move, again while others write in between and it stays legal, unless only this version is meant.

        What it changes is made of the record as it was last seen: nothing that was asked in between is undone.
        """
        for _ in range(_TRIES if version is None else 1):
            require_legal(task, move)
            guard = Guard(version=task.version)
            result = self.stores.tasks.apply(Write(task.id, move, self.runtime.nonce(), guard, sets_of(task)))
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        raise VersionMismatch(task)

    def _placed(
        self,
        task: Task,
        move: Move,
        at_of: Callable[[Task], Millis],
        sets_of: Callable[[Task], TaskChanges],
        version: int | None,
    ) -> Task:
        """Make a move that sets a new check; again as `_moved` does, at the time that the record then asks for."""
        for _ in range(_TRIES if version is None else 1):
            require_legal(task, move)
            result = self.enqueuer.move(task, move, at_of(task), Guard(version=task.version), sets_of(task))
            if isinstance(result, Applied):
                return result.task
            task = result.task or task
        raise VersionMismatch(task)

    def _reopened(self, task: Task, move: Move, sets: TaskChanges, version: int | None, by: Attribution) -> Task:
        """Have an ended task worked on again: without an end and an expiry, its contents neither."""
        require_legal(task, move)
        if task.finished_at is None:
            raise StateConflict(task, f"{DONE[move]} before what follows its end is done")
        now = self.runtime.now()
        expiry = unless_referenced(now)
        extend(self.stores.contents, task, expiry)
        opened: TaskChanges = {
            "attempt": 0,
            "finished_at": None,
            "expires_at": None,
            "requested_action": None,
            "lease_expires_at": None,
        }
        sets_of = self._recorded(_REOPENED[move], by, lambda _task: {**opened, **sets})
        reopened = self._placed(task, move, lambda _task: now, sets_of, version)
        retain_open(self.stores.tasks, self.stores.contents, reopened, expiry)
        return reopened
