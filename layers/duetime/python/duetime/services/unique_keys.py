"""Finds the holders of unique keys, takes keys, and releases them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable, UniqueKeyHeld
from duetime.domain.tasks.creation import KeyTaking, holds_key
from duetime.domain.tasks.task import after_record
from duetime.domain.tasks.task_options import unique_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.ports.stores import Stores


@frozen
class KeyStatus:
    """A unique key as read.

    Attributes:
        holder: the task that holds the key; `None` if no task holds it.
        nonce: nonce of the key's item; `None` if there is no item.
    """

    owner: str
    key: str
    holder: Task | None
    nonce: str | None

    def taken_by(self, task_id: TaskId, since_fence: int = 0) -> KeyTaking:
        """A write that takes the key, unless another task has taken the key since it was read."""
        return KeyTaking(self.owner, self.key, task_id, since_fence, after=self.nonce)


def key_status(stores: Stores, owner: str, key: str) -> KeyStatus:
    """The status of a key; its holder is the task that took the key last, if that task still holds it."""
    known = stores.unique_keys.find(owner, key)
    if known is None:
        return KeyStatus(owner, key, None, None)
    # A task's key never changes, and the key's item is written with the record, so a task without a record ended long
    # ago.
    task = stores.tasks.read(known.task_id)
    return KeyStatus(owner, key, task if task is not None and holds_key(task) else None, known.nonce)


def reopened_key(stores: Stores, task: Task) -> KeyTaking | None:
    """The write with which a reopened task takes its unique key; `None` if the task needs no key.

    Args:
        stores: stores of keys and tasks.
        task: the task after reopening; if it has never started, it holds a key that is released at the start.

    Raises:
        UniqueKeyHeld: another task now holds the key.
    """
    unique = unique_of(task.unique, task.debounce)
    if unique is None or not holds_key(task):
        return None
    status = key_status(stores, task.owner, unique.key)
    if status.holder is not None and status.holder.id != task.id:
        raise UniqueKeyHeld(status.holder, unique.key)
    return status.taken_by(task.id, since_fence=task.fence + 1)


def let_key_expire(stores: Stores, task: Task) -> None:
    """Let the item of an ended task's unique key expire after its record.

    This method never raises `Unavailable`, because a leftover item names an ended task and blocks no other task.
    """
    unique = unique_of(task.unique, task.debounce)
    if unique is None or task.expires_at is None:
        return
    with suppress(Unavailable):
        expires_at = after_record(task.expires_at).at
        stores.unique_keys.let_expire(task.owner, unique.key, task.id, task.fence, expires_at)
