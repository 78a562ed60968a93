"""Requests manual runs of schedules, either a single run or a backfill of a past period."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.errors import (
    BackfillNotFound,
    FaultCode,
    FieldInvalid,
    ScheduleNotFound,
    ScheduleStateConflict,
    TaskDeleted,
    Unavailable,
)
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_BACKFILLS
from duetime.domain.schedules.backfill import requested
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.occurrence_actions import ManualRun
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.run_history import BackfillRun
from duetime.domain.schedules.schedule_changes import with_manual_run
from duetime.domain.schedules.schedule_history import BY_OWNER, ScheduleAction
from duetime.domain.tasks.creation import Accepted, due_of
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import Cause
from duetime.services.schedules.occurrence_tasks import Due
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import IdempotencyKey
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.schedules.schedule_writer import RepeatedRequests, ScheduleWriter

_TAIL_BITS, _ID_LENGTH = 64, 8
_BY_HAND = "run"
_NOW = ManualRun()


@frozen
class Period:
    """The period of a backfill, [start, end], and how many of its occurrences run per minute.

    Attributes:
        only_missing: whether occurrences that already have a run are skipped.
        overlap: `ALLOW_ALL`, or `BUFFER_ALL` to let each run wait for the end of the schedule's other runs.
    """

    start: Millis
    end: Millis
    per_minute: int
    only_missing: bool = True
    overlap: Overlap = Overlap.ALLOW_ALL


@frozen
class ManualRuns:
    """Runs a schedule's task when its owner requests it, in addition to the schedule's timing.

    Every method raises `ScheduleNotFound` if no schedule has that name, and may raise `Unavailable`.
    """

    writer: ScheduleWriter
    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    repeats: RepeatedRequests

    def run(
        self,
        owner: str,
        name: str,
        version: int | None = None,
        key: IdempotencyKey | None = None,
        by: Attribution = BY_OWNER,
        traceparent: str | None = None,
        wanted: ManualRun = _NOW,
    ) -> Accepted[Task]:
        """Run a schedule's task once, regardless of its recurrence, and even if the schedule is paused.

        Args:
            owner: owner of the schedule.
            name: name of the schedule.
            version: required version; `None` for any version.
            key: idempotency key of the request.
            by: who requests the run.
            traceparent: trace context of the request.
            wanted: when to run the task, and with which payload.

        Returns:
            The task, which can still be skipped because of the previous run, just as an occurrence can. A repeat
            returns the task of the first request.

        Raises:
            FieldInvalid: the run is due more than ten years ahead, or the schedule's tasks accept no other payload.
            KeyReused: the request's idempotency key was used with a different request.
            TaskDeleted: the task that belongs to the idempotency key has been deleted.
            ScheduleVersionMismatch: the schedule is not at the required version.
        """
        now = self.runtime.now()
        known = self.repeats.known(owner, key, now)
        if known is not None and (task := self.stores.tasks.read(known.task_id)) is not None:
            if task.erased:
                raise TaskDeleted(task.id)
            return Accepted(task, is_replay=True)
        # The version was checked for the first request, so it is not checked for a repeat.
        stored = self.writer.read(owner, name, version if known is None else None)
        at = now if known is None else known.created_at
        due = max(at, due_of(replace(stored.spec.task, due_at=wanted.due_at, delay=wanted.delay), at))
        if wanted.payload is not None and isinstance(stored.spec.task.target, TopologyTarget):
            raise FieldInvalid("payload", "is not accepted: the schedule runs a topology", FaultCode.CONFLICT)
        # If the schedule has an occurrence at the due time, changes to that occurrence, such as a skip, must not affect
        # this run.
        nominal = due + 1 if due > at and stored.means(due) else due
        # A repeat creates a task with the id of the first request, which may have crashed before its write.
        occurrence = Occurrence(nominal, due, due, f"now {self.runtime.nonce() if key is None else key.text}")
        task_id = stored.id_of(occurrence, _BY_HAND)
        if known is not None and known.task_id != task_id:
            # The request was sent for a schedule that has since been deleted; this is another schedule with that name.
            raise ScheduleNotFound(name)
        if key is not None and known is None and self.repeats.remember(owner, key, task_id, now) is not None:
            return self.run(owner, name, version, key, by, traceparent, wanted)
        calendars = self.writer.expander.planner.known_calendars_of(stored) if stored.spec.on_excluded.step else ()
        placed = Due(occurrence, Cause.MANUAL, _BY_HAND, traceparent, calendars=calendars)
        return self._produced(stored, placed, by, wanted.payload)

    def _produced(self, stored: StoredSchedule, due: Due, by: Attribution, payload: bytes | None) -> Accepted[Task]:
        """Create, count and send the task of a manual run, unless another copy of the request was faster."""
        occurrence_tasks = self.writer.expander.planner.occurrence_tasks
        task, is_new = occurrence_tasks.produce_once(stored, due, occurrence_tasks.task_of(stored, payload))
        with suppress(Unavailable, ScheduleNotFound):
            # The run is counted before the message is sent. If the write of the count fails, the worker that claims the
            # task counts the run.
            self.writer.write(stored, None, partial(with_manual_run, task=task, now=self.runtime.now(), by=by))
        self.enqueuer.send_due([task])
        if not is_new:
            return Accepted(self.stores.tasks.read(task.id) or task, is_replay=True)
        return Accepted(task)

    def backfill(
        self,
        owner: str,
        name: str,
        period: Period,
        version: int | None = None,
        key: IdempotencyKey | None = None,
        by: Attribution = BY_OWNER,
    ) -> Accepted[BackfillRun]:
        """Run the occurrences of a past period at a given rate. A repeat with the same key returns the first backfill.

        Raises:
            FieldInvalid: the period is empty, not past or without occurrences, or the rate is out of bounds.
            KeyReused: the request's idempotency key was used with a different body.
            ScheduleStateConflict: too many backfills are running.
            ScheduleVersionMismatch: the schedule is not at the required version.
        """
        now = self.runtime.now()
        known = self.repeats.known(owner, key, now)
        before = self.writer.read(owner, name, version if known is None else None)
        if known is not None and (run := _found(before, _id_of(known.task_id))) is not None:
            return Accepted(run, is_replay=True)
        asked_at = now if known is None else known.created_at
        wanted = requested(
            *(period.start, period.end, period.per_minute, asked_at),
            only_missing=period.only_missing,
            overlap=period.overlap,
        )
        made = self._made_by(before, key, asked_at)
        if known is not None and known.task_id != made:
            # The name now belongs to another schedule, as in `run`.
            raise ScheduleNotFound(name)
        run_id = _id_of(made)

        def backfilled(stored: StoredSchedule) -> StoredSchedule:
            if _found(stored, run_id) is not None:
                # A concurrent repeat of the same request came first, and its backfill does not change.
                return stored
            if len(stored.open_backfills) >= MAX_BACKFILLS:
                raise ScheduleStateConflict(name, f"busy with {MAX_BACKFILLS} backfills", "given another")
            size = wanted.size(stored.schedule(self.writer.expander.planner.calendars_of(stored)))
            if not size:
                raise FieldInvalid("scheduled_after", "begins a period in which the schedule has no occurrence")
            after = replace(stored.with_backfill(BackfillRun(run_id, wanted, size)), version=stored.version + 1)
            return after.after_action(ScheduleAction.BACKFILL_REQUESTED, by, now, subject=run_id)

        # A rejected request must not use up its key.
        backfilled(before)
        if key is not None and known is None and self.repeats.remember(owner, key, made, now) is not None:
            return self.backfill(owner, name, period, version, key, by)
        after = self.writer.write(before, version if known is None else None, backfilled, with_timer=True)
        return Accepted(_backfill_of(self.writer.expand(after), run_id))

    def _made_by(self, stored: StoredSchedule, key: IdempotencyKey | None, asked_at: Millis) -> TaskId:
        """The id for a backfill request; with a key, every repeat for the same schedule gets the same id."""
        if key is None:
            return TaskId.of(asked_at, 0, self.runtime.random_source.bits(_TAIL_BITS))
        digest = sha256(f"{stored.uid}\0{key.text}".encode()).digest()
        return TaskId.of(asked_at, 0, int.from_bytes(digest[: _TAIL_BITS // 8], "big"))

    def backfills(self, owner: str, name: str) -> Sequence[BackfillRun]:
        """A schedule's running backfills, and its latest finished backfills."""
        return self.writer.read(owner, name).backfills

    def get_backfill(self, owner: str, name: str, backfill_id: str) -> BackfillRun:
        """Read a backfill.

        Raises:
            BackfillNotFound: the schedule has no backfill with this id.
        """
        return _backfill_of(self.writer.read(owner, name), backfill_id)

    def cancel_backfill(self, owner: str, name: str, backfill_id: str, by: Attribution = BY_OWNER) -> BackfillRun:
        """Cancel a backfill; tasks already placed for the next minutes still run. A finished backfill does not change.

        Raises:
            BackfillNotFound: the schedule has no backfill with this id.
        """

        def cancelled(stored: StoredSchedule) -> StoredSchedule:
            run = _backfill_of(stored, backfill_id)
            if run.finished_at is not None:
                return stored
            now = self.runtime.now()
            ended = replace(stored.with_backfill(replace(run, finished_at=now)), version=stored.version + 1)
            return ended.after_action(ScheduleAction.BACKFILL_CANCELLED, by, now, subject=backfill_id)

        return _backfill_of(self.writer.write(self.writer.read(owner, name), None, cancelled), backfill_id)


def _backfill_of(stored: StoredSchedule, backfill_id: str) -> BackfillRun:
    """A backfill of a schedule.

    Raises:
        BackfillNotFound: the schedule has no backfill with this id.
    """
    run = _found(stored, backfill_id)
    if run is None:
        raise BackfillNotFound(stored.name, backfill_id)
    return run


def _found(stored: StoredSchedule, backfill_id: str) -> BackfillRun | None:
    return next((each for each in stored.backfills if each.id == backfill_id), None)


def _id_of(made: TaskId) -> str:
    """The id of a backfill; every repeat of its request has the same id."""
    return sha256(made.text.encode()).hexdigest()[:_ID_LENGTH]
