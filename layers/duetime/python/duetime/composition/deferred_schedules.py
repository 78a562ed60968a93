"""Use cases of schedules for tasks, deferred because the module for schedule times takes long to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition.deferred_imports import deferred

if TYPE_CHECKING:
    from duetime.composition.root import Part
    from duetime.services.schedules.overlap import OverlapControl


def overlap_control(part: Part) -> OverlapControl:
    """`ScheduleServices.overlap_control`, imported at its first use."""
    return deferred(lambda: _overlap_control(part))


def _overlap_control(part: Part) -> OverlapControl:
    from duetime.composition.schedule_expansion import ScheduleServices

    return part.part(ScheduleServices).overlap_control
