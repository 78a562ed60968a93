"""Conditional writes as values, which consist of changes to a record and their conditions.

A store turns a `Write` into one request.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from duetime.domain.tasks.task_changes import TaskChanges
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.states import Move
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@frozen
class Guard:
    """Conditions of a write, in addition to a legal transition.

    Attributes:
        owner: the record belongs to this owner.
        generation: the record is at this generation.
        fence: the record is at this fence, so nobody has claimed it since it was read.
        version: the record is at this version, so nobody has written it since it was read.
        due_by: the record's next check is due at this time or earlier.
        leased_until_before: used instead of `generation` for a record that is or was leased: its lease ends at this
            time or earlier, so taking the lease over is allowed, and renewing it does not shorten it.
        alone: no other task depends on the task's end, because the task is neither a topology nor a topology node, and
            `unawaited` is also true.
        unawaited: no other task has the task in its `after`.
        open: the record has an outcome with unfinished follow-ups (`finished_at` is not set).
        not_cancelled: no cancellation of the running attempt was requested.
        acknowledged: the client has acknowledged the record's lease, if any, so a takeover counts as an attempt.
    """

    owner: str | None = None
    generation: int | None = None
    fence: int | None = None
    version: int | None = None
    due_by: Millis | None = None
    leased_until_before: Millis | None = None
    alone: bool = False
    unawaited: bool = False
    open: bool = False
    not_cancelled: bool = False
    acknowledged: bool = False


@frozen
class Write:
    """One conditional write to one existing record, which also sets the nonce and increments the version.

    Attributes:
        task_id: the record.
        move: the transition, which determines the allowed states before the write and the state after the write.
        nonce: unique to this write; if the write is rejected but the record has this nonce, the write was applied
            earlier.
        guard: additional conditions.
        sets: new values by field of `Task`; `None` removes the value.
        sets_once: values for fields that have no value yet.
        adds: numbers to add, by field.
    """

    task_id: TaskId
    move: Move
    nonce: str
    guard: Guard = Guard()
    sets: TaskChanges = field(default_factory=TaskChanges)
    sets_once: TaskChanges = field(default_factory=TaskChanges)
    adds: Mapping[str, int] = field(default_factory=dict)


@frozen
class Applied:
    """The write was applied; `task` is the record after the write."""

    task: Task


@frozen
class ConditionFailed:
    """The write was not applied; `task` is the current record, or `None` if the task does not exist."""

    task: Task | None


WriteResult = Applied | ConditionFailed


@frozen
class Incarnation:
    """The version of the resource that is stored under a name, as read.

    Each write names the version that it expects, and is rejected if the version has changed.

    Attributes:
        number: incremented by every write, including deletions; 0 if nothing is stored under the name.
        created: the number of the write that created the resource; 0 if there is no resource.
    """

    number: int = 0
    created: int = 0

    @property
    def next(self) -> Incarnation:
        """The value after a write that creates or replaces the resource under the name."""
        return Incarnation(self.number + 1, self.created or self.number + 1)
