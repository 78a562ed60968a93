"""The phases of an attempt: prepare, run, roll back; and what is written down at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import ConditionFailed, WriteResult
from duetime.domain.errors import Unavailable
from duetime.domain.tasks.attempt_results import Deferred, Ending, Failed, Stopped, Succeeded, Yielded, failure
from duetime.domain.tasks.attempt_run import Run, has_unreported_error
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.expiry import expired, lock_wait
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.targets import Phase, outlives_workers
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.topologies.watchdog_times import deferred_until
from duetime.services.outcomes import attempt_metrics, outcome

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.attempts import StartGate
    from duetime.ports.runtime import Runtime
    from duetime.services.outcomes.outcome import OutcomeWriter, RollbackWriter
    from duetime.services.outcomes.traceback_recorder import TracebackRecorder
    from duetime.services.worker.attempt_lease import AttemptLease
    from duetime.services.worker.attempt_locks import AttemptLocks
    from duetime.services.worker.delivery_state import DeliveryState, Watch
    from duetime.services.worker.target_caller import TargetCaller


_STORE_PAUSE: Millis = 200
"""First pause before a write that the store did not answer is made again; it doubles."""


@dataclass(frozen=True, slots=True)
class AttemptPhases:
    """Takes claimed tasks through the phases of an attempt, and writes down how they ended.

    Attributes:
        start_gate: whether an operator, its handler or its schedule keeps a task from beginning.
    """

    outcome_writer: OutcomeWriter
    rollback_writer: RollbackWriter
    start_gate: StartGate
    caller: TargetCaller
    locks: AttemptLocks
    lease: AttemptLease
    traceback_recorder: TracebackRecorder
    runtime: Runtime

    def work(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> WriteResult:
        """Make one attempt at a task: prepare and run, and write down how it ended."""
        phases = self.caller.targets.phases(task)
        if _is_spent(task):
            return outcome.fail_claimed(self.outcome_writer, task, phases)
        self.lease.begin(delivery_state, task)
        self.runtime.clock.sleep_until(task.next_at)
        started = self.runtime.now()
        attempt_metrics.count_start(self.runtime.telemetry, task, started)
        ending = self._ending(delivery_state, task, phases, watch)
        delivery_state.ended = True
        if isinstance(ending, ConditionFailed):
            return ending
        if delivery_state.had_turn:
            # Which is when it starts: it was claimed before.
            started = delivery_state.started_at or started
        if is_job(task.target):
            # Few tasks are jobs: no other waits for the import.
            from duetime.domain.tasks.job_starts import unless_open  # noqa: PLC0415 - see the line above

            ending = unless_open(task, ending)
            if ending == Deferred():
                # Its job is looked for from now on.
                started = self.runtime.now()
        if isinstance(ending, Deferred):
            ending = self.keep_locks(delivery_state, task, deferred_until(task, started), ending)
        called = delivery_state.started_at is not None
        run = Run(task, started, self.runtime.now(), delivery_state.progress, delivery_state.arrival, called)
        self.runtime.telemetry.measure("duration", run.ended_at - run.started_at, type=task.type)
        return self.write(task, run, ending)

    def roll_back(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> WriteResult:
        """Make one attempt at a task's rollback, and write down how it ended."""
        if _is_spent(task):
            return self.rollback_writer.give_up(task)
        self.lease.begin(delivery_state, task)
        offers = Phase.ROLLBACK in self.caller.targets.phases(task)
        if not offers and task.rollback_on_failure and has_unreported_error(task):
            # Nobody asked for it in so many words, and whoever took the failure did not know what the target offers.
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
        return self.write(task, Run(task, started, self.runtime.now(), was_called=False), ending)

    def write(self, task: Task, run: Run, ending: Ending) -> WriteResult:
        """Write an end down, again and again while the lease lasts: what has been done is worth keeping.

        Raises:
            Unavailable: the store has not answered for a whole lease.
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
        """Have the target prepare and run, with the lease and the state checked before each phase."""
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
        """Have the target prepare; how the attempt ends if it cannot go on to run."""
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
        """Take the locks of a scope; how the attempt ends if one is not to be had."""
        held = self.locks.take(delivery_state, task, scope)
        return None if held is None else lock_wait(task, held, self.runtime.now())

    def keep_locks(self, delivery_state: DeliveryState, task: Task, until: Millis, deferred: Deferred) -> Ending:
        """Hold the locks until the target's deadline: before the lease is, so that they never end first.

        A job that may have begun is waited for even if somebody took its lock away: its next attempt would run beside
        it.
        """
        if self.locks.renew(delivery_state, task, until) or is_job(task.target):
            return deferred
        return failure("LockLost", "a lock was lost before the target's acceptance could be written down")


def _is_spent(task: Task) -> bool:
    """Whether a worker was lost in the last attempt that is allowed."""
    return task.attempt > task.retry.max_attempts and not outlives_workers(task.target)


def _requested(task: Task) -> Ending | None:
    """How an attempt ends whose user asks it to stop or to pause before its target is called."""
    match task.requested_action:
        case RequestedAction.CANCEL:
            return Stopped()
        case RequestedAction.PAUSE:
            return Yielded(None)
        case None:
            return None
