"""Explaining schedules: what became of a time of one; reads what is stored, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid
from duetime.domain.explanations.occurrence_lookup import id_at
from duetime.domain.explanations.schedule_explanation import ScheduleExplanation, explain_occurrence, explain_permanent
from duetime.domain.schedules.errors import ScheduleNotFound
from duetime.domain.times import MINUTE

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import Stores
    from duetime.services.schedules.preview import SchedulePreview


@dataclass(frozen=True, slots=True)
class ScheduleExplainer:
    """Says why a schedule did, or did not, run at a time.

    Attributes:
        retention: how long a finished task is kept, in milliseconds.
    """

    stores: Stores
    schedule_preview: SchedulePreview
    clock: Clock
    retention: Millis

    def explain(self, owner: str, name: str, at: Millis) -> ScheduleExplanation:
        """Explain one time of a schedule.

        Raises:
            ScheduleNotFound: there is none of that name.
        """
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is None:
            raise ScheduleNotFound(name)
        if stored.is_permanent:
            last = stored.last_run
            is_meant = last is not None and last.nominal // MINUTE == at // MINUTE
            return explain_permanent(stored, at, self._task(last.task_id) if last and is_meant else None)
        schedule = stored.schedule(self._calendars(stored))
        task_id = id_at(stored, schedule, at)
        now = self.clock.now()
        return explain_occurrence(stored, schedule, at, self._task(task_id), now, now - self.retention)

    def _calendars(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        try:
            return self.schedule_preview.resolve(stored.owner, stored.spec.calendars)
        except FieldInvalid:
            return ()

    def _task(self, task_id: TaskId | None) -> Task | None:
        task = None if task_id is None else self.stores.tasks.read(task_id)
        return None if task is None or task.erased else task
