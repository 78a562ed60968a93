"""Conditional writes as values: what is to change in a record, and what must be true of it first.

A store turns a `Write` into one request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.tasks.task_changes import TaskChanges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.states import Move
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold of a record for a write to apply, besides that its move is legal.

    Attributes:
        owner: the record belongs to this owner.
        generation: the record is at this generation.
        fence: the record is at this fence: nobody has claimed it since.
        version: the record is at this version: nobody has written it since.
        due_by: the record's next check is no later than this.
        leased_until_before: for a record that is or was leased, instead of `generation`: its lease ends no later than
            this, so it may be taken over, or is not made shorter.
        alone: nothing follows its end for others: the task is neither a node of a topology nor a topology.
        open: the record has an outcome that not all is done for yet (`finished_at` is not set).
        not_cancelled: no cancel of the running attempt was requested, which would have to be carried out.
        acknowledged: the record has no lease that its client has not acknowledged: what is taken over was an attempt.
    """

    owner: str | None = None
    generation: int | None = None
    fence: int | None = None
    version: int | None = None
    due_by: Millis | None = None
    leased_until_before: Millis | None = None
    alone: bool = False
    open: bool = False
    not_cancelled: bool = False
    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """One conditional write to one existing record; it also sets the nonce and raises the version by one.

    Attributes:
        task_id: the record.
        move: what happens to the task; decides the states it may leave and the state it reaches.
        nonce: unique to this write, so that finding it after a rejection means that it had been applied.
        guard: what else must hold.
        sets: new values by field of `Task`; `None` removes the value.
        sets_once: values for fields that have none yet.
        adds: numbers to add, by field.
    """

    task_id: TaskId
    move: Move
    nonce: str
    guard: Guard = Guard()
    sets: TaskChanges = field(default_factory=TaskChanges)
    sets_once: TaskChanges = field(default_factory=TaskChanges)
    adds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """The write was applied; `task` is the record after it."""

    task: Task


@dataclass(frozen=True, slots=True)
class ConditionFailed:
    """The write was not applied; `task` is the record that rejected it, `None` if there is none."""

    task: Task | None


WriteResult = Applied | ConditionFailed
