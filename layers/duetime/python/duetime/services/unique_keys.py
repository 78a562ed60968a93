"""Unique keys: which task holds one, and how one is taken and let go."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable, UniqueKeyHeld
from duetime.domain.tasks.content import after_record
from duetime.domain.tasks.task_options import unique_of
from duetime.domain.tasks.unique_key_holders import KeyTaking, holds_key

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.ports.stores import Stores


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """A unique key as it was read.

    Attributes:
        holder: the task that holds it; `None` if none does.
        nonce: of its item; `None` if there is none.
    """

    owner: str
    key: str
    holder: Task | None
    nonce: str | None

    def taken_by(self, task_id: TaskId, since_fence: int = 0) -> KeyTaking:
        """The taking of the key, as long as nobody else has taken it since it was read."""
        return KeyTaking(self.owner, self.key, task_id, since_fence, after=self.nonce)


def key_status(stores: Stores, owner: str, key: str) -> KeyStatus:
    """Which task holds a key: the one that took it last, if its record says so."""
    known = stores.unique_keys.find(owner, key)
    if known is None:
        return KeyStatus(owner, key, None, None)
    # The key of a task is fixed, and its item is written with it: a record that is gone has ended long ago.
    task = stores.tasks.read(known.task_id)
    return KeyStatus(owner, key, task if task is not None and holds_key(task) else None, known.nonce)


def reopened_key(stores: Stores, task: Task) -> KeyTaking | None:
    """The taking of its unique key by a task that is opened again after its end; `None` if it needs none.

    Args:
        stores: where keys and tasks are.
        task: as it will be; one that has never started holds a key until the start anew.

    Raises:
        UniqueKeyHeld: another task holds the key by now.
    """
    unique = unique_of(task.unique, task.debounce)
    if unique is None or not holds_key(task):
        return None
    status = key_status(stores, task.owner, unique.key)
    if status.holder is not None and status.holder.id != task.id:
        raise UniqueKeyHeld(status.holder, unique.key)
    return status.taken_by(task.id, since_fence=task.fence + 1)


def let_key_expire(stores: Stores, task: Task) -> None:
    """Let the item of an ended task's unique key be removed after its record.

    Never raises `Unavailable`: an item that stays names a task that has ended, and holds nothing.
    """
    unique = unique_of(task.unique, task.debounce)
    if unique is None or task.expires_at is None:
        return
    with suppress(Unavailable):
        expires_at = after_record(task.expires_at).at
        stores.unique_keys.let_expire(task.owner, unique.key, task.id, task.fence, expires_at)
