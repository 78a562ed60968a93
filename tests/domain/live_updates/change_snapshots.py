"""Functions that create changes and subscriptions for tests."""

from __future__ import annotations

from typing import Any

from duetime.domain.change_events import Change, ChangeBatch, TaskSnapshot, task_snapshot
from duetime.domain.ids import TaskId
from duetime.domain.live_updates import Connection, Subscription, Topic, TopicKind, WatchedChange, watched
from tests.domain.factories import NOW, task

CONNECTION = Connection("c1", "me", NOW + 1)
MINE = Topic(TopicKind.MINE)


def task_id(number: int) -> TaskId:
    """The id of the test task with this number."""
    return TaskId.of(NOW, 7, number)


def snapshot(number: int, version: int, **changes: Any) -> TaskSnapshot:  # noqa: ANN401 - any field of Task
    """The test task with this number, at a given version."""
    return task_snapshot(task(id=task_id(number), version=version, **changes))


def change(before: TaskSnapshot | None, after: TaskSnapshot | None) -> WatchedChange:
    """The change that a write of a task causes."""
    (found,) = watched(ChangeBatch((Change("event", NOW, before, after),)))
    return found


def write(number: int, version: int, **changes: Any) -> WatchedChange:  # noqa: ANN401 - as above
    """The write that produced this version of the test task with this number."""
    before = snapshot(number, version - 1, **changes) if version > 1 else None
    return change(before, snapshot(number, version, **changes))


def subscription(topic: Topic = MINE, ref: str = "1", **more: Any) -> Subscription:  # noqa: ANN401 - any other field
    """A subscription."""
    return Subscription(more.pop("connection", CONNECTION), ref, topic, **more)
