"""How long the contents outside a record are kept: without an expiry while an open record refers to them.

Whatever is written before a record refers to it carries an expiry, which is taken away once the record does. So a
writer that dies, or is rejected, leaves nothing for ever, and no open task loses what it needs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.tasks.content import ContentPlace, after_record
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import unique_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.content import Content, Expiry
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import ContentStore, TaskStore


def let_expire(contents: ContentStore, task: Task, expires_at: Millis) -> None:
    """Let all that lies outside an ended task's record be removed after the record, which expires at `expires_at`."""
    if not task.has_contents_to_expire:
        return
    expiry = after_record(expires_at)
    contents.expire_items(task.id, expiry)
    for content in task.contents_without_expiry:
        if content.place is ContentPlace.OBJECT:
            contents.expire(task.id, content, expiry)


def let_key_expire(stores: Stores, task: Task) -> None:
    """Let the item of an ended task's unique key be removed after its record."""
    if unique_of(task.unique, task.debounce) is not None:
        # Few tasks have one, and functions start without it.
        from duetime.services import unique_keys  # noqa: PLC0415 - see the line above

        unique_keys.let_key_expire(stores, task)


def extend(contents: ContentStore, task: Task, expiry: Expiry) -> None:
    """Have what lies outside an ended task's record last until `expiry`, before the record is opened again.

    Raises:
        ContentExpired: its payload or its checkpoint is gone.
    """
    for content in task.contents_outside:
        if not contents.expire(task.id, content, expiry) and content != task.result:
            raise ContentExpired(task.id, content.name)
    for line in _lines(contents, task):
        contents.expire(task.id, line, expiry)


def retain(contents: ContentStore, task: Task, expiry: Expiry | None = None) -> None:
    """Take away the expiry that the contents of a record were given before it referred to them.

    Another expiry than this one, if one is named, was set since, by whoever ended the task, and stays.
    """
    for content in (*task.contents_outside, *_lines(contents, task)):
        contents.retain(task.id, content, expiry)


def retain_open(tasks: TaskStore, contents: ContentStore, task: Task, expiry: Expiry) -> None:
    """Take away the expiry of the contents of a record that has just been opened, unless it has ended meanwhile."""
    if task.contents_outside or task.may_have_attempts_outside:
        retain(contents, task, expiry)
        _expire_again(tasks, contents, task)


def retain_paused(tasks: TaskStore, contents: ContentStore, task: Task | None) -> None:
    """Let the checkpoint of a paused task last, whose attempt may have vanished before it came to that."""
    if task is not None and task.state is State.PAUSED and task.checkpoint is not None and task.checkpoint.is_outside:
        contents.retain(task.id, task.checkpoint)
        _expire_again(tasks, contents, task)


def replace_content(
    stores: tuple[TaskStore, ContentStore],
    task: Task,
    old: Content | None,
    new: Content,
    expiry: Expiry,
    write: Callable[[], WriteResult],
) -> WriteResult:
    """Have a record refer to a new content, written with `expiry`, in place of an old one.

    While it is not known which of the two the record refers to, both have an expiry; that one loses it.

    Args:
        stores: of the record and of its contents.
        task: the record as it was read.
        old: what it refers to.
        new: what it is to refer to.
        expiry: of the new one.
        write: makes the record refer to the new one.
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
    """Set the expiry of contents again that was just taken away, if their record has ended since.

    Whoever ended it may have found the earlier expiry, which was later than that of an ended record, and left it.
    """
    now = tasks.read(task.id)
    if now is not None and now.is_terminal and now.expires_at is not None:
        let_expire(contents, now, now.expires_at)


def _lines(contents: ContentStore, task: Task) -> list[Content]:
    return contents.attempts_outside(task.id) if task.may_have_attempts_outside else []
