"""Creates the tasks of a schedule's occurrences; creating a task again changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.occurrences import preceding
from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.targets import definition_of
from duetime.domain.tasks.task import Cause, unless_referenced
from duetime.services.task_telemetry import MESSAGE_ID, run_span
from duetime.services.tasks.creation_rules import payload_name
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import ContentStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.creation_rules import CreationRules


@frozen
class Due:
    """An occurrence to place.

    Attributes:
        cause: reason for the run.
        purpose: the purpose of a run in addition to the recurrence, such as a backfill's id.
        requested_in: trace context of the request for a manual run.
        is_buffered: whether this is a backfill's run, which waits for the end of the schedule's other runs.
        calendars: calendars for computing the times before and after the occurrence.
    """

    occurrence: Occurrence
    cause: Cause = Cause.SCHEDULE
    purpose: str = ""
    requested_in: str | None = None
    is_buffered: bool = False
    calendars: tuple[Calendar, ...] = ()


@frozen
class OccurrenceTasks:
    """Creates the tasks of occurrences.

    Attributes:
        rules: rules for accepting tasks.
    """

    contents: ContentStore
    enqueuer: Enqueuer
    runtime: Runtime
    rules: CreationRules

    def check(self, stored: StoredSchedule) -> None:
        """Reject a schedule whose tasks could not run.

        Raises:
            FieldInvalid: the target of the schedule's task is not allowed.
        """
        _within_task(partial(self.rules.targets.target_of, stored.owner), stored.spec.task)

    def accept(self, owner: str, task: TaskSpec) -> None:
        """Reject a schedule's task for the same reasons as a task that is created directly.

        Raises:
            FieldInvalid: the task's target is not allowed, or its type has no handler; the same applies to a topology's
                nodes.
        """
        _within_task(lambda spec: self.rules.accept(owner, self.rules.resolved(owner, spec)), task)

    def task_of(self, stored: StoredSchedule, payload: bytes | None = None) -> TaskSpec:
        """The specification of the schedule's tasks, with the current defaults of their type.

        If the task names a definition without a version, the current latest version is used.

        Args:
            stored: the schedule.
            payload: JSON text in UTF-8 that replaces the schedule's own payload.

        Raises:
            ContentExpired: the payload is stored outside the schedule and has expired.
            FieldInvalid: the definition does not exist, or the parameters do not fit it.
            Unavailable: the store did not answer.
        """
        if payload is None:
            payload = self.contents.fetch(stored.uid, stored.payload)
        task = replace(stored.spec.task, payload=payload)
        try:
            # Occurrences have no unique key, because the schedule's `overlap` setting decides instead.
            spec = replace(self.rules.resolved(stored.owner, task), unique=None)
        except FieldInvalid as refusal:
            raise refusal.inside("task") from None
        return spec if stored.spec.expect_duration_factor is None else self._with_usual_duration(stored, spec)

    def _with_usual_duration(self, stored: StoredSchedule, spec: TaskSpec) -> TaskSpec:
        """The specification with a limit on its duration, based on the latest runs."""
        # Few schedules compare their runs, so the module is imported only for such schedules.
        from duetime.domain.schedules.runs import RUNS_COMPARED, with_usual_duration  # noqa: PLC0415 - see above

        latest = preceding(stored.schedule(), self.runtime.now() + 1, RUNS_COMPARED)
        runs = self.enqueuer.tasks.read_many([stored.id_of(each) for each in latest])
        factor = stored.spec.expect_duration_factor
        return replace(spec, notify_on=with_usual_duration(spec.notify_on, factor, runs.values()))

    def task_for(self, stored: StoredSchedule, dues: Sequence[Due]) -> TaskSpec:
        """The specification for these occurrences.

        For a schedule without placed occurrences, also removes the expiry of the schedule's payload.

        Raises:
            ContentExpired: the payload is stored outside the schedule and has expired.
            FieldInvalid: the definition does not exist, or the parameters do not fit it.
        """
        is_new = stored.last_run is None or stored.last_run.revision != stored.revision
        if stored.payload.is_outside and is_new:
            # This step is also done by the trigger, because the process that wrote the schedule may have crashed.
            self.contents.retain(stored.uid, stored.payload)
        if stored.former_payload is not None and is_new:
            self.contents.expire(stored.uid, stored.former_payload, unless_referenced(stored.updated_at))
        return self.task_of(stored) if dues else stored.spec.task

    def expire_payloads(self, removed: StoredSchedule | RemovedSchedule) -> None:
        """Set an expiry for the contents of a deleted schedule; its tasks have their own payloads."""
        for payload in removed.outside_payloads:
            self.contents.expire(removed.uid, payload, unless_referenced(self.runtime.now()))

    def produce(self, stored: StoredSchedule, due: Due, spec: TaskSpec, tick: str | None = None) -> Task:
        """Create the task of an occurrence; `Enqueuer.send_due` must follow.

        Args:
            stored: the schedule.
            due: the occurrence.
            spec: specification of the schedule's tasks.
            tick: span context of the trigger's tick.

        Raises:
            FieldInvalid: the task's target is no longer allowed.
            Unavailable: the store did not answer.
        """
        return self.produce_once(stored, due, spec, tick)[0]

    def produce_once(
        self, stored: StoredSchedule, due: Due, spec: TaskSpec, tick: str | None = None
    ) -> tuple[Task, bool]:
        """Create the task of an occurrence, as `produce` does, and return whether this call created it."""
        span = run_span(stored.spec.task.type, stored.name, (tick, stored.traceparent), due.requested_in)
        with self.runtime.tracer.span(span) as opened:
            context = opened.context or due.requested_in or stored.traceparent
            task, is_new = self._produced(stored, due, spec, context)
            opened.end_with({MESSAGE_ID: task.id.text})
        return task, is_new

    def _produced(self, stored: StoredSchedule, due: Due, spec: TaskSpec, traceparent: str | None) -> tuple[Task, bool]:
        occurrence, now = due.occurrence, self.runtime.now()
        task_id = stored.id_of(occurrence, due.purpose)
        spec = replace(spec, target=self.rules.targets.target_of(stored.owner, spec))
        expiry = unless_referenced(occurrence.due_at)
        content = self.contents.keep(task_id, payload_name(spec.target), spec.payload, expiry)
        task = new_task(task_id, spec, stored.owner, occurrence.due_at, now, content, self.runtime.epoch)
        # A calendar moves an occurrence but does not change its id.
        ref = stored.schedule_ref(occurrence.nominal, due.cause, due.calendars)
        if due.is_buffered:
            ref = replace(ref, is_buffered=True, reports=True)
        task = replace(task, next_at=occurrence.due_at, schedule_ref=ref, traceparent=traceparent)
        is_new = self.enqueuer.produce(task)
        kept = content if is_new else self._payload_of(task)
        if kept.is_outside:
            # This step is done even if another process wrote the record, because that process may have crashed before
            # it.
            self.contents.retain(task_id, kept, expiry)
        return task, is_new

    def _payload_of(self, task: Task) -> Content:
        """The payload of a record that another process wrote, possibly with another version of the definition."""
        known = None if definition_of(task.target) is None else self.enqueuer.tasks.read(task.id)
        return task.payload if known is None else known.payload


def _within_task(check: Callable[[TaskSpec], object], task: TaskSpec) -> None:
    try:
        check(task)
    except FieldInvalid as refusal:
        raise refusal.inside("task") from None
