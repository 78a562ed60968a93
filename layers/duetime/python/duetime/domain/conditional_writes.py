"""Conditional writes as values: the changes to a record and the conditions for them.

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
    """Conditions of a write, in addition to a legal transition.

    Attributes:
        owner: the record belongs to this owner.
        generation: the record is at this generation.
        fence: the record is at this fence: nobody has claimed it since it was read.
        version: the record is at this version: nobody has written it since it was read.
        due_by: the record's next check is no later than this.
        leased_until_before: for a record that is or was leased, in place of `generation`: its lease ends no later than
            this, so the lease may be taken over, or is not shortened.
        alone: no other task depends on its end: the task is neither a node of a topology nor a topology, and
            `unawaited`.
        unawaited: no other task has the task in its `after`.
        open: the record has an outcome with unfinished follow-ups (`finished_at` is not set).
        not_cancelled: no cancel of the running attempt was requested.
        acknowledged: the client has acknowledged the lease, if the record has one, so taking it over counts as an
            attempt.
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


@dataclass(frozen=True, slots=True)
class Write:
    """One conditional write to one existing record; it also sets the nonce and increments the version.

    Attributes:
        task_id: the record.
        move: the transition; determines the states before and the state after the write.
        nonce: unique to this write; if it is found after a rejection, the write had been applied.
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


@dataclass(frozen=True, slots=True)
class Applied:
    """The write was applied; `task` is the record after the write."""

    task: Task


@dataclass(frozen=True, slots=True)
class ConditionFailed:
    """The write was not applied; `task` is the current record, `None` if it does not exist."""

    task: Task | None


WriteResult = Applied | ConditionFailed


@dataclass(frozen=True, slots=True)
class Incarnation:
    """The resource under a name, as it was read. Writes name it, and are rejected if it has changed.

    Attributes:
        number: incremented by every write, including deletions; 0 if nothing is stored under the name.
        created: the number of the write that created the resource; 0 if there is none.
    """

    number: int = 0
    created: int = 0

    @property
    def next(self) -> Incarnation:
        """The value after a write that leaves a resource under the name."""
        return Incarnation(self.number + 1, self.created or self.number + 1)
