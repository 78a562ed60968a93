"""Making the tasks of a schedule's occurrences exist: making one twice is making it once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.content import unless_referenced
from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.parent_references import Cause
from duetime.domain.tasks.targets import definition_of
from duetime.services.spans import MESSAGE_ID, run_span
from duetime.services.tasks.creation_rules import payload_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
    from duetime.domain.tasks.content import Content
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import ContentStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.creation_rules import CreationRules


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence that is to be placed.

    Attributes:
        cause: why.
        purpose: what else than its recurrence it is made for, such as a backfill's id.
        requested_in: the trace of the request for a manual run.
        is_buffered: whether it is a backfill's run that waits for the end of the schedule's other runs.
        calendars: by which the schedule's times before and after it are known.
    """

    occurrence: Occurrence
    cause: Cause = Cause.SCHEDULE
    purpose: str = ""
    requested_in: str | None = None
    is_buffered: bool = False
    calendars: tuple[Calendar, ...] = ()


@dataclass(frozen=True, slots=True)
class OccurrenceTasks:
    """Produces the tasks of occurrences.

    Attributes:
        rules: what a task must be to be accepted.
    """

    contents: ContentStore
    enqueuer: Enqueuer
    runtime: Runtime
    rules: CreationRules

    def check(self, stored: StoredSchedule) -> None:
        """Reject a schedule whose tasks nobody could run.

        Raises:
            FieldInvalid: its task's target may not be called.
        """
        _within_task(self.rules.targets.target_of, stored.spec.task)

    def accept(self, owner: str, task: TaskSpec) -> None:
        """Reject the task of a schedule as the same task by itself is rejected when it is requested.

        Raises:
            FieldInvalid: its target may not be called, or no handler is known for its type; so for a topology's nodes.
        """
        _within_task(lambda spec: self.rules.accept(self.rules.resolved(owner, spec)), task)

    def task_of(self, stored: StoredSchedule) -> TaskSpec:
        """What each of its tasks is: of a definition, a run of the version that is the latest now, if it names none.

        Raises:
            ContentExpired: its payload lies outside the schedule and is gone.
            FieldInvalid: there is no such definition, or its parameters are others.
        """
        task = replace(stored.spec.task, payload=self.contents.fetch(stored.uid, stored.payload))
        try:
            return self.rules.resolved(stored.owner, task)
        except FieldInvalid as refusal:
            raise refusal.inside("task") from None

    def task_for(self, stored: StoredSchedule, dues: Sequence[Due]) -> TaskSpec:
        """What these occurrences are; of a schedule that has placed none yet, the payload is made to last.

        Raises:
            ContentExpired: its payload lies outside the schedule and is gone.
            FieldInvalid: there is no such definition, or its parameters are others.
        """
        is_new = stored.last_run is None or stored.last_run.revision != stored.revision
        if stored.payload.is_outside and is_new:
            # Here, where the trigger comes too: whoever wrote the schedule may have vanished.
            self.contents.retain(stored.uid, stored.payload)
        if stored.former_payload is not None and is_new:
            self.contents.expire(stored.uid, stored.former_payload, unless_referenced(stored.updated_at))
        return self.task_of(stored) if dues else stored.spec.task

    def expire_payloads(self, removed: StoredSchedule | RemovedSchedule) -> None:
        """Let what a schedule that is gone had outside of it expire; its tasks have payloads of their own."""
        for payload in removed.outside_payloads:
            self.contents.expire(removed.uid, payload, unless_referenced(self.runtime.now()))

    def produce(self, stored: StoredSchedule, due: Due, spec: TaskSpec, tick: str | None = None) -> Task:
        """Make the task of an occurrence exist; `Enqueuer.send_due` must follow.

        Args:
            stored: its schedule.
            due: the occurrence.
            spec: what the schedule's tasks are.
            tick: the context of the span in which the trigger does so.

        Raises:
            FieldInvalid: its target may not be called any more.
            Unavailable: the store did not answer.
        """
        return self.produce_once(stored, due, spec, tick)[0]

    def produce_once(
        self, stored: StoredSchedule, due: Due, spec: TaskSpec, tick: str | None = None
    ) -> tuple[Task, bool]:
        """Make the task of an occurrence exist, as `produce` does, and say whether it was this call that made it."""
        span = run_span(stored.spec.task.type, stored.name, (tick, stored.traceparent), due.requested_in)
        with self.runtime.tracer.span(span) as opened:
            context = opened.context or due.requested_in or stored.traceparent
            task, is_new = self._produced(stored, due, spec, context)
            opened.end_with({MESSAGE_ID: task.id.text})
        return task, is_new

    def _produced(self, stored: StoredSchedule, due: Due, spec: TaskSpec, traceparent: str | None) -> tuple[Task, bool]:
        occurrence, now = due.occurrence, self.runtime.now()
        task_id = stored.id_of(occurrence, due.purpose)
        spec = replace(spec, target=self.rules.targets.target_of(spec))
        expiry = unless_referenced(occurrence.due_at)
        content = self.contents.keep(task_id, payload_name(spec.target), spec.payload, expiry)
        task = new_task(task_id, spec, stored.owner, occurrence.due_at, now, content)
        # A calendar moves an occurrence, and not its id.
        ref = stored.schedule_ref(occurrence.nominal, due.cause, due.calendars)
        if due.is_buffered:
            ref = replace(ref, is_buffered=True, reports=True)
        task = replace(task, next_at=occurrence.due_at, schedule_ref=ref, traceparent=traceparent)
        is_new = self.enqueuer.produce(task)
        kept = content if is_new else self._payload_of(task)
        if kept.is_outside:
            # Also when another has written the record: it may not have come so far.
            self.contents.retain(task_id, kept, expiry)
        return task, is_new

    def _payload_of(self, task: Task) -> Content:
        """The payload that the record has which another has written: of a definition, perhaps of another version."""
        known = None if definition_of(task.target) is None else self.enqueuer.tasks.read(task.id)
        return task.payload if known is None else known.payload


def _within_task(check: Callable[[TaskSpec], object], task: TaskSpec) -> None:
    try:
        check(task)
    except FieldInvalid as refusal:
        raise refusal.inside("task") from None
