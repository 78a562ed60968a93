"""Schedules in a virtual world: how tests make them, and what has become of their occurrences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from duetime.domain.schedules.definition import ScheduleSpec, Written
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.tasks.attempt_results import SKIPPED
from duetime.domain.tasks.task import TaskSpec
from tests.virtual.world import OWNER, World

if TYPE_CHECKING:
    from duetime.domain.schedules.stored_schedule import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

NAME = "nightly"
EVERY_MINUTE = "* * * * *"


def spec_of(cron: str | None = EVERY_MINUTE, *, zone: str = "UTC", **fields: Any) -> ScheduleSpec:  # noqa: ANN401 - any field
    """A schedule; a timing field is given as it would be in a body."""
    timing = {name: fields.pop(name) for name in ("rate", "interval", "dates", "permanent") if name in fields}
    written = Written(**timing) if timing else Written(cron=cron)
    task = fields.pop("task", TaskSpec("report", b'{"a": 1}'))
    return ScheduleSpec(written, task, fields.pop("name", NAME), Clock(zone_named(zone)), **fields)


def make(world: World, cron: str | None = EVERY_MINUTE, **fields: Any) -> StoredSchedule:  # noqa: ANN401 - any field
    """Make a schedule in a world."""
    return world.schedule_manager.create(OWNER, spec_of(cron, **fields))


def tasks_of(world: World, name: str = NAME) -> list[Task]:
    """All tasks that a schedule has produced, in order of their ids."""
    tasks = sorted(world.tasks._tasks.values(), key=lambda task: task.id)
    return [task for task in tasks if task.schedule_ref is not None and task.schedule_ref.schedule == name]


def ran(world: World, name: str = NAME) -> Counter[Millis]:
    """How often each occurrence of a schedule began to run, by the instant that it stands for."""
    nominal = {task.id: task.schedule_ref.nominal for task in tasks_of(world, name) if task.schedule_ref}
    return Counter(nominal[effect.task_id] for effect in world.effects if effect.task_id in nominal)


def skipped(world: World, name: str = NAME) -> list[str]:
    """Why occurrences that were placed did not run."""
    errors = [task.error for task in tasks_of(world, name)]
    return [error.message for error in errors if error is not None and error.kind == SKIPPED]


def stored(world: World, name: str = NAME) -> StoredSchedule:
    """A schedule as it is now."""
    return world.schedule_manager.get(OWNER, name)
