"""One delivery of a message: hold, claim, run, finish; and what becomes of the message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write, WriteResult
from duetime.domain.dispatch.acknowledgement import (
    CheckTopology,
    DeleteMessage,
    FollowUp,
    RedeliverMessage,
    Undo,
    after_refusal,
)
from duetime.domain.errors import ContentExpired, RecordUnreadable, Unavailable
from duetime.domain.limits import (
    CALLBACK_MARGIN,
    CLAIM_LEAD,
    FUNCTION_END_MARGIN,
    HEARTBEATS_PER_LEASE,
    LEASE_RETURN_MARGIN,
    MAX_DELAY,
    MAX_HOLD,
)
from duetime.domain.tasks.attempt_outcomes import (
    Claimant,
    Deferred,
    Ending,
    Failed,
    NotSent,
    Postponed,
    Run,
    Stopped,
    Succeeded,
    Yielded,
    failure,
    has_unreported_error,
)
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.tasks.task import LockScope, Phase, StopRequest
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.inputs import InputsTooLarge
from duetime.domain.topologies.watchdog_times import deferred_until
from duetime.ports.targets import Work
from duetime.services.content_retention import retain_paused

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.task import Content, Progress, Task
    from duetime.ports.attempts import InputReader, StartGate, TopologyChecker
    from duetime.ports.queues import Delivery
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.targets import TargetRunner
    from duetime.services.locks.locking import LockManager
    from duetime.services.outcomes.completion_steps import InlineCompletion
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.outcomes.rollback import RollbackWriter
    from duetime.services.worker.handler_availability import HandlerAvailability

_STORE_PAUSE: Millis = 200
"""First pause before a write that the store did not answer is made again; it doubles."""


@dataclass(slots=True)
class DeliveryState:
    """What one delivery is at, shared between the thread that works on it and the one that watches over it.

    Each field has one writer at a time, and a reader that sees it a moment late does no harm: every write to the
    record is fenced.

    Attributes:
        task: the record as it was claimed; `None` before the claim and after the end.
        started_at: when the target was called first in this attempt: its time is for all phases. What follows the
            outcome has a time of its own.
        ended: the target has returned; its end is being written down.
        stop_request: what the user asks of the attempt, as of the last heartbeat.
        progress: what the target told last, written with the next heartbeat.
        renew_at: when its lease must be renewed.
        leased_until: when its lease is over, as far as its own writes were answered.
        locks: what the attempt holds besides its lease.
        disposition: what becomes of the message; `None` while that is open.
    """

    delivery: Delivery
    task: Task | None = None
    started_at: Millis | None = None
    ended: bool = False
    stop_request: StopRequest | None = None
    progress: Progress | None = None
    renew_at: Millis = 0
    leased_until: Millis = 0
    locks: tuple[LockClaim, ...] = ()
    disposition: DeleteMessage | RedeliverMessage | None = None

    def overdue_at(self) -> Millis | None:
        """When its target must have ended, if it runs."""
        task, started = self.task, self.started_at
        if task is None or started is None or self.ended:
            return None
        room = CALLBACK_MARGIN if task.is_terminal and task.callback_url else 0
        return started + task.timeout_seconds * SECOND + room


@dataclass(frozen=True, slots=True)
class Watch:
    """What the thread that watches over a batch offers to the one that works on a delivery.

    Attributes:
        holder: who works, for the attempt history.
        ends_at: when Lambda ends the function, whatever it does then.
        is_closing_time: whether nothing new may be claimed any more.
        beat: renews the lease at once, when the target asks for it.
    """

    holder: str
    ends_at: Millis
    is_closing_time: Callable[[], bool]
    beat: Callable[[], None]


@dataclass(frozen=True, slots=True)
class AttemptRunner:
    """Takes deliveries through their attempts.

    Attributes:
        lease: length of a lease, in milliseconds.
        start_gate: whether an operator, its handler or its schedule keeps a task from beginning.
        handler_availability: whether the handler that a task needs can be called just now.
    """

    stores: Stores
    targets: TargetRunner
    outcome_writer: OutcomeWriter
    rollback_writer: RollbackWriter
    completion: InlineCompletion
    lock_manager: LockManager
    runtime: Runtime
    lease: Millis
    start_gate: StartGate
    handler_availability: HandlerAvailability
    input_reader: InputReader
    topology_checker: TopologyChecker

    def attempt(self, delivery_state: DeliveryState, watch: Watch) -> None:
        """Work on one delivery until the disposition of its message is decided. Never raises."""
        try:
            delivery_state.disposition = self._disposition(delivery_state, watch)
        except Unavailable as error:
            delivery_state.disposition = self._later(str(error))
        except RecordUnreadable as error:
            # Another version of the code may read it. Seldom looked at, its message outlasts a deployment or two.
            self.runtime.telemetry.count("unreadable")
            self.runtime.telemetry.note(
                "a record cannot be read", error=str(error), delivery=delivery_state.delivery.id
            )
            delivery_state.disposition = RedeliverMessage(self.runtime.now() + MAX_DELAY, str(error))
        except Exception as error:  # noqa: BLE001 - one delivery's defect must not take its batch with it
            self.runtime.telemetry.count("worker_defects")
            self.runtime.telemetry.note(
                "a delivery could not be worked on", error=repr(error), delivery=delivery_state.delivery.id
            )
            delivery_state.disposition = self._later(repr(error))
        finally:
            delivery_state.task = None

    def finish_overdue(self, delivery_state: DeliveryState, lingers_until: Millis) -> None:
        """Write down that a target has not ended in time.

        Args:
            delivery_state: what it works on.
            lingers_until: its process must have been ended by then; nothing of the task begins before.
        """
        task, started = delivery_state.task, delivery_state.started_at
        if task is None or started is None:
            return
        if task.is_terminal:
            # It hangs in cleaning up: the outcome stands, and cleaning up is given up.
            self.completion.finish(task)
            delivery_state.disposition = DeleteMessage("overdue")
            return
        ending = replace(_timeout(task), lingers_until=lingers_until)
        end = self._written(task, Run(task, started, self.runtime.now()), ending)
        delivery_state.disposition = self._decided(delivery_state, end)
        if isinstance(end, Applied) and end.task.is_terminal:
            delivery_state.disposition = RedeliverMessage(
                lingers_until + LEASE_RETURN_MARGIN, "its process is still ending"
            )

    def _disposition(self, delivery_state: DeliveryState, watch: Watch) -> DeleteMessage | RedeliverMessage:
        message = delivery_state.delivery.message
        if message.due - self.runtime.now() > MAX_HOLD:
            return RedeliverMessage(message.due - SECOND, "not due")
        self.runtime.clock.sleep_until(message.due - CLAIM_LEAD)
        if watch.is_closing_time():
            return self._later("the worker is ending")
        result = self.stores.tasks.apply(self._claimant(watch).claim(message, self.runtime.nonce()))
        if isinstance(result, Applied):
            return self._through(delivery_state, result.task, watch)
        taken = self._take_over(delivery_state, result.task, watch)
        return self._through(delivery_state, taken.task, watch) if isinstance(taken, Applied) else taken

    def _take_over(
        self, delivery_state: DeliveryState, task: Task | None, watch: Watch
    ) -> Applied | DeleteMessage | RedeliverMessage:
        """After a refused claim: the rest of an attempt that another worker left, or the disposition of the message."""
        self.runtime.telemetry.count("refused")
        retain_paused(self.stores.tasks, self.stores.contents, task)
        disposition = after_refusal(task, delivery_state.delivery.message, self.runtime.now())
        match disposition:
            case FollowUp(left):
                result = self.stores.tasks.apply(self._claimant(watch).claim_follow_up(left, self.runtime.nonce()))
            case Undo(left):
                result = self.stores.tasks.apply(self._claimant(watch).claim_rollback(left, self.runtime.nonce()))
            case CheckTopology(running):
                self.topology_checker.check_topology(running)
                return DeleteMessage("looked after")
            case _:
                return disposition
        return result if isinstance(result, Applied) else self._later("somebody else took it over")

    def _through(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> DeleteMessage | RedeliverMessage:
        """Take a claimed task through what is left of it."""
        if task.is_terminal:
            end: WriteResult = Applied(task)
        elif task.state is State.ROLLING_BACK:
            end = self._roll_back(delivery_state, task, watch)
        else:
            end = self._work(delivery_state, task, watch)
        self._unlock(delivery_state, task, end, LockScope.RUN)
        if isinstance(end, Applied) and end.task.is_terminal and end.task.finished_at is None:
            has_time = end.task is task or self._has_time_to_close(end.task, watch)
            later = Postponed(self.runtime.now(), "a function with time left")
            closed = self._close(delivery_state, end.task) if has_time else later
            if isinstance(closed, Postponed):
                return self._close_later(delivery_state, end.task, closed)
            end = closed or end
        self._unlock(delivery_state, task, end, LockScope.TASK)
        return self._decided(delivery_state, end)

    def _close(self, delivery_state: DeliveryState, task: Task) -> ConditionFailed | Postponed | None:
        """Do what follows an outcome, unless its lock is not to be had, or the lease is another's by now."""
        self._begin(delivery_state, task)
        # Of an attempt that another worker began, or that never came to its lock: taken now.
        cleans = Phase.CLEAN in self.targets.phases(task)
        has_begun = task.started_at is not None
        if cleans and has_begun and (held := self.handler_availability.held(task)):
            return held
        if cleans and (held := self._lock(delivery_state, task, LockScope.TASK)):
            return held
        if ended := self._ended_unnoticed(delivery_state, task):
            return ended
        self.completion.close(task)
        delivery_state.ended = True
        return None

    def _work(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> WriteResult:
        phases = self.targets.phases(task)
        if task.attempt > task.retry.max_attempts:
            return self.outcome_writer.give_up(task, phases)
        self._begin(delivery_state, task)
        self.runtime.clock.sleep_until(task.next_at)
        started = self.runtime.now()
        self.runtime.telemetry.measure("lateness", max(0, started - task.next_at))
        ending = self._ending(delivery_state, task, phases, watch)
        delivery_state.ended = True
        if isinstance(ending, ConditionFailed):
            return ending
        if isinstance(ending, Deferred):
            ending = self._keep_locks(delivery_state, task, deferred_until(task, started))
        run = Run(task, started, self.runtime.now(), delivery_state.progress)
        self.runtime.telemetry.measure("duration", run.ended_at - run.started_at)
        return self._written(task, run, ending)

    def _ending(
        self, delivery_state: DeliveryState, task: Task, phases: frozenset[Phase], watch: Watch
    ) -> Ending | ConditionFailed:
        """Have the target prepare and run, with the lease and the state checked before each phase."""
        if requested := _requested(task):
            return requested
        if held := self.start_gate.held(task) or self._lock(delivery_state, task, LockScope.TASK):
            return held
        ended = (
            self._prepare(delivery_state, task, watch)
            if Phase.PREPARE in phases
            else self._lock(delivery_state, task, LockScope.RUN)
        )
        return ended or self._call(delivery_state, task, Phase.RUN, watch)

    def _prepare(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> Ending | ConditionFailed | None:
        """Have the target prepare; how the attempt ends if it cannot go on to run."""
        step = self._step(task, Move.PREPARE)
        if isinstance(step, ConditionFailed):
            return step
        prepared = self._call(delivery_state, task, Phase.PREPARE, watch)
        if not isinstance(prepared, Succeeded):
            return prepared
        if held := self._lock(delivery_state, task, LockScope.RUN):
            return held
        step = self._step(task, Move.BEGIN)
        return step if isinstance(step, ConditionFailed) else _requested(step.task)

    def _roll_back(self, delivery_state: DeliveryState, task: Task, watch: Watch) -> WriteResult:
        if task.attempt > task.retry.max_attempts:
            return self.rollback_writer.give_up(task)
        self._begin(delivery_state, task)
        offers = Phase.ROLLBACK in self.targets.phases(task)
        if not offers and task.rollback and has_unreported_error(task):
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
            ending = held or self._call(delivery_state, task, Phase.ROLLBACK, watch)
        delivery_state.ended = True
        if isinstance(ending, ConditionFailed):
            return ending
        return self._written(task, Run(task, started, self.runtime.now()), ending)

    def _lock(self, delivery_state: DeliveryState, task: Task, scope: LockScope) -> Postponed | None:
        """Take the locks of a scope; if one is not to be had, what was taken is given back after the attempt."""
        for claim in self.lock_manager.claims(task, {scope}):
            if claim in delivery_state.locks:
                continue
            if held := self.lock_manager.take(task, claim):
                return held
            delivery_state.locks = (*delivery_state.locks, claim)
        return None

    def _has_time_to_close(self, task: Task, watch: Watch) -> bool:
        """Whether what follows an outcome can be done before the function ends; a fresh one has time enough."""
        seconds = task.timeout_seconds if Phase.CLEAN in self.targets.phases(task) else 0
        return self.runtime.now() + seconds * SECOND + CALLBACK_MARGIN + FUNCTION_END_MARGIN <= watch.ends_at

    def _close_later(self, delivery_state: DeliveryState, task: Task, held: Postponed) -> RedeliverMessage:
        """Let go of what follows an outcome until its lock is to be had: no lease is kept meanwhile."""
        delivery_state.ended = True
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence), {"lease_ends_at": None})
        end = self.stores.tasks.apply(write)
        self._unlock(delivery_state, task, end, LockScope.TASK)
        return RedeliverMessage(held.until, held.reason)

    def _keep_locks(self, delivery_state: DeliveryState, task: Task, until: Millis) -> Ending:
        """Hold the locks until the target's deadline: before the lease is, so that they never end first."""
        if self.renew_locks(delivery_state, task, until):
            return Deferred()
        return failure("LockLost", "a lock was lost before the target's acceptance could be written down")

    def _unlock(self, delivery_state: DeliveryState, task: Task, end: WriteResult, scope: LockScope) -> None:
        """Give back what was taken, and hand on what was not to be had, unless the target still works."""
        if isinstance(end, Applied) and end.task.state is State.RUNNING:
            return
        claims = {claim for claim in delivery_state.locks if claim.scope is scope}
        delivery_state.locks = tuple(claim for claim in delivery_state.locks if claim not in claims)
        # What has waited may have been let in to a lock that it did not come to.
        may_wait = task.waits_for is not None or (isinstance(end, Applied) and end.task.waits_for is not None)
        if isinstance(end, Applied) and (may_wait or end.task.is_terminal):
            claims.update(self.lock_manager.claims(task, {scope}))
        for claim in sorted(claims, key=lambda claim: claim.name):
            self.lock_manager.give_back(task, claim)

    def _call(self, delivery_state: DeliveryState, task: Task, phase: Phase, watch: Watch) -> Ending | ConditionFailed:
        """Have the target do one phase, in what the phases before it have left of the task's timeout.

        Not if the lease is another's by now.
        """

        def report(progress: Progress | None) -> None:
            if progress is None:
                watch.beat()
            else:
                delivery_state.progress = progress

        try:
            inputs = self.input_reader.inputs_of(task) if task.node_ref is not None else None
            payload = self._bytes(task, task.payload)
            checkpoint = None if task.checkpoint is None else self._bytes(task, task.checkpoint)
        except (InputsTooLarge, ContentExpired) as error:
            return failure(type(error).__name__, str(error), retriable=False)
        if ended := self._ended_unnoticed(delivery_state, task):
            return ended
        now = self.runtime.now()
        if delivery_state.started_at is None:
            delivery_state.started_at = now
        deadline = delivery_state.started_at + task.timeout_seconds * SECOND
        if now >= deadline:
            return _timeout(task)
        ending = self.targets.run(
            Work(
                phase=phase,
                task=task,
                payload=payload,
                checkpoint=checkpoint,
                deadline=deadline,
                seconds=(deadline - now) / SECOND,
                report=report,
                stop_request=lambda: delivery_state.stop_request,
                inputs=inputs,
            )
        )
        if isinstance(ending, NotSent):
            self.runtime.telemetry.count("calls_not_sent")
            return ending.postponed(task, self.runtime.now(), self.runtime.random_source.fraction())
        return ending

    def _ended_unnoticed(self, delivery_state: DeliveryState, task: Task) -> ConditionFailed | Postponed | None:
        """Why the target must not be called: the lease ended while this process stood still, or nobody renewed it.

        A lease that is over is asked for once more, by the clock of this moment: if nobody has taken the task over,
        the attempt goes on under it.
        """
        now = self.runtime.now()
        if now < delivery_state.leased_until:
            return None
        until = now + self.lease
        guard = Guard(fence=task.fence, leased_until_before=until)
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), guard, {"lease_ends_at": until})
        result = self.stores.tasks.apply(write)
        if isinstance(result, ConditionFailed):
            return result
        if not self.renew_locks(delivery_state, task, until):
            return Postponed(now + SECOND, "a lock that it lost")
        delivery_state.leased_until = until
        return None

    def _step(self, task: Task, move: Move) -> WriteResult:
        """Move on to the next phase, if the lease is still this attempt's."""
        result = self.stores.tasks.apply(Write(task.id, move, self.runtime.nonce(), Guard(fence=task.fence)))
        stored = result.task
        if stored is not None and stored.fence == task.fence and stored.state is LEGAL[move].to:
            # Nobody else moves it on under this fence: it was sent twice, and the nonce is a later write's by now.
            return Applied(stored)
        return result

    def _begin(self, delivery_state: DeliveryState, task: Task) -> None:
        if delivery_state.task is None:
            # What follows the outcome goes on under the same lease, which is renewed when it was to be.
            delivery_state.renew_at = self.runtime.now() + self.lease // HEARTBEATS_PER_LEASE
            delivery_state.leased_until = task.lease_ends_at or 0
        delivery_state.started_at = self.runtime.now() if task.is_terminal else None
        delivery_state.ended = False
        delivery_state.task = task

    def renew_locks(self, delivery_state: DeliveryState, task: Task, until: Millis) -> bool:
        """Let what the attempt holds last until then; says whether it still holds it all."""
        # What is given back meanwhile is refused, and is no loss.
        return all(
            self.lock_manager.renew(task, claim, until) or claim not in delivery_state.locks
            for claim in delivery_state.locks
        )

    def _claimant(self, watch: Watch) -> Claimant:
        return Claimant(watch.holder, self.runtime.now(), self.lease)

    def _written(self, task: Task, run: Run, ending: Ending) -> WriteResult:
        """Write an end down, again and again while the lease lasts: what has been done is worth keeping.

        Raises:
            Unavailable: the store has not answered for a whole lease.
        """
        pause = _STORE_PAUSE
        until = self.runtime.now() + self.lease
        while True:
            try:
                if task.state is State.ROLLING_BACK:
                    return self.rollback_writer.finish(run, ending)
                return self.outcome_writer.finish(run, ending, self.targets.phases(task))
            except Unavailable:
                if self.runtime.now() + pause >= until:
                    raise
                self.runtime.clock.sleep_until(self.runtime.now() + pause)
                pause *= 2

    def _decided(self, delivery_state: DeliveryState, end: WriteResult) -> DeleteMessage | RedeliverMessage:
        """The message's disposition after the last write of an attempt."""
        if isinstance(end, Applied):
            return DeleteMessage("done")
        self.runtime.telemetry.count("refused")
        disposition = after_refusal(end.task, delivery_state.delivery.message, self.runtime.now())
        return (
            disposition
            if isinstance(disposition, DeleteMessage | RedeliverMessage)
            else self._later("somebody else took it over")
        )

    def _bytes(self, task: Task, content: Content) -> bytes:
        return self.stores.contents.fetch(task.id, content) if content.data is None else content.data

    def _later(self, reason: str) -> RedeliverMessage:
        return RedeliverMessage(self.runtime.now() + SECOND, reason)


def _timeout(task: Task) -> Failed:
    """The end of an attempt that took longer than it may."""
    return failure("Timeout", f"the target did not end within {task.timeout_seconds} s")


def _requested(task: Task) -> Ending | None:
    """How an attempt ends whose user asks it to stop or to pause before its target is called."""
    match task.stop_request:
        case StopRequest.CANCEL:
            return Stopped()
        case StopRequest.PAUSE:
            return Yielded(None)
        case None:
            return None
