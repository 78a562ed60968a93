"""Shows past and future occurrences of schedules, and their status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import OCCURRENCE_PATIENCE
from duetime.domain.schedules.forecast import MAX_FORECAST_SCHEDULES, forecast
from duetime.domain.schedules.occurrences import between, following, judged, may_mean, preceding
from duetime.domain.schedules.run_history import RUN_BY_HAND, begun_run
from duetime.domain.schedules.runs import ScheduleStatus
from duetime.domain.schedules.schedule import ScheduleState, is_to_begin
from duetime.domain.schedules.schedule_changes import coming, delayed_occurrence
from duetime.domain.schedules.successive_runs import run_of
from duetime.domain.tasks.dependency_outcomes import OccurrenceRun
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.times import SECOND, to_iso
from duetime.services.schedules.known_runs import former_revisions, latest_run, possible_ids
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.forecast import Forecast
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.dependencies import OccurrenceRef
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import Stores


_FORECAST_PAGE = 100
_FORECAST_TIME = 8 * SECOND
"""Time for reading and counting the schedules for a forecast, well below the gateway's timeout of 30 s."""
_NEAR = 100
"""Number of occurrences examined to find the next occurrence that runs."""
_FEW = 3
"""Number of occurrences before and after now whose tasks are read first."""


@frozen
class Seen:
    """An occurrence as shown to its owner.

    Attributes:
        task_id: id of the occurrence's task; `None` if the occurrence does not run, or is not placed yet.
        task: the occurrence's task, if it still exists.
        note: why the occurrence does not run, or another remark.
    """

    occurrence: Occurrence
    task_id: TaskId | None
    task: Task | None
    note: str


def seen_of(occurrence: Occurrence, task: Task) -> Seen:
    """The preview of an occurrence that has a task, even if the schedule now excludes the occurrence's time."""
    if not occurrence.runs:
        occurrence = replace(occurrence, runs=True, due_at=task.due_at, note="")
    is_dropped = task.error is not None and not task.attempt_history
    return Seen(occurrence, task.id, task, task.error.message if task.error and is_dropped else occurrence.note)


@frozen
class SchedulePreview:
    """Shows past and future occurrences; creates nothing."""

    stores: Stores
    clock: Clock

    def resolve(self, owner: str, names: Sequence[str], field: str = "calendars") -> tuple[Calendar, ...]:
        """The calendars with these names.

        Raises:
            FieldInvalid: a named calendar does not exist.
        """
        found = []
        for index, name in enumerate(names):
            calendar = self.stores.calendars.read(owner, name)
            if calendar is None:
                raise FieldInvalid(f"{field}[{index}]", f"there is no calendar {name!r}", FaultCode.NOT_ALLOWED)
            found.append(calendar)
        return tuple(found)

    def upcoming(self, stored: StoredSchedule, count: int) -> Sequence[Occurrence]:
        """The next occurrences, including those that do not run; empty for a permanent or inactive schedule."""
        if stored.is_permanent or stored.state is not ScheduleState.ACTIVE:
            return []
        now = self.clock.now()
        return following(self.schedule_ahead(stored, now), now, count)

    def schedule_ahead(self, stored: StoredSchedule, now: Millis) -> Schedule:
        """The schedule with the number of runs that are left from now on."""
        calendars = self.known_calendars(stored)
        schedule = stored.schedule(calendars)
        remaining = schedule.remaining_runs
        if remaining is None:
            return schedule
        # The number does not include placed occurrences, some of which are not due yet.
        return replace(schedule, remaining_runs=remaining + len(coming(stored, now, calendars)))

    def forecast(self, owner: str, length: Millis) -> Forecast:
        """The runs planned by the owner's active schedules from now on; permanent schedules have no planned times.

        Schedules are read in order of name, until a maximum number is reached or the time for the response is up.
        """
        now = self.clock.now()
        reading = _ForecastReading(self, owner, now)
        return forecast(reading.schedules(), now, length, lambda: reading.is_complete)

    def status(self, stored: StoredSchedule) -> ScheduleStatus:
        """The status of a schedule."""
        return self.statuses([stored])[0]

    def statuses(self, found: Sequence[StoredSchedule]) -> Sequence[ScheduleStatus]:
        """The statuses of schedules, from a few tasks of each schedule that are all read in parallel."""
        ids = [task_id for stored in found for task_id in self._first_read(stored)]
        tasks = self.stores.tasks.read_many(list(dict.fromkeys(ids)))
        return [self._status(stored, tasks) for stored in found]

    def _first_read(self, stored: StoredSchedule) -> Iterator[TaskId]:
        """The tasks that determine the status of most schedules."""
        if stored.activity.latest is not None:
            yield stored.activity.latest.task_id
        if stored.is_permanent:
            yield from [] if stored.last_run is None else [stored.last_run.task_id]
            return
        if (by_hand := _latest_by_hand(stored)) is not None:
            yield by_hand
        now = self.clock.now()
        latest = preceding(stored.schedule(self.known_calendars(stored)), now + 1, _FEW)
        yield from (stored.id_of(each) for each in (*latest, *self._placed_ahead(stored, _FEW)) if each.runs)

    def _status(self, stored: StoredSchedule, tasks: Mapping[TaskId, Task]) -> ScheduleStatus:
        own = (task for task in tasks.values() if task.schedule_ref and task.schedule_ref.mark == stored.mark)
        begun = [run for task in own if (run := begun_run(task)) is not None]
        counted = stored.activity.latest
        if counted is not None and counted.task_id not in tasks:
            # The task of the latest run has been removed.
            begun.append(counted)
        if not begun and not stored.is_permanent:
            schedule = stored.schedule(self.known_calendars(stored))
            found = latest_run(self.stores.tasks, stored, schedule, self.clock.now())
            begun += [] if found is None else [found]
        begun += [] if stored.latest_run is None else [stored.latest_run]
        latest = max(begun, key=lambda run: run.started_at, default=None)
        return ScheduleStatus(stored, latest, self._runs_started(stored, tasks), self._next_at(stored, tasks))

    def _runs_started(self, stored: StoredSchedule, tasks: Mapping[TaskId, Task]) -> int:
        if stored.counts_runs:
            return stored.runs_before + stored.activity.number_of_runs
        now = self.clock.now()
        ahead = coming(stored, now, self.known_calendars(stored))
        delayed = [each for each in self._delayed(stored) if stored.id_of(each) in tasks]
        return max(0, stored.runs_started - len(ahead) - len(delayed))

    def _next_at(self, stored: StoredSchedule, tasks: Mapping[TaskId, Task]) -> Millis | None:
        """When the schedule runs next, ignoring occurrences that its user has stopped or run early."""
        last = stored.last_run
        if stored.state is not ScheduleState.ACTIVE or (stored.is_permanent and last is None):
            return None
        if stored.is_permanent and last is not None:
            task = tasks.get(last.task_id)
            return last.nominal if task is None else task.due_at if _is_to_come(task) else None
        placed = [each for each in self._placed_ahead(stored, _NEAR) if each.runs]
        if len(placed) > _FEW and not any(
            _is_to_come(task) for each in placed if (task := tasks.get(stored.id_of(each)))
        ):
            tasks = self.stores.tasks.read_many([stored.id_of(each) for each in placed])
        now = self.clock.now()
        for each in placed:
            task = tasks.get(stored.id_of(each))
            if task is None and each.nominal <= now:
                # The occurrence belonged to an earlier revision, or ran at another time.
                continue
            if task is None or _is_to_come(task):
                return each.due_at if task is None else task.due_at
        later = (each for each in self.upcoming(stored, _NEAR) if each.runs and each.nominal > stored.done)
        return next((each.due_at for each in later), None)

    def _placed_ahead(self, stored: StoredSchedule, count: int) -> Sequence[Occurrence]:
        """The next occurrences that already have tasks."""
        ahead = (each for each in self.upcoming(stored, count) if each.nominal <= stored.done)
        return [*self._delayed(stored), *ahead]

    def _delayed(self, stored: StoredSchedule) -> Sequence[Occurrence]:
        """The occurrence whose scheduled time has passed but which a calendar, jitter or spread delays, if any."""
        now = self.clock.now()
        found = delayed_occurrence(stored, now, self.known_calendars(stored))
        is_ahead = found is not None and found.runs and found.due_at > now and found.nominal <= stored.done
        return [found] if found is not None and is_ahead else []

    def occurrences(self, stored: StoredSchedule, start: Millis, end: Millis, limit: int) -> list[Seen]:
        """The occurrences of the current timing in [start, end] in order, with their tasks.

        Occurrences before the last change are left out, because the timing may have been different. For a permanent
        schedule, only the latest run is known.
        """
        found = list(self._found(stored, start, end, limit))
        # Excluded occurrences are examined too, because their calendar may have been replaced since they ran.
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
        """The schedule's calendars; empty if any of them has been deleted."""
        try:
            return self.resolve(stored.owner, stored.spec.calendars)
        except FieldInvalid:
            return ()


def _is_to_come(task: Task) -> bool:
    """Whether a placed task will still run when it is due."""
    return is_to_begin(task) and task.state is not State.PAUSED and task.state not in LEASED


def _latest_by_hand(stored: StoredSchedule) -> TaskId | None:
    """The latest manual run that is still mentioned in the schedule's remarks."""
    if stored.counts_runs:
        return None
    notes = (each.note for each in reversed(stored.log) if each.note.startswith(RUN_BY_HAND))
    return next((TaskId(note.removeprefix(RUN_BY_HAND)) for note in notes), None)


@dataclass(slots=True)
class _ForecastReading:
    """Reads schedules for a forecast, and records whether all schedules were read."""

    preview: SchedulePreview
    owner: str
    now: Millis
    is_complete: bool = False

    def schedules(self) -> Iterator[tuple[str, Schedule]]:
        """Active schedules with times, by name."""
        after, count = "", 0
        while page := self.preview.stores.schedules.list_after(self.owner, after, _FORECAST_PAGE):
            for each in page:
                if count >= MAX_FORECAST_SCHEDULES or self.preview.clock.now() - self.now > _FORECAST_TIME:
                    return
                count += 1
                if each.state is ScheduleState.ACTIVE and not each.is_permanent:
                    yield each.name, self.preview.schedule_ahead(each, self.now)
            after = page[-1].name
        self.is_complete = True


@frozen
class AwaitedOccurrences:
    """`duetime.ports.tasks.OccurrenceFinder` that looks up the ids that an occurrence's task can have."""

    stores: Stores
    clock: Clock

    def find(self, owner: str, ref: OccurrenceRef) -> OccurrenceRun:
        """Find the task of an occurrence, or the reason why the occurrence has no task."""
        stored, _ = self.stores.schedules.read(owner, ref.schedule)
        if stored is None:
            return OccurrenceRun(reason="is of a schedule that does not exist")
        if stored.is_permanent:
            return OccurrenceRun(reason="is of a permanent schedule, which has no occurrences at known times")
        return self._of(stored, ref)

    def _of(self, stored: StoredSchedule, ref: OccurrenceRef) -> OccurrenceRun:
        calendars = SchedulePreview(self.stores, self.clock).known_calendars(stored)
        schedule = replace(stored.schedule(calendars), remaining_runs=None)
        occurrence = judged(schedule, ref.nominal)
        ids = possible_ids(stored, occurrence, former_revisions(stored, schedule), stored.backfills)
        tasks = self.stores.tasks.read_many(sorted(ids), consistent=True).values()
        own = [each for each in tasks if each.schedule_ref is not None and each.schedule_ref.mark == stored.mark]
        runs = [each for each in own if not each.was_dropped]
        if runs:
            return OccurrenceRun(runs[0])
        # A schedule stores that it is about to create a task before it creates the task.
        is_past = ref.nominal <= stored.done and occurrence.due_at + OCCURRENCE_PATIENCE < self.clock.now()
        if not is_past and stored.runs_left != 0 and occurrence.runs and may_mean(schedule, ref.nominal):
            return OccurrenceRun(expected_at=occurrence.due_at)
        if own:
            return OccurrenceRun(own[0])
        why = f": {occurrence.note}" if occurrence.note else ""
        return OccurrenceRun(reason=f"has no occurrence at {to_iso(ref.nominal)}{why}")
