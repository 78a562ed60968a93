"""What was done to a schedule: by whom, when, and why. What became of its occurrences are its runs.

As with tasks, an action rides on the write that it causes, and the schedule keeps the latest.
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
"""About what an entry needs besides its texts."""


TIMING_FIELDS = frozenset(
    {
        *("cron", "rate", "interval", "dates", "permanent", "timings", "extra_dates", "start_at", "end_at"),
        *("timezone", "dst_gap", "dst_fold", "on_excluded"),
    }
)
"""Fields that decide which instants a schedule means, as users know them."""


class ScheduleAction(StrEnum):
    """What was done.

    Attributes:
        UPDATED: fields were changed.
        PAUSED: it was paused, or the reason of its pause was changed.
        RESUMED: it was resumed.
        RUN_REQUESTED: its task was to run at once.
        BACKFILL_REQUESTED: a past period was to run.
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
        at: when, by the clock of whoever carried it out.
        version: of the schedule after it.
        fields: of an update, what was changed.
        subject: id of the task that was to run, or of the backfill; empty for neither.
    """

    action: ScheduleAction
    at: Millis
    by: Attribution
    version: int
    fields: tuple[str, ...] = ()
    subject: str = ""

    @property
    def size(self) -> int:
        """About how many bytes it takes before compression."""
        texts = (self.by.name, self.by.reason, self.subject, *self.fields)
        return _FIXED_BYTES + sum(len(text.encode()) + 1 for text in texts)


@dataclass(frozen=True, slots=True)
class ScheduleHistory:
    """The latest actions, oldest first.

    Attributes:
        dropped: how many older ones were removed.
    """

    records: tuple[ScheduleActionRecord, ...] = ()
    dropped: int = 0

    def plus(self, record: ScheduleActionRecord) -> ScheduleHistory:
        """The same with one more; of too many, or too large ones, the oldest go. The new one always stays."""
        kept = [*self.records, record][-ACTIONS_INLINE:]
        while len(kept) > 1 and sum(each.size for each in kept) > ACTIONS_INLINE_BYTES:
            kept.pop(0)
        return replace(self, records=tuple(kept), dropped=self.dropped + len(self.records) + 1 - len(kept))


NO_SCHEDULE_ACTIONS = ScheduleHistory()
BY_OWNER = Attribution()
"""The owner does it, and does not say why."""


def changed_fields(before: ScheduleSpec, after: ScheduleSpec) -> Iterable[str]:
    """The names of the fields that an update changed, as users know them; those of the task behind `task.`."""
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
