"""Creations whose unique key is held by another task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.domain.errors import StateConflict, TaskNotFound, UniqueKeyHeld, VersionMismatch
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.creation import TaskChange, debounced_due, due_of
from duetime.domain.tasks.idempotency_keys import Accepted, KeyRedirect
from duetime.domain.tasks.task_options import OnConflict
from duetime.domain.tasks.unique_key_holders import has_begun

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Unique
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import KeyStore
    from duetime.services.tasks.update import TaskUpdater

_BY_CREATION = Attribution(reason="a creation with its unique key")


@dataclass(frozen=True, slots=True)
class KeyConflicts:
    """Settles what becomes of a creation whose unique key is held."""

    task_updater: TaskUpdater
    keys: KeyStore
    runtime: Runtime

    def settle(
        self, holder: Task, spec: TaskSpec, unique: Unique, wanted: tuple[str, TaskId] | None
    ) -> Accepted[Task] | None:
        """Keep the task that holds the key, or give it the fields of the creation.

        Args:
            holder: the task that holds the key, as it was read.
            spec: of the creation.
            unique: its key.
            wanted: its idempotency key, and the task that was to be made, which that names; `None` if it has none.

        Returns:
            The task that holds the key, and what was done; `None` if it has changed since: look again who holds it.

        Raises:
            UniqueKeyHeld: the creation is to be refused, or the task cannot be replaced.
            FieldInvalid: a field of the creation cannot be accepted.
            Unavailable: the store did not answer; nothing may have been changed.
        """
        redirect = None if wanted is None else KeyRedirect(holder.owner, *wanted, holder.id, unique.on_conflict)
        match unique.on_conflict:
            case OnConflict.KEEP:
                if redirect is not None:
                    self.keys.redirect(redirect)
                return Accepted(holder, on_conflict=OnConflict.KEEP)
            case OnConflict.REFUSE:
                raise _held(holder, spec, unique)
            case OnConflict.REPLACE:
                return self._replace(holder, spec, unique, redirect)

    def _replace(
        self, holder: Task, spec: TaskSpec, unique: Unique, redirect: KeyRedirect | None
    ) -> Accepted[Task] | None:
        if has_begun(holder):
            raise _held(holder, spec, unique, ", and has begun: it cannot be replaced any more")
        if holder.type != spec.type:
            raise _held(holder, spec, unique, f", and is of another type, {holder.type!r}")
        now = self.runtime.now()
        due = due_of(spec, now) if spec.debounce is None else debounced_due(spec.debounce, holder.created_at, now)
        fields: Any = {**spec.options(), "target": spec.target, "unique": spec.unique, "debounce": spec.debounce}
        # In one write: a repeat after the task's end must know what was done, however the answer was lost.
        change = TaskChange(fields, due_at=due, payload=spec.payload, redirect=redirect)
        try:
            task = self.task_updater.update(holder.owner, holder.id, change, holder.version, _BY_CREATION)
        except (StateConflict, TaskNotFound, VersionMismatch):
            return None
        return Accepted(task, on_conflict=OnConflict.REPLACE)


def _held(holder: Task, spec: TaskSpec, unique: Unique, why: str = "") -> UniqueKeyHeld:
    field = "unique.key" if spec.debounce is None else "debounce.key"
    return UniqueKeyHeld(holder, unique.key, why, field=field)
