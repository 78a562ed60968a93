"""What was done to a task from outside: by whom, when, and why. Its attempts have records of their own.

An action rides on the write that it causes: it is an attribute of the record, and costs no write. The record of a task
that nobody acted on has none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import ACTIONS_INLINE, ACTIONS_INLINE_BYTES

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis

_FIXED_BYTES = 32
"""About what an entry needs besides its texts."""


class Action(StrEnum):
    """What was done.

    Attributes:
        UPDATED: fields were changed.
        PAUSED: it was paused before it started.
        PAUSE_REQUESTED: a pause of its running attempt was requested.
        RESUMED: it was resumed, or a request to pause was withdrawn.
        RUN_REQUESTED: it was to run at once.
        RETRIED: it had ended, and was to be tried again.
        ROLLBACK_REQUESTED: it had ended, and was to be rolled back.
        CANCELLED: it was cancelled before it started.
        CANCEL_REQUESTED: a stop of its running attempt was requested.
        APPROVED: it waited for an approval, and was approved.
        REJECTED: it waited for an approval, and was rejected.
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
    """Who acts.

    Attributes:
        USER: a caller of the API.
        SCHEDULE: the schedule that the task is a run of.
        TOPOLOGY: the topology that the task is a node of.
        SYSTEM: the scheduler itself.
    """

    USER = "user"
    SCHEDULE = "schedule"
    TOPOLOGY = "topology"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who does something, and why.

    Attributes:
        actor: what kind of actor.
        name: of a user, if that is another than the task's owner: several people may act for one owner.
        reason: why, in the user's words; empty for none.
        operation: the bulk operation that does it.
    """

    actor: ActorType = ActorType.USER
    name: str = ""
    reason: str = ""
    operation: TaskId | None = None


BY_SYSTEM = Attribution(ActorType.SYSTEM)
"""The scheduler does it by itself."""


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """One action.

    Attributes:
        at: when, by the clock of whoever carried it out.
        version: of the record after it; `None` if it was written without a look at the record.
        fields: of an update, what was changed.
        nodes: of a retry of a topology, the nodes that were chosen to run again.
    """

    action: Action
    at: Millis
    by: Attribution
    version: int | None = None
    fields: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes of the record it takes before compression."""
        texts = (self.by.name, self.by.reason, *self.fields, *self.nodes)
        return _FIXED_BYTES + sum(len(text.encode()) + 1 for text in texts)


@dataclass(frozen=True, slots=True)
class ActionHistory:
    """The last actions, oldest first.

    Attributes:
        dropped: how many older ones the record had no more room for.
    """

    records: tuple[ActionRecord, ...] = ()
    dropped: int = 0

    def plus(self, record: ActionRecord) -> ActionHistory:
        """The same with one more; of too many, or too large ones, the oldest go. The new one always stays."""
        kept = [*self.records, record][-ACTIONS_INLINE:]
        while len(kept) > 1 and sum(each.size for each in kept) > ACTIONS_INLINE_BYTES:
            kept.pop(0)
        return replace(self, records=tuple(kept), dropped=self.dropped + len(self.records) + 1 - len(kept))


NO_ACTIONS = ActionHistory()
