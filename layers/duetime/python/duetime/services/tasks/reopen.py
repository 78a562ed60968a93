"""Opening ended tasks again: for a retry, or for a rollback."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.errors import StateConflict
from duetime.domain.tasks.action_history import Action
from duetime.domain.tasks.content_expiry import unless_referenced
from duetime.domain.tasks.control_changes import DONE, ControlRequest, require_legal
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.tasks.task_options import unique_of
from duetime.services.content_retention import extend, retain_open

if TYPE_CHECKING:
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.tasks.unique_key_holders import KeyTaking
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer

_TRIES = 5
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
