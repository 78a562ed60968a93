"""Manual runs of schedules: one now, or those of a past period."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import (
    BackfillNotFound,
    FieldInvalid,
    ScheduleStateConflict,
    Unavailable,
)
from duetime.domain.limits import MAX_BACKFILLS
from duetime.domain.schedules.backfill import requested
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.run_history import BackfillRun
from duetime.domain.tasks.parents import Cause
from duetime.services.schedules.occurrence_tasks import Due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.schedules.schedule_writer import ScheduleWriter

_BACKFILL_BITS = 32


@dataclass(frozen=True, slots=True)
class ManualRuns:
    """Runs of a schedule's task that its owner requests beside its timing.

    Every method raises `ScheduleNotFound` if there is no schedule of that name, and may raise `Unavailable`.
    """

    writer: ScheduleWriter
    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime

    def run(self, owner: str, name: str) -> Task:
        """Have a schedule's task run once, now, whatever its recurrence and even if it is held.

        Returns:
            The task; it may yet be skipped because of the run before, as any occurrence.
        """
        stored, now = self.writer.read(owner, name), self.runtime.now()
        occurrence = Occurrence(now, now, now, f"now {self.runtime.nonce()}")
        occurrence_tasks = self.writer.expander.planner.occurrence_tasks
        due = Due(occurrence, Cause.MANUAL)
        task = occurrence_tasks.produce(stored, due, occurrence_tasks.payload_of(stored))
        self.enqueuer.send_due([task])
        told = replace(stored, runs_started=stored.runs_started + 1)
        key = stored.spec.clock.zone.text_at(now)
        with suppress(Unavailable):
            # A remark that is lost does no harm.
            self.stores.schedules.save(told.remarked(now, key, f"run by hand: task {task.id}"), self.runtime.nonce())
        return task

    def backfill(self, owner: str, name: str, start: Millis, end: Millis, per_minute: int) -> BackfillRun:
        """Have the occurrences of a past period run, at a pace.

        Raises:
            FieldInvalid: the period is empty, not past, or nothing comes in it, or the pace is out of bounds.
            ScheduleStateConflict: too many backfills are on their way.
        """
        wanted = requested(start, end, per_minute, self.runtime.now())
        run_id = f"{self.runtime.random_source.bits(_BACKFILL_BITS):08x}"

        def backfilled(stored: StoredSchedule) -> StoredSchedule:
            if len(stored.open_backfills) >= MAX_BACKFILLS:
                raise ScheduleStateConflict(name, f"busy with {MAX_BACKFILLS} backfills", "given another")
            size = wanted.size(stored.schedule(self.writer.expander.planner.calendars_of(stored)))
            if not size:
                raise FieldInvalid("scheduled_after", "begins a period in which the schedule has no occurrence")
            return replace(stored.with_backfill(BackfillRun(run_id, wanted, size)), version=stored.version + 1)

        after = self.writer.write(self.writer.read(owner, name), None, backfilled, with_timer=True)
        return backfill_of(self.writer.expand(after), run_id)

    def backfills(self, owner: str, name: str) -> Sequence[BackfillRun]:
        """The backfills of a schedule: those on their way, and the latest that have finished."""
        return self.writer.read(owner, name).backfills

    def get_backfill(self, owner: str, name: str, backfill_id: str) -> BackfillRun:
        """Read a backfill.

        Raises:
            BackfillNotFound: the schedule has none of this id.
        """
        return backfill_of(self.writer.read(owner, name), backfill_id)

    def cancel_backfill(self, owner: str, name: str, backfill_id: str) -> BackfillRun:
        """End a backfill; what it has placed, a few minutes' worth, still runs. One that has ended stays as it is.

        Raises:
            BackfillNotFound: the schedule has none of this id.
        """

        def cancelled(stored: StoredSchedule) -> StoredSchedule:
            run = backfill_of(stored, backfill_id)
            if run.finished_at is not None:
                return stored
            ended = stored.with_backfill(replace(run, finished_at=self.runtime.now()))
            return replace(ended, version=stored.version + 1)

        return backfill_of(self.writer.write(self.writer.read(owner, name), None, cancelled), backfill_id)


def backfill_of(stored: StoredSchedule, backfill_id: str) -> BackfillRun:
    """A backfill of a schedule.

    Raises:
        BackfillNotFound: the schedule has none of this id.
    """
    run = next((each for each in stored.backfills if each.id == backfill_id), None)
    if run is None:
        raise BackfillNotFound(stored.name, backfill_id)
    return run
