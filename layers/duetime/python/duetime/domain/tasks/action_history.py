"""The history of actions on a task, which records who did what, when, and why. Attempts have separate records.

Actions are stored in an attribute of the task's record, by the same write as their effect, so they cost no extra write.
Records without actions do not have this attribute.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import ACTIONS_INLINE, ACTIONS_INLINE_BYTES
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis

_FIXED_BYTES = 32
"""Approximate size of a history entry without its strings, in bytes."""


class Action(StrEnum):
    """The action.

    Attributes:
        UPDATED: fields were changed.
        PAUSED: the task was paused before it started.
        PAUSE_REQUESTED: a pause of the running attempt was requested.
        RESUMED: the task was resumed, or a pause request was withdrawn.
        RUN_REQUESTED: an immediate run was requested.
        RETRIED: a retry after the task's end was requested.
        ROLLBACK_REQUESTED: a rollback after the task's end was requested.
        CANCELLED: the task was cancelled before it started.
        CANCEL_REQUESTED: a stop of the running attempt was requested.
        APPROVED: the task was approved.
        REJECTED: the task was rejected.
    """

    UPDATED = "updated"
    PAUSED = "paused"
    PAUSE_REQUESTED = "pause_requested"
    RESUMED = "resumed"
    RUN_REQUESTED = "run_requested"
    RETRIED = "retried"
    ROLLBACK_REQUESTED = "rollback_requested"
    CANCELLED = "cancelled"
    CANCEL_REQUESTED = "cancel_requested"
    APPROVED = "approved"
    REJECTED = "rejected"


class ActorType(StrEnum):
    """The kind of actor.

    Attributes:
        USER: a caller of the API.
        SCHEDULE: the schedule that created the task.
        TOPOLOGY: the topology of which the task is a node.
        SYSTEM: the scheduler itself.
    """

    USER = "user"
    SCHEDULE = "schedule"
    TOPOLOGY = "topology"
    SYSTEM = "system"


@frozen
class Attribution:
    """The actor of an action, and the reason.

    Attributes:
        actor: the kind of actor.
        name: the user's name, if it differs from the task's owner, because several people may act for one owner.
        reason: the reason that the user gave; empty if no reason was given.
        operation: the bulk operation that performs the action, if any.
    """

    actor: ActorType = ActorType.USER
    name: str = ""
    reason: str = ""
    operation: TaskId | None = None


BY_SYSTEM = Attribution(ActorType.SYSTEM)
"""An action of the scheduler itself."""


@frozen
class ActionRecord:
    """One action.

    Attributes:
        at: when the action was executed, according to the executing process's clock.
        version: version of the record after the action; `None` if written without reading the record.
        fields: for an update, the changed fields.
        nodes: for a retry of a topology, the nodes that were chosen to run again.
    """

    action: Action
    at: Millis
    by: Attribution
    version: int | None = None
    fields: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Approximate size in the record before compression, in bytes."""
        texts = (self.by.name, self.by.reason, *self.fields, *self.nodes)
        return _FIXED_BYTES + sum(len(text.encode()) + 1 for text in texts)


@frozen
class ActionHistory:
    """The latest actions, oldest first.

    Attributes:
        dropped: number of older actions that did not fit.
    """

    records: tuple[ActionRecord, ...] = ()
    dropped: int = 0

    def plus(self, record: ActionRecord) -> ActionHistory:
        """A copy with another action.

        If there are too many actions, or they are too large, the oldest actions are removed.
        """
        kept = [*self.records, record][-ACTIONS_INLINE:]
        while len(kept) > 1 and sum(each.size for each in kept) > ACTIONS_INLINE_BYTES:
            kept.pop(0)
        return replace(self, records=tuple(kept), dropped=self.dropped + len(self.records) + 1 - len(kept))


NO_ACTIONS = ActionHistory()
