"""What a schedule has done and will do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.forecast import MAX_FORECAST_SCHEDULES, forecast
from duetime.domain.schedules.occurrences import between, following
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_changes import coming
from duetime.domain.schedules.successive_runs import run_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.forecast import Forecast
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import Stores

_NEAR = 100
"""Occurrences that are checked to find the next one that runs."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An occurrence as its owner may see it.

    Attributes:
        task_id: of its task; `None` if it does not run, or is not placed yet.
        task: its task, if it still exists.
        note: why it does not run, or what else is to be said of it.
    """

    occurrence: Occurrence
    task_id: TaskId | None
    task: Task | None
    note: str


def seen_of(occurrence: Occurrence, task: Task) -> Seen:
    """An occurrence that has a task: it ran if that has begun, whatever excludes it by now."""
    if not occurrence.runs:
        occurrence = replace(occurrence, runs=True, due_at=task.due_at, note="")
    is_dropped = task.error is not None and not task.attempt_history
    return Seen(occurrence, task.id, task, task.error.message if task.error and is_dropped else occurrence.note)


@dataclass(frozen=True, slots=True)
class SchedulePreview:
    """Tells what comes and what came; nothing is created."""

    stores: Stores
    clock: Clock

    def resolve(self, owner: str, names: Sequence[str], field: str = "calendars") -> tuple[Calendar, ...]:
        """The calendars of these names.

        Raises:
            FieldInvalid: there is none of a name.
        """
        found = []
        for index, name in enumerate(names):
            calendar = self.stores.calendars.read(owner, name)
            if calendar is None:
                raise FieldInvalid(f"{field}[{index}]", f"there is no calendar {name!r}", FaultCode.NOT_ALLOWED)
            found.append(calendar)
        return tuple(found)

    def upcoming(self, stored: StoredSchedule, count: int) -> Sequence[Occurrence]:
        """The next occurrences, those that do not run among them; none of a schedule that no clock moves on."""
        if stored.is_permanent or stored.state is not ScheduleState.ACTIVE:
            return []
        now = self.clock.now()
        return following(self._ahead(stored, now), now, count)

    def _ahead(self, stored: StoredSchedule, now: Millis) -> Schedule:
        """The schedule, with the number of runs that remain from now on."""
        calendars = self.known_calendars(stored)
        schedule = stored.schedule(calendars)
        remaining = schedule.remaining_runs
        if remaining is None:
            return schedule
        # It counts from what was placed, some of which is still to come.
        return replace(schedule, remaining_runs=remaining + len(coming(stored, now, calendars)))

    def forecast(self, owner: str) -> Forecast:
        """What the owner's active schedules plan from now on; those that run permanently plan no times.

        Only the first schedules by name are counted: some need milliseconds each.
        """
        now = self.clock.now()
        found = self.stores.schedules.list_after(owner, "", MAX_FORECAST_SCHEDULES + 1)
        counted = found[:MAX_FORECAST_SCHEDULES]
        planned = [each for each in counted if each.state is ScheduleState.ACTIVE and not each.is_permanent]
        schedules = ((each.name, self._ahead(each, now)) for each in planned)
        return forecast(schedules, now, is_complete=len(found) == len(counted))

    def next_at(self, stored: StoredSchedule) -> Millis | None:
        """When it runs next, as far as is known."""
        if stored.state is not ScheduleState.ACTIVE:
            return None
        if stored.is_permanent:
            return None if stored.last_run is None else stored.last_run.nominal
        return next((each.due_at for each in self.upcoming(stored, _NEAR) if each.runs), None)

    def occurrences(self, stored: StoredSchedule, start: Millis, end: Millis, limit: int) -> list[Seen]:
        """The occurrences in [start, end] of the present timing in order, past and coming, with their tasks.

        Those before its last change are left out: its timing was another then. Of a permanent schedule only the
        latest run is known.
        """
        found = list(self._found(stored, start, end, limit))
        # Also of those that a calendar excludes: it may have been replaced since they ran.
        ids = {each.key: stored.id_of(each) for each in found if each.nominal <= stored.done}
        found_tasks = self.stores.tasks.read_many(list(ids.values()))
        tasks = {task_id: task for task_id, task in found_tasks.items() if not task.erased}
        return [self._seen(stored, each, ids.get(each.key), tasks) for each in found]

    def _found(self, stored: StoredSchedule, start: Millis, end: Millis, limit: int) -> Sequence[Occurrence]:
        if stored.is_permanent:
            last = stored.last_run
            is_asked = last is not None and start <= last.nominal <= end
            return [run_of(stored, last.nominal)] if last is not None and is_asked else []
        since = max(start - 1, stored.updated_at - 1)
        schedule = stored.schedule(self.known_calendars(stored))
        past = between(schedule, since, min(end, self.clock.now()), limit)
        if end <= self.clock.now() or len(past) >= limit:
            return past
        ahead = self.upcoming(stored, limit - len(past))
        return [*past, *(each for each in ahead if start <= each.nominal <= end)]

    @staticmethod
    def _seen(
        stored: StoredSchedule, occurrence: Occurrence, task_id: TaskId | None, tasks: dict[TaskId, Task]
    ) -> Seen:
        task = None if task_id is None else tasks.get(task_id)
        if task is not None and (occurrence.runs or task.attempt_history):
            return seen_of(occurrence, task)
        note = occurrence.note
        if task_id is not None and task is None and occurrence.runs:
            remark = next((each for each in reversed(stored.log) if each.key == occurrence.key), None)
            note = remark.note if remark else note
        return Seen(occurrence, None, None, note)

    def known_calendars(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        """Its calendars; none if one of them is gone."""
        try:
            return self.resolve(stored.owner, stored.spec.calendars)
        except FieldInvalid:
            return ()
