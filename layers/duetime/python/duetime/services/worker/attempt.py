"""One delivery of a message: hold, claim, run, finish; and what happens to the message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, WriteResult
from duetime.domain.dispatch.message_deletion import (
    CheckJob,
    CheckTopology,
    DeleteMessage,
    FollowUp,
    RedeliverMessage,
    TakeOver,
    Undo,
    after_refusal,
    before_due,
)
from duetime.domain.errors import RecordUnreadable, Unavailable
from duetime.domain.operating_parameters import (
    CLAIM_LEAD,
    FUNCTION_END_MARGIN,
    LEASE_RETURN_MARGIN,
    MAX_DELAY,
    MAX_HOLD,
    NOTICE_MARGIN,
)
from duetime.domain.tasks.attempt_results import Deferred, Postponed
from duetime.domain.tasks.attempt_run import Claimant, Run
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.notices import time_to_tell
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.watchdog_times import deferred_until
from duetime.domain.tracebacks import class_name, places_of
from duetime.services.content_retention import retain_paused
from duetime.services.outcomes.attempt_metrics import count_claim
from duetime.services.spans import attempt_span, note_end
from duetime.services.worker.target_caller import timeout

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.attempts import JobChecker, TopologyChecker
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tracing import OpenSpan
    from duetime.services.outcomes.completion_steps import InlineCompletion, LateNotices
    from duetime.services.worker.attempt_phases import AttemptPhases
    from duetime.services.worker.delivery_state import DeliveryState, Watch
    from duetime.services.worker.handler_availability import HandlerAvailability


@dataclass(frozen=True, slots=True)
class AttemptRunner:
    """Takes deliveries through their attempts.

    Attributes:
        handler_availability: whether the handler that a task needs can be called just now.
        late_notices: tells of tasks that are late.
    """

    stores: Stores
    completion: InlineCompletion
    phases: AttemptPhases
    runtime: Runtime
    handler_availability: HandlerAvailability
    topology_checker: TopologyChecker
    job_checker: JobChecker
    late_notices: LateNotices

    def attempt(self, delivery_state: DeliveryState, watch: Watch) -> None:
        """Work on one delivery until the disposition of its message is decided. Never raises."""
        try:
            delivery_state.disposition = self._disposition(delivery_state, watch)
        except Unavailable as error:
            delivery_state.disposition = self._later(str(error))
        except RecordUnreadable as error:
            # Another version of the code may read it. Seldom checked, its message outlasts a deployment or two.
            self.runtime.telemetry.count("unreadable")
            self.runtime.telemetry.note(
                "a record cannot be read",
                error=str(error),
                delivery=delivery_state.delivery.id,
                task=delivery_state.delivery.message.task_id.text,
            )
            delivery_state.disposition = RedeliverMessage(self.runtime.now() + MAX_DELAY, str(error))
        except BaseException as error:  # noqa: BLE001 - one delivery's defect must not take its batch with it
            self.runtime.telemetry.count("worker_errors")
            self.runtime.telemetry.note(
                "a delivery could not be worked on",
                error=places_of(error),
                delivery=delivery_state.delivery.id,
                task=delivery_state.delivery.message.task_id.text,
            )
            delivery_state.disposition = self._later(class_name(error))
        finally:
            delivery_state.task = None

    def finish_overdue(self, delivery_state: DeliveryState, process_ends_at: Millis) -> None:
        """Write down that a target has not ended in time.

        Args:
            delivery_state: what it works on.
            process_ends_at: its process must have been ended by then; nothing of the task begins before.
        """
        task, started = delivery_state.task, delivery_state.started_at
        if task is None or started is None:
            return
        if task.is_terminal:
            # It hangs in cleaning up: the outcome stands, and cleaning up is given up.
            self.completion.finish(task)
            delivery_state.disposition = DeleteMessage("overdue")
            return
        end = self._write_overdue(delivery_state, task, started, process_ends_at)
        delivery_state.disposition = self._decided(delivery_state, end)
        if isinstance(end, Applied) and end.task.is_terminal:
            delivery_state.disposition = RedeliverMessage(
                process_ends_at + LEASE_RETURN_MARGIN, "its process is still ending"
            )

    def _write_overdue(
        self, delivery_state: DeliveryState, task: Task, started: Millis, process_ends_at: Millis
    ) -> WriteResult:
        now, arrival = self.runtime.now(), delivery_state.arrival
        if is_job(task.target):
            # It may be started until its process ends: it is looked for from then on.
            until = deferred_until(task, process_ends_at)
            sought = self.phases.keep_locks(delivery_state, task, until, Deferred())
            return self.phases.write(task, Run(task, process_ends_at, now, arrival=arrival), sought)
        ending = replace(timeout(task), process_ends_at=process_ends_at)
        return self.phases.write(task, Run(task, started, now, arrival=arrival), ending)

    def _disposition(self, delivery_state: DeliveryState, watch: Watch) -> DeleteMessage | RedeliverMessage:
        message = delivery_state.delivery.message
        if message.ended_job:
            return self.job_checker.take_event(message.ended_job)
        if message.late_at is not None:
            self.late_notices.send(message, message.late_at)
            return DeleteMessage("told")
        received = self.runtime.now()
        if message.due - received > MAX_HOLD:
            return before_due(message, received)
        self.runtime.clock.sleep_until(message.due - CLAIM_LEAD)
        if watch.is_closing_time():
            return self._later("the worker is ending")
        result = self.stores.tasks.apply(self._claimant(watch).claim(message, self.runtime.nonce()))
        if isinstance(result, Applied):
            count_claim(self.runtime.telemetry, result.task, received)
            return self._through(delivery_state, result.task, watch)
        taken = self._take_over(delivery_state, result.task, watch)
        return self._through(delivery_state, taken.task, watch) if isinstance(taken, Applied) else taken

    def _take_over(
        self, delivery_state: DeliveryState, task: Task | None, watch: Watch
    ) -> Applied | DeleteMessage | RedeliverMessage:
        """After a rejected claim: the rest of an attempt that another worker left, or what happens to the message."""
        self.runtime.telemetry.count("claims_rejected")
        retain_paused(self.stores.tasks, self.stores.contents, task)
        disposition = after_refusal(task, delivery_state.delivery.message, self.runtime.now())
        match disposition:
            case FollowUp(left):
                result = self.stores.tasks.apply(self._claimant(watch).claim_follow_up(left, self.runtime.nonce()))
            case Undo(left):
                result = self.stores.tasks.apply(self._claimant(watch).claim_rollback(left, self.runtime.nonce()))
            case TakeOver(left):
                result = self.stores.tasks.apply(self._claimant(watch).claim_unacknowledged(left, self.runtime.nonce()))
            case CheckTopology(running):
                self.topology_checker.check_topology(running)
                return DeleteMessage("looked after")
            case CheckJob(running):
                self.job_checker.check_job(running)
                return DeleteMessage("looked after")
            case _:
                return disposition
        return result if isinstance(result, Applied) else self._later("somebody else took it over")

    def _through(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> DeleteMessage | RedeliverMessage:
        """Take a claimed task through what is left of it; what is logged meanwhile belongs to its attempt."""
        with self.runtime.telemetry.attempt(task), self.runtime.tracer.span(attempt_span(task)) as span:
            return self._to_its_end(delivery_state, task, watch, span)

    def _to_its_end(
        self, delivery_state: DeliveryState, task: Task, watch: Watch, span: OpenSpan
    ) -> DeleteMessage | RedeliverMessage:
        if task.is_terminal:
            end: WriteResult = Applied(task)
        elif task.state is State.ROLLING_BACK:
            end = self.phases.roll_back(delivery_state, task, watch)
        else:
            end = self.phases.work(delivery_state, task, watch)
            note_end(span, end)
        self.phases.locks.release(delivery_state, task, end, LockScope.RUN)
        if isinstance(end, Applied) and end.task.is_terminal and end.task.finished_at is None:
            has_time = end.task is task or self._has_time_to_close(end.task, watch)
            later = Postponed(self.runtime.now(), "a function with time left")
            closed = self._close(delivery_state, end.task) if has_time else later
            if isinstance(closed, Postponed):
                return self._close_later(delivery_state, end.task, closed)
            end = closed or end
        self.phases.locks.release(delivery_state, task, end, LockScope.TASK)
        return self._decided(delivery_state, end)

    def _close(self, delivery_state: DeliveryState, task: Task) -> ConditionFailed | Postponed | None:
        """Do what follows an outcome, unless its lock is not to be had, or the lease is another's by now."""
        self.phases.lease.begin(delivery_state, task)
        # Of an attempt that another worker began, or that never came to its lock: taken now.
        cleans = Phase.CLEAN in self.phases.caller.targets.phases(task) and task.started_at is not None
        if cleans and (held := self.handler_availability.held(task)):
            return held
        if cleans and (held := self.phases.locks.take(delivery_state, task, LockScope.TASK)):
            return held
        if ended := self.phases.lease.confirm(delivery_state, task):
            return ended
        self.completion.close(task)
        delivery_state.ended = True
        return None

    def _has_time_to_close(self, task: Task, watch: Watch) -> bool:
        """Whether what follows an outcome can be done before the function ends; a fresh one has time enough."""
        seconds = task.timeout_seconds if Phase.CLEAN in self.phases.caller.targets.phases(task) else 0
        telling = max(NOTICE_MARGIN, time_to_tell(task))
        return self.runtime.now() + seconds * SECOND + telling + FUNCTION_END_MARGIN <= watch.ends_at

    def _close_later(self, delivery_state: DeliveryState, task: Task, held: Postponed) -> RedeliverMessage:
        """Let go of what follows an outcome until its lock is to be had: no lease is kept meanwhile."""
        delivery_state.ended = True
        end = self.phases.lease.give_up(task)
        self.phases.locks.release(delivery_state, task, end, LockScope.TASK)
        return RedeliverMessage(held.until, held.reason)

    def _claimant(self, watch: Watch) -> Claimant:
        return Claimant(watch.holder, self.runtime.now(), self.phases.lease.duration)

    def _decided(self, delivery_state: DeliveryState, end: WriteResult) -> DeleteMessage | RedeliverMessage:
        """The message's disposition after the last write of an attempt."""
        if isinstance(end, Applied):
            return DeleteMessage("done")
        self.runtime.telemetry.count("claims_rejected")
        disposition = after_refusal(end.task, delivery_state.delivery.message, self.runtime.now())
        return (
            disposition
            if isinstance(disposition, DeleteMessage | RedeliverMessage)
            else self._later("somebody else took it over")
        )

    def _later(self, reason: str) -> RedeliverMessage:
        return RedeliverMessage(self.runtime.now() + SECOND, reason)
