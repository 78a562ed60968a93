"""The history of actions on a schedule, which records who did what, when, and why. Runs are stored separately.

As for tasks, an action is stored in the same write as its effect, and only the latest actions are kept.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import ACTIONS_INLINE, ACTIONS_INLINE_BYTES
from duetime.domain.schedules.time_zones import Zone
from duetime.domain.tasks.action_history import Attribution
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.times import Millis

_MOST_SHOWN = 64
"""Maximum length of a stored value, in characters."""
_FIXED_BYTES = 32
"""Approximate size of a history entry without its strings, in bytes."""


TIMING_FIELDS = frozenset(
    {
        *("cron", "rate", "interval", "dates", "permanent", "timings", "extra_dates", "start_at", "end_at"),
        *("dialect", "timezone", "dst_gap", "dst_fold", "on_excluded"),
    }
)
"""Fields that determine the instants of a schedule, by their public names."""


class ScheduleAction(StrEnum):
    """The action.

    Attributes:
        UPDATED: fields were changed.
        PAUSED: the schedule was paused, or the reason for its pause was changed.
        RESUMED: the schedule was resumed.
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


@frozen
class NewValue:
    """The value of a field before and after an update.

    Attributes:
        field: public name.
        before: the value before the update, as text; `None` if there was no value.
        after: the value after the update.
    """

    field: str
    before: str | None
    after: str | None


@frozen
class ScheduleActionRecord:
    """One action.

    Attributes:
        at: when the action was executed, according to the executing process's clock.
        version: version of the schedule after the action.
        fields: for an update, the changed fields.
        values: the values of changed fields with short values.
        subject: id of the requested task or backfill; empty for other actions.
    """

    action: ScheduleAction
    at: Millis
    by: Attribution
    version: int
    fields: tuple[str, ...] = ()
    subject: str = ""
    values: tuple[NewValue, ...] = ()

    @property
    def size(self) -> int:
        """Approximate size before compression, in bytes."""
        values = (text or "" for each in self.values for text in (each.field, each.before, each.after))
        texts = (self.by.name, self.by.reason, self.subject, *self.fields, *values)
        return _FIXED_BYTES + sum(len(text.encode()) + 1 for text in texts)


@frozen
class ScheduleHistory:
    """The latest actions, oldest first.

    Attributes:
        dropped: number of older actions that were removed.
    """

    records: tuple[ScheduleActionRecord, ...] = ()
    dropped: int = 0

    def plus(self, record: ScheduleActionRecord) -> ScheduleHistory:
        """A copy with another action.

        If there are too many actions, or they are too large, the oldest actions are removed.
        """
        kept = [*self.records, record][-ACTIONS_INLINE:]
        while len(kept) > 1 and sum(each.size for each in kept) > ACTIONS_INLINE_BYTES:
            kept.pop(0)
        return replace(self, records=tuple(kept), dropped=self.dropped + len(self.records) + 1 - len(kept))


NO_SCHEDULE_ACTIONS = ScheduleHistory()
BY_OWNER = Attribution()
"""An action by the owner without a reason."""


def changed_fields(before: ScheduleSpec, after: ScheduleSpec) -> Sequence[str]:
    """The public names of the fields that an update changed; names of task fields start with `task.`."""
    old, new = _public_fields(before), _public_fields(after)
    # An option that is explicitly set to its built-in value no longer follows the default of the task's type.
    pinned = {f"task.{name}" for name in before.task.explicit ^ after.task.explicit}
    return sorted(pinned | {name for name, value in old.items() if value != new[name]})


def new_values(before: ScheduleSpec, after: ScheduleSpec) -> tuple[NewValue, ...]:
    """The values of the fields that an update changed, if they are short strings or numbers."""
    old, new = _public_fields(before), _public_fields(after)
    changed = (NewValue(name, _text(old[name]), _text(new[name])) for name in changed_fields(before, after))
    return tuple(each for each in changed if each.before != each.after)


def _public_fields(spec: ScheduleSpec) -> dict[str, object]:
    apart = {"written", "task", "clock", "name"}
    found: dict[str, object] = {each.name: getattr(spec, each.name) for each in fields(spec) if each.name not in apart}
    found |= {each.name: getattr(spec.written, each.name) for each in fields(spec.written)}
    found |= {"timezone": spec.clock.zone, "dst_gap": spec.clock.gap, "dst_fold": spec.clock.fold}
    task = ((each.name, getattr(spec.task, each.name)) for each in fields(spec.task))
    return found | {f"task.{name}": value for name, value in task if name not in {"allow_unknown_type", "explicit"}}


def _text(value: object) -> str | None:
    """A value as a short string; `None` if the string is too long, or the value is not a string or number."""
    match value:
        case Zone():
            return value.name
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str() if value and len(value) <= _MOST_SHOWN:
            return str(value)
    return None
