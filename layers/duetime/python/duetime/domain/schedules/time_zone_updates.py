"""Newer rules of time zones: what a schedule says of them, and of an occurrence that they moved before its timer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import RULE_CHANGE_PATIENCE
from duetime.domain.schedules.time_zones import UTC_ZONE
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.times import Millis


def with_new_rules(stored: StoredSchedule, version: str, now: Millis) -> StoredSchedule:
    """With a remark if it was last computed with other rules than those of `version`."""
    if not _has_other_rules(stored, version):
        return stored
    zone = stored.spec.clock.zone.name
    return stored.remarked(
        now, "", f"the time zone rules of {zone} are those of {version} now, before of {stored.tzdata}"
    )


def with_patience(stored: StoredSchedule, schedule: Schedule, version: str) -> Schedule:
    """The schedule as it decides about what was missed: newer rules may have moved an occurrence before its timer.

    Such an occurrence is late by the difference, which no catch-up window is made for.
    """
    if not _has_other_rules(stored, version):
        return schedule
    longest = max(schedule.spec.catch_up_seconds, RULE_CHANGE_PATIENCE // SECOND)
    return replace(schedule, spec=replace(schedule.spec, catch_up_seconds=longest))


def _has_other_rules(stored: StoredSchedule, version: str) -> bool:
    return stored.tzdata not in ("", version) and stored.spec.clock.zone != UTC_ZONE
