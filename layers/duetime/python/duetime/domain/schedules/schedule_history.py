"""History of actions on a schedule: who did what, when, and why. Its occurrences have runs of their own.

As with tasks, an action is stored by the write that it causes, and the schedule keeps the latest.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import ACTIONS_INLINE, ACTIONS_INLINE_BYTES
from duetime.domain.tasks.action_history import Attribution

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.times import Millis

_FIXED_BYTES = 32
"""Approximate size of an entry without its texts."""


TIMING_FIELDS = frozenset(
    {
        *("cron", "rate", "interval", "dates", "permanent", "timings", "extra_dates", "start_at", "end_at"),
        *("timezone", "dst_gap", "dst_fold", "on_excluded"),
    }
)
"""Fields that determine the instants of a schedule, by their public names."""


class ScheduleAction(StrEnum):
    """The action.

    Attributes:
        UPDATED: fields were changed.
        PAUSED: it was paused, or the reason of its pause was changed.
        RESUMED: it was resumed.
        RUN_REQUESTED: a run was requested.
        BACKFILL_REQUESTED: a backfill was requested.
        BACKFILL_CANCELLED: a backfill was cancelled.
    """

    UPDATED = "updated"
    PAUSED = "paused"
    RESUMED = "resumed"
    RUN_REQUESTED = "run_requested"
    BACKFILL_REQUESTED = "backfill_requested"
    BACKFILL_CANCELLED = "backfill_cancelled"


@dataclass(frozen=True, slots=True)
class ScheduleActionRecord:
    """One action.

    Attributes:
        at: when, by the clock of the process that executed it.
        version: of the schedule after it.
        fields: for an update, the changed fields.
        subject: id of the requested task or backfill; empty for other actions.
    """

    action: ScheduleAction
    at: Millis
    by: Attribution
    version: int
    fields: tuple[str, ...] = ()
    subject: str = ""

    @property
    def size(self) -> int:
        """Approximate size before compression, in bytes."""
        texts = (self.by.name, self.by.reason, self.subject, *self.fields)
        return _FIXED_BYTES + sum(len(text.encode()) + 1 for text in texts)


@dataclass(frozen=True, slots=True)
class ScheduleHistory:
    """The latest actions, oldest first.

    Attributes:
        dropped: number of removed older ones.
    """

    records: tuple[ScheduleActionRecord, ...] = ()
    dropped: int = 0

    def plus(self, record: ScheduleActionRecord) -> ScheduleHistory:
        """A copy with another action. If actions are too many or too large, the oldest are removed, not the new one."""
        kept = [*self.records, record][-ACTIONS_INLINE:]
        while len(kept) > 1 and sum(each.size for each in kept) > ACTIONS_INLINE_BYTES:
            kept.pop(0)
        return replace(self, records=tuple(kept), dropped=self.dropped + len(self.records) + 1 - len(kept))


NO_SCHEDULE_ACTIONS = ScheduleHistory()
BY_OWNER = Attribution()
"""An action of the owner without a reason."""


def changed_fields(before: ScheduleSpec, after: ScheduleSpec) -> Iterable[str]:
    """The public names of the fields that an update changed; fields of the task start with `task.`."""
    apart = {"written", "task", "clock", "name"}
    found = {each.name for each in fields(before) if getattr(before, each.name) != getattr(after, each.name)} - apart
    found |= {
        each.name
        for each in fields(before.written)
        if getattr(before.written, each.name) != getattr(after.written, each.name) and each.name != "dialect"
    }
    if before.clock != after.clock:
        clocks = {"timezone": "zone", "dst_gap": "gap", "dst_fold": "fold"}
        found |= {name for name, field in clocks.items() if getattr(before.clock, field) != getattr(after.clock, field)}
    found |= {
        f"task.{each.name}"
        for each in fields(before.task)
        if getattr(before.task, each.name) != getattr(after.task, each.name) and each.name != "allow_unknown_type"
    }
    return sorted(found)
