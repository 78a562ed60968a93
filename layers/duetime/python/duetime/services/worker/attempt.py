"""Processes one delivery of a message: waits, claims, runs and finishes the task, and decides about the message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, WriteResult
from duetime.domain.dispatch.message_deletion import (
    CheckDependencies,
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
from duetime.domain.tasks.attempt_results import (
    Deferred,
    Ending,
    Failed,
    Postponed,
    Stopped,
    Succeeded,
    Yielded,
    failure,
)
from duetime.domain.tasks.attempt_run import Claimant, Run, expired, has_unreported_error, lock_wait, unless_open
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.notices import time_to_tell
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.targets import HandlerTarget, Phase, outlives_workers
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.watchdog_times import deferred_until
from duetime.domain.tracebacks import class_name, places_of
from duetime.services import task_telemetry
from duetime.services.content_retention import retain_paused
from duetime.services.outcomes import outcome
from duetime.services.task_telemetry import attempt_span, count_claim, note_end
from duetime.services.worker.target_caller import timeout
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import OpenSpan, Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.targets import DependencyListener, JobChecker, StartGate, TopologyChecker
    from duetime.services.outcomes.completion_steps import InlineCompletion, LateNotices, TracebackRecorder
    from duetime.services.outcomes.outcome import OutcomeWriter, RollbackWriter
    from duetime.services.start_gates import HandlerAvailability
    from duetime.services.worker.attempt_lease import AttemptLease, AttemptLocks, DeliveryState, Watch
    from duetime.services.worker.target_caller import TargetCaller


@frozen
class AttemptRunner:
    """Processes deliveries through their attempts.

    Attributes:
        handler_availability: decides whether a task's handler can be called now.
        late_notices: sends notices of late tasks and long runs.
        stores_nonces: whether records store the nonces of claims, which the tokens of attempts need.
    """

    stores: Stores
    completion: InlineCompletion
    phases: AttemptPhases
    runtime: Runtime
    handler_availability: HandlerAvailability
    topology_checker: Callable[[], TopologyChecker]
    job_checker: Callable[[], JobChecker]
    dependency_listener: Callable[[], DependencyListener]
    late_notices: LateNotices
    stores_nonces: bool = False

    def attempt(self, delivery_state: DeliveryState, watch: Watch) -> None:
        """Process one delivery until the disposition of its message is decided. This method never raises."""
        try:
            delivery_state.disposition = self._disposition(delivery_state, watch)
        except Unavailable as error:
            delivery_state.disposition = self._later(str(error))
        except RecordUnreadable as error:
            # Another version of the code may be able to read the record. Long delays let the message survive a
            # deployment or two.
            self.runtime.telemetry.count("unreadable")
            self.runtime.telemetry.note(
                "a record cannot be read",
                error=str(error),
                delivery=delivery_state.delivery.id,
                task=delivery_state.delivery.message.task_id.text,
            )
            delivery_state.disposition = RedeliverMessage(self.runtime.now() + MAX_DELAY, str(error))
        except BaseException as error:  # noqa: BLE001 - a defect in one delivery must not fail the batch
            self.runtime.telemetry.count("worker_errors")
            self.runtime.telemetry.note(
                "a delivery could not be processed",
                error=places_of(error),
                delivery=delivery_state.delivery.id,
                task=delivery_state.delivery.message.task_id.text,
            )
            delivery_state.disposition = self._later(class_name(error))
        finally:
            self.phases.locks.leave(delivery_state.task)
            delivery_state.task = None

    def finish_overdue(self, delivery_state: DeliveryState, process_ends_at: Millis) -> None:
        """Record that a target has not ended in time.

        Args:
            delivery_state: state of the delivery.
            process_ends_at: latest end of the target's process; no other step of the task begins before that time.
        """
        task, started = delivery_state.task, delivery_state.started_at
        if task is None or started is None:
            return
        if task.is_terminal:
            # The cleanup hangs, so it is abandoned; the outcome does not change.
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
        arrival, version = delivery_state.arrival, delivery_state.function_version
        run = Run(task, started, self.runtime.now(), arrival=arrival, function_version=version)
        if is_job(task.target):
            # The process may start the job at any time before the process ends, so the search for the job begins only
            # then.
            until = deferred_until(task, process_ends_at)
            sought = self.phases.keep_locks(delivery_state, task, until, Deferred())
            self.phases.count(delivery_state, run, sought)
            return self.phases.write(task, replace(run, started_at=process_ends_at), sought)
        ending = replace(timeout(task), process_ends_at=process_ends_at)
        self.phases.count(delivery_state, run, ending)
        return self.phases.write(task, run, ending)

    def _disposition(self, delivery_state: DeliveryState, watch: Watch) -> DeleteMessage | RedeliverMessage:
        message = delivery_state.delivery.message
        if message.ended_job:
            return self.job_checker().take_event(message.ended_job)
        if message.late_at is not None:
            self.late_notices.send(message, message.late_at)
            return DeleteMessage("notice handled")
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
        """Handle a rejected claim: continue an attempt that another worker left, or decide about the message."""
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
                self.topology_checker().check_topology(running)
                return DeleteMessage("checked")
            case CheckJob(running):
                self.job_checker().check_job(running)
                return DeleteMessage("checked")
            case CheckDependencies(blocked):
                self.dependency_listener().check(blocked)
                return DeleteMessage("checked")
            case _:
                return disposition
        return result if isinstance(result, Applied) else self._later("another worker took it over")

    def _through(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> DeleteMessage | RedeliverMessage:
        """Take a claimed task through its next phases; log lines written meanwhile belong to the attempt."""
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
        """Run the steps that follow an outcome, unless the task's lock is taken, or another worker has the lease."""
        self.phases.lease.begin(delivery_state, task)
        # If another worker ran the attempt, or the attempt never took the lock, the lock is taken now.
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
        """Whether there is time for the steps that follow an outcome before the function ends."""
        seconds = task.timeout_seconds if Phase.CLEAN in self.phases.caller.targets.phases(task) else 0
        telling = max(NOTICE_MARGIN, time_to_tell(task))
        return self.runtime.now() + seconds * SECOND + telling + FUNCTION_END_MARGIN <= watch.ends_at

    def _close_later(self, delivery_state: DeliveryState, task: Task, held: Postponed) -> RedeliverMessage:
        """Postpone the steps that follow an outcome until they can run; the lease ends now."""
        delivery_state.ended = True
        end = self.phases.lease.give_up(task)
        self.phases.locks.release(delivery_state, task, end, LockScope.TASK)
        return RedeliverMessage(held.until, held.reason)

    def _claimant(self, watch: Watch) -> Claimant:
        lease = self.phases.lease.duration
        return Claimant(watch.holder, self.runtime.now(), lease, stores_nonce=self.stores_nonces)

    def _decided(self, delivery_state: DeliveryState, end: WriteResult) -> DeleteMessage | RedeliverMessage:
        """What to do with the message after the last write of an attempt."""
        if isinstance(end, Applied):
            return DeleteMessage("done")
        self.runtime.telemetry.count("claims_rejected")
        disposition = after_refusal(end.task, delivery_state.delivery.message, self.runtime.now())
        return (
            disposition
            if isinstance(disposition, DeleteMessage | RedeliverMessage)
            else self._later("another worker took it over")
        )

    def _later(self, reason: str) -> RedeliverMessage:
        return RedeliverMessage(self.runtime.now() + SECOND, reason)


_STORE_PAUSE: Millis = 200
"""First pause before retrying a write that the store did not answer; the pause doubles with each retry."""


@frozen
class AttemptPhases:
    """Takes claimed tasks through the phases of an attempt, and records how the phases ended.

    Attributes:
        start_gate: decides whether an operator, the task's handler or its schedule keeps the task from starting.
        counts_versions: whether attempts with handlers are counted by the function version that ran them.
    """

    outcome_writer: OutcomeWriter
    rollback_writer: RollbackWriter
    start_gate: StartGate
    caller: TargetCaller
    locks: AttemptLocks
    lease: AttemptLease
    traceback_recorder: TracebackRecorder
    runtime: Runtime
    counts_versions: bool = False

    def work(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> WriteResult:
        """Make one attempt of a task: prepare and run the target, and record how the attempt ended."""
        phases = self.caller.targets.phases(task)
        if _is_spent(task):
            return outcome.fail_claimed(self.outcome_writer, task, phases)
        self.lease.begin(delivery_state, task)
        self.runtime.clock.sleep_until(task.next_at)
        started = self.runtime.now()
        ending = self._ending(delivery_state, task, phases, watch)
        delivery_state.ended = True
        if isinstance(ending, ConditionFailed):
            return ending
        if delivery_state.had_turn:
            # The attempt starts only when its rate grants the start, which may be long after the claim.
            started = delivery_state.started_at or started
        if is_job(task.target):
            ending = unless_open(task, ending)
            if ending == Deferred():
                # The job's start got no response, so the search for the job begins now.
                started = self.runtime.now()
        if isinstance(ending, Deferred):
            ending = self.keep_locks(delivery_state, task, deferred_until(task, started), ending)
        called = delivery_state.started_at is not None
        if delivery_state.checkpoint is not None:
            task = replace(task, checkpoint=delivery_state.checkpoint)
        run = Run(
            task,
            started,
            self.runtime.now(),
            delivery_state.progress,
            delivery_state.arrival,
            called,
            delivery_state.function_version,
        )
        self.count(delivery_state, run, ending)
        return self.write(task, run, ending)

    def count(self, delivery_state: DeliveryState, run: Run, ending: Ending) -> None:
        """Count an attempt that has called its target; its duration is measured when its target has ended."""
        task, telemetry = run.task, self.runtime.telemetry
        if delivery_state.started_at is None or isinstance(ending, Postponed) or task.state is State.ROLLING_BACK:
            return
        task_telemetry.count_start(telemetry, task, run.started_at)
        if not isinstance(ending, Deferred):
            telemetry.measure("duration", run.ended_at - run.started_at, type=task.type)
        if self.counts_versions and isinstance(task.target, HandlerTarget):
            task_telemetry.count_version(telemetry, delivery_state.executed, ending)

    def roll_back(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> WriteResult:
        """Make one attempt of a task's rollback, and record how the attempt ended."""
        if _is_spent(task):
            return self.rollback_writer.give_up(task)
        self.lease.begin(delivery_state, task)
        offers = Phase.ROLLBACK in self.caller.targets.phases(task)
        if not offers and task.rollback_on_failure and has_unreported_error(task):
            # No user has requested the rollback; the writer of the failure did not know that the target offers no
            # rollback.
            delivery_state.ended = True
            return self.rollback_writer.leave(task)
        started = self.runtime.now()
        ending: Ending | ConditionFailed = failure(
            "RollbackUnknown", "the target offers no `rollback`", retriable=False
        )
        if offers:
            held = (
                self.start_gate.held(task)
                or self._lock(delivery_state, task, LockScope.TASK)
                or self._lock(delivery_state, task, LockScope.RUN)
            )
            ending = held or self.caller.call(delivery_state, task, Phase.ROLLBACK, watch)
        delivery_state.ended = True
        if isinstance(ending, ConditionFailed):
            return ending
        version = delivery_state.function_version
        run = Run(task, started, self.runtime.now(), was_called=False, function_version=version)
        return self.write(task, run, ending)

    def write(self, task: Task, run: Run, ending: Ending) -> WriteResult:
        """Write the end of an attempt; retry for the duration of a lease, so that completed work is not lost.

        Raises:
            Unavailable: the store has not answered for the duration of a lease.
        """
        if isinstance(ending, Failed):
            self.traceback_recorder.record(task, ending)
        pause = _STORE_PAUSE
        until = self.runtime.now() + self.lease.duration
        while True:
            try:
                if task.state is State.ROLLING_BACK:
                    return self.rollback_writer.finish(run, ending)
                return self.outcome_writer.finish(run, ending, self.caller.targets.phases(task))
            except Unavailable:
                if self.runtime.now() + pause >= until:
                    raise
                self.runtime.clock.sleep_until(self.runtime.now() + pause)
                pause *= 2

    def _ending(
        self, delivery_state: DeliveryState, task: Task, phases: frozenset[Phase], watch: Watch
    ) -> Ending | ConditionFailed:
        """Prepare and run the target; the lease and the task's state are checked before each phase."""
        if over := _requested(task) or expired(task, self.runtime.now()):
            return over
        if held := self.start_gate.held(task) or self._lock(delivery_state, task, LockScope.TASK):
            return held
        ended = (
            self._prepare(delivery_state, task, watch)
            if Phase.PREPARE in phases
            else self._lock(delivery_state, task, LockScope.RUN)
        )
        return ended or self.caller.call(delivery_state, task, Phase.RUN, watch)

    def _prepare(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> Ending | ConditionFailed | None:
        """Prepare the target; returns the end of the attempt if the attempt cannot continue."""
        step = self.lease.step(task, Move.PREPARE)
        if isinstance(step, ConditionFailed):
            return step
        prepared = self.caller.call(delivery_state, task, Phase.PREPARE, watch)
        if not isinstance(prepared, Succeeded):
            return prepared
        if held := self._lock(delivery_state, task, LockScope.RUN):
            return held
        step = self.lease.step(task, Move.BEGIN)
        return step if isinstance(step, ConditionFailed) else _requested(step.task)

    def _lock(self, delivery_state: DeliveryState, task: Task, scope: LockScope) -> Ending | None:
        """Take the locks of a scope; returns the end of the attempt if other tasks hold a lock."""
        held = self.locks.take(delivery_state, task, scope)
        return None if held is None else lock_wait(task, held, self.runtime.now())

    def keep_locks(self, delivery_state: DeliveryState, task: Task, until: Millis, deferred: Deferred) -> Ending:
        """Hold the locks until the target's deadline; this precedes the lease's extension, so that no lock ends first.

        If a job may have begun, the attempt waits for the job even if a lock was released by force, because otherwise
        the next attempt would run at the same time as the job.
        """
        if self.locks.renew(delivery_state, task, until) or is_job(task.target):
            return deferred
        return failure("LockLost", "a lock was lost before the target's acceptance could be recorded")


def _is_spent(task: Task) -> bool:
    """Whether the worker of the last allowed attempt was lost."""
    return task.attempt > task.retry.max_attempts and not outlives_workers(task.target)


def _requested(task: Task) -> Ending | None:
    """The end of an attempt if a user requests a stop or pause before its target is called."""
    match task.requested_action:
        case RequestedAction.CANCEL:
            return Stopped()
        case RequestedAction.PAUSE:
            return Yielded(None)
        case None:
            return None
