"""What the user of a schedule has stopped of what it placed ahead: found before a change would place it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import first_unread
from duetime.domain.schedules.pauses import is_dropped, latest_occurrence
from duetime.domain.schedules.revisions import StoppedOccurrence, is_stopped
from duetime.domain.schedules.schedule_changes import counted, perhaps_placed, with_placed, with_stopped
from duetime.domain.times import MINUTE
from duetime.services.schedules.latest_runs import latest_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.tasks import TaskStore


@dataclass(frozen=True, slots=True)
class StoppedOccurrences:
    """Finds the occurrences ahead of a schedule that their user has stopped, or run early. Reads only on changes.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
    """

    tasks: TaskStore
    look_ahead: Millis

    def marked(self, stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar]) -> StoredSchedule:
        """The schedule before a change, knowing what its user stopped: a change leaves that alone.

        What is past is forgotten, but for what its user still holds: that may go on.
        """
        found, placed = self._found(stored, now, calendars)
        known = {each.task_id: each for each in stored.stopped}
        records = self.tasks.read_many(list(known), consistent=True) if known else {}
        kept = [each for each in known.values() if each.nominal > now or _is_open(records.get(each.task_id))]
        if kept or found or known:
            stored = with_stopped(counted(stored, found, now), [*kept, *found])
        if not stored.counts_runs:
            # Another timing does not know the times of this one.
            latest = latest_run(self.tasks, stored, stored.schedule(calendars), now)
            stored = replace(stored, latest_run=latest or stored.latest_run)
        return with_placed(stored, placed, now, calendars)

    def stopped_meanwhile(
        self, before: StoredSchedule, after: StoredSchedule, calendars: Sequence[Calendar]
    ) -> Sequence[StoppedOccurrence]:
        """What was stopped, or began, after `before` was read and before the change to `after` was written."""
        return self._found(before, after.updated_at, calendars)[0]

    def still_due(
        self, stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar]
    ) -> Sequence[StoppedOccurrence]:
        """What was placed and is due later although its instant is past: a pause that ends before then keeps it."""
        found = latest_occurrence(stored, now, calendars)
        if found is None or found.nominal > stored.done:
            return ()
        task_id = stored.id_of(found)
        task = self.tasks.read(task_id)
        if task is None or task.due_at <= now or not _is_open(task):
            return ()
        return (StoppedOccurrence(found.nominal, task_id, stored.revision_of(found.nominal)),)

    def dropped(self, stored: StoredSchedule, now: Millis) -> Sequence[StoppedOccurrence]:
        """What was placed before a pause and was due during it."""
        known = {each.task_id: each for each in stored.stopped}
        records = self.tasks.read_many(list(known), consistent=True) if known else {}
        return [known[task_id] for task_id, task in records.items() if is_dropped(task, now)]

    def _found(
        self, stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar]
    ) -> tuple[Sequence[StoppedOccurrence], Sequence[Millis]]:
        """What was placed ahead and stopped, and the instants of what was placed ahead and not stopped."""
        # Clocks differ by less than a minute.
        horizon = first_unread(now, self.look_ahead) + MINUTE
        nominals = {stored.id_of(each): each.nominal for each in perhaps_placed(stored, now, horizon, calendars)}
        records = self.tasks.read_many(list(nominals), consistent=True) if nominals else {}
        stopped = [
            StoppedOccurrence(nominals[task_id], task_id, stored.revision)
            for task_id, task in records.items()
            if is_stopped(task)
        ]
        return stopped, [nominals[task_id] for task_id, task in records.items() if not is_stopped(task)]


def _is_open(task: Task | None) -> bool:
    return task is not None and task.finished_at is None
