"""Ensures that contents stored outside a record do not expire while an open record refers to them.

Content that is written before a record refers to it has an expiry, which is removed once the record refers to it. A
writer that crashes or is rejected therefore leaves nothing behind, and no open task loses its contents.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import ContentPlace, after_record, unless_referenced
from duetime.domain.tasks.task_options import unique_of
from duetime.services.unique_keys import let_key_expire

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.tasks.task import Content, Expiry, Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import ContentStore, TaskStore
    from duetime.services.groups import Mover


def let_expire(contents: ContentStore, task: Task, expires_at: Millis) -> None:
    """Let all contents stored outside an ended task's record expire after the record, which expires at `expires_at`."""
    if not task.has_contents_to_expire:
        return
    expiry = after_record(expires_at)
    contents.expire_items(task.id, expiry)
    for content in task.contents_without_expiry:
        if content.place is ContentPlace.OBJECT:
            contents.expire(task.id, content, expiry)


def note_end(stores: Stores, enqueuer: Mover, runtime: Runtime, task: Task) -> None:
    """Note a task's end outside its record: set an expiry for its unique key's item, and count the end in its group."""
    if unique_of(task.unique, task.debounce) is not None:
        let_key_expire(stores, task)
    if task.group is not None:
        # Few tasks are members of a group, so the module is not imported at startup.
        from duetime.services.groups import GroupMembers  # noqa: PLC0415 - see the line above

        GroupMembers(stores, enqueuer, runtime).note_end(task)
    if task.completes is not None:
        from duetime.services.groups import GroupMembers  # noqa: PLC0415 - as above

        GroupMembers(stores, enqueuer, runtime).note_completion(task)


def extend(contents: ContentStore, task: Task, expiry: Expiry) -> None:
    """Extend the expiry of an ended task's contents to `expiry`, before its record is opened again.

    Raises:
        ContentExpired: the task's payload or checkpoint has expired.
    """
    for content in task.contents_outside:
        if not contents.expire(task.id, content, expiry) and content != task.result:
            raise ContentExpired(task.id, content.name)
    for line in _lines(contents, task):
        contents.expire(task.id, line, expiry)


def retain(contents: ContentStore, task: Task, expiry: Expiry | None = None) -> None:
    """Remove the expiry from the contents of a record that now refers to them.

    If `expiry` is given, content with a different expiry keeps that expiry, because the process that ended the task
    has set that expiry in the meantime.
    """
    for content in (*task.contents_outside, *_lines(contents, task)):
        contents.retain(task.id, content, expiry)


def retain_open(tasks: TaskStore, contents: ContentStore, task: Task, expiry: Expiry) -> None:
    """Remove the expiry from the contents of a just-opened record, unless the task has ended in the meantime."""
    if task.contents_outside or task.may_have_attempts_outside:
        retain(contents, task, expiry)
        _expire_again(tasks, contents, task)


def retain_paused(tasks: TaskStore, contents: ContentStore, task: Task | None) -> None:
    """Remove the expiry from a paused task's checkpoint, in case the attempt crashed before doing so."""
    if task is not None and task.state is State.PAUSED and task.checkpoint is not None and task.checkpoint.is_outside:
        contents.retain(task.id, task.checkpoint)
        _expire_again(tasks, contents, task)


def retain_result(tasks: TaskStore, contents: ContentStore, task: Task) -> None:
    """Remove the expiry from the result of a node whose topology is open."""
    if task.expires_at is None and task.result is not None and task.result.is_outside:
        contents.retain(task.id, task.result)
        _expire_again(tasks, contents, task)


def replace_content(
    stores: tuple[TaskStore, ContentStore],
    task: Task,
    old: Content | None,
    new: Content,
    expiry: Expiry,
    write: Callable[[], WriteResult],
) -> WriteResult:
    """Replace the content that a record refers to with new content, which is written with `expiry`.

    Both contents have an expiry until the process knows which content the record refers to. Then that content's expiry
    is removed.

    Args:
        stores: stores of the record and its contents.
        task: the record as read.
        old: the content that the record refers to.
        new: the content that replaces it.
        expiry: expiry of the new content.
        write: writes the reference to the new content.
    """
    tasks, contents = stores
    if old is not None and old.is_outside:
        contents.expire(task.id, old, expiry)
    try:
        result = write()
    except Unavailable:
        with suppress(Unavailable):
            _retain_either(stores, tasks.read(task.id), (old, new), expiry)
        raise
    _retain_either(stores, result.task, (old, new), expiry)
    return result


def write_checkpoint(
    stores: tuple[TaskStore, ContentStore], runtime: Runtime, task: Task, checkpoint: bytes, write: Write
) -> WriteResult:
    """Store a checkpoint, and make a write that replaces the task's reference to its earlier checkpoint.

    Args:
        stores: stores of the record and its contents.
        runtime: the clock, and the source of nonces.
        task: the record as read.
        checkpoint: JSON text in UTF-8.
        write: the write, without the checkpoint.
    """
    tasks, contents = stores
    expiry = unless_referenced(max(runtime.now(), task.due_at))
    kept = contents.keep(task.id, f"checkpoint.{runtime.nonce()}", checkpoint, expiry)
    write = replace(write, sets={**write.sets, "checkpoint": kept})
    return replace_content(stores, task, task.checkpoint, kept, expiry, partial(tasks.apply, write))


def _retain_either(
    stores: tuple[TaskStore, ContentStore],
    task: Task | None,
    either: tuple[Content | None, Content],
    expiry: Expiry,
) -> None:
    if task is None or task.is_terminal:
        return
    tasks, contents = stores
    names = {content.name for content in either if content is not None}
    kept = [content for content in task.contents_outside if content.name in names]
    for content in kept:
        contents.retain(task.id, content, expiry)
    if kept:
        _expire_again(tasks, contents, task)


def _expire_again(tasks: TaskStore, contents: ContentStore, task: Task) -> None:
    """If the task has ended since, restore the expiry that was just removed from its contents.

    The write that ended the task may have kept the earlier expiry, because that expiry was later than the expiry of an
    ended record.
    """
    now = tasks.read(task.id)
    if now is not None and now.is_terminal and now.expires_at is not None:
        let_expire(contents, now, now.expires_at)


def _lines(contents: ContentStore, task: Task) -> list[Content]:
    return contents.attempts_outside(task.id) if task.may_have_attempts_outside else []
