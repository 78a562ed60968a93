"""Leases due tasks to pull workers: receives messages, claims tasks, and settles the messages."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, cycle, repeat
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied
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
)
from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.limits import LEAST_LEASE_SHARE, MAX_LEASED_BYTES
from duetime.domain.operating_parameters import CLAIM_LEAD, LEASE_RETURN_MARGIN, MAX_HOLD
from duetime.domain.switches import limit_of, scope_of_limit
from duetime.domain.tasks.attempt_results import Expired, Postponed, Skipped, Stopped, Yielded, failure
from duetime.domain.tasks.attempt_run import Claimant, Run, expired, lock_wait
from duetime.domain.tasks.placeholders import filled_payload
from duetime.domain.tasks.pull_leases import LeaseKey
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import SECOND
from duetime.domain.topologies.inputs import InputsTooLarge
from duetime.domain.tracebacks import places_of
from duetime.ports.queues import Delivery, Outgoing
from duetime.services import task_telemetry
from duetime.services.content_retention import retain_paused
from duetime.services.enqueue import message_for
from duetime.services.outcomes import outcome
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.locks import LockClaim
    from duetime.domain.switches import SwitchScope
    from duetime.domain.tasks.pull_leases import LeaseRequest, Pullers
    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.times import Millis
    from duetime.ports.queues import PullQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.targets import InputReader, RateLimits, StartGate, SwitchRates
    from duetime.services.locking import LockManager
    from duetime.services.long_poll_limit import LongPolls
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.quotas.at_once import LeaseQuota

_LONGEST_POLL = 3
"""Seconds that a request waits at one queue, which is less than our client's response timeout. With several types, each
wait is shorter, so that an idle type does not delay the other types.
"""
_SLOW = SECOND // 2
"""If a claim takes longer than this, its message's visibility is extended."""
RUN_ONLY = frozenset({Phase.RUN})
"""Phases that pull workers offer."""


@frozen
class LeaseService:
    """Leases due tasks of pulled types, with the same claim that worker functions make."""

    queues: PullQueues
    claims: LeaseClaims
    messages: PullMessages
    pullers: Pullers
    long_polls: LongPolls
    quota: LeaseQuota | None
    runtime: Runtime

    def lease(self, caller: str, wanted: LeaseRequest) -> list[Leased]:
        """Lease due tasks; returns an empty list if no task becomes due during the wait.

        Raises:
            TypeNotPulled: the caller is not allowed to pull one of the requested types.
            QuotaExceeded: the caller already has as many leases, or waiting requests, as its quota allows.
            Unavailable: the store or the queue did not answer, and nothing was leased.
        """
        self.pullers.check(caller, wanted.types)
        if self.quota is not None:
            wanted = replace(wanted, max_tasks=self.quota.room(caller, wanted.max_tasks))
        leases: list[Leased] = []
        try:
            self._fill(caller, leases, wanted)
        except Unavailable as error:
            if not leases:
                raise
            # A leased task must reach its worker, or no worker gets it until its lease ends.
            self.runtime.telemetry.note("a queue could not be read", error=str(error))
        useful = self._with_time_left(leases, wanted.first)
        if self.quota is not None:
            self.quota.note(caller, [lease.task for lease in useful])
        return useful

    def _with_time_left(self, leases: Sequence[Leased], length: Millis) -> list[Leased]:
        """The leases with enough time left to be useful; tasks with other leases are put back.

        A worker must not start under a lease that is about to end, or that has ended and may belong to another worker.
        """
        now = self.runtime.now()
        useful = [lease for lease in leases if lease.left(now) * LEAST_LEASE_SHARE >= length]
        for lease in leases:
            if lease not in useful:
                self.runtime.telemetry.count("leases_too_late")
                self._put_back(lease, "a lease with time left")
        return useful

    def _fill(self, caller: str, leases: list[Leased], wanted: LeaseRequest) -> None:
        """Poll every type's queue once without waiting, beginning at a random type; then wait at each queue in turn."""
        first = self.runtime.random_source.below(len(wanted.types))
        types = (*wanted.types[first:], *wanted.types[:first])
        pause = max(1, _LONGEST_POLL // len(types))
        left = wanted.wait
        polls = chain(zip(types, repeat(0)), zip(cycle(types), repeat(pause)))
        with ExitStack() as places:
            for number, (pull_queue, longest) in enumerate(polls):
                # A queue waits for full seconds, so a wait of 0.9 seconds would be rounded down to zero.
                seconds = max(0, min(longest, round(left / SECOND)))
                if len(leases) >= wanted.max_tasks or (longest and (leases or not seconds)):
                    return
                if number == len(types) and not places.enter_context(self.long_polls.place(caller, left)):
                    return
                began = self.runtime.now()
                # Tasks that are already leased must not wait for tasks that are not due yet, because a lease could end
                # first.
                hold = 0 if leases else MAX_HOLD
                if not self._add(
                    leases, self._leased(pull_queue, wanted, wanted.max_tasks - len(leases), seconds, hold)
                ):
                    return
                left -= max(self.runtime.now() - began, seconds * SECOND)

    def _add(self, leases: list[Leased], more: Sequence[ClaimedDelivery]) -> bool:
        """Add leases while the response has room, and put back the rest; returns whether all leases fit."""
        room = MAX_LEASED_BYTES - sum(lease.size for lease in leases)
        fits = True
        for taken in more:
            if not isinstance(taken.end, Leased):
                continue
            room -= taken.end.size
            if leases and room < 0:
                fits = False
                self._put_back(taken.end, "an answer with room for it")
            else:
                leases.append(taken.end)
        return fits

    def _leased(
        self, pull_queue: str, wanted: LeaseRequest, most: int, seconds: int, hold: Millis
    ) -> list[ClaimedDelivery]:
        """Receive messages from one queue and claim due tasks; no task is handed out before its due time.

        Args:
            pull_queue: the pulled type.
            wanted: the worker's request.
            most: maximum number of tasks.
            seconds: how long to wait for a message.
            hold: how long to wait for the first task's due time.
        """
        away = -(-(wanted.first + LEASE_RETURN_MARGIN) // SECOND)
        deliveries = self.queues.receive(pull_queue, most, seconds, away)
        if not deliveries:
            return []
        received_at = self.runtime.now()
        first = min(delivery.message.due for delivery in deliveries)
        if first <= received_at + hold:
            self.runtime.clock.sleep_until(first - CLAIM_LEAD)
        now = self.runtime.now()
        ready = [each for each in deliveries if each.message.due <= now + CLAIM_LEAD]
        early = [each for each in deliveries if each not in ready]
        ends = self.runtime.executor.map(partial(self.claims.claim, wanted), ready)
        ends += [ClaimedDelivery(each, RedeliverMessage(each.message.due - SECOND, "not due")) for each in early]
        if self.runtime.now() > received_at + _SLOW:
            leased = [each for each in ends if isinstance(each.end, Leased)]
            self.messages.hide(leased)
        self.messages.settle(ends)
        for each in ends:
            if isinstance(each.end, Leased):
                # A task is claimed slightly early, so that the claim does not make it late, but it is not delivered
                # early.
                self.runtime.clock.sleep_until(each.end.task.next_at)
        return ends

    def _put_back(self, leased: Leased, reason: str) -> None:
        """Put back a leased task that was not delivered; the task then waits for the given reason."""
        try:
            end = self.claims.put_back(leased.task, reason)
        except Unavailable as error:
            self.runtime.telemetry.note("a lease could not be returned", error=str(error))
            return
        self.messages.settle([ClaimedDelivery(Delivery(message_for(leased.task), leased.key.receipt, ""), end)])


@frozen
class LeaseClaims:
    """Claims tasks with the same conditional write that the worker functions make."""

    stores: Stores
    queues: PullQueues
    outcome_writer: OutcomeWriter
    pull_locks: PullLocks
    input_reader: Callable[[], InputReader]
    switch_rates: SwitchRates
    rate_limits: Callable[[], RateLimits]
    runtime: Runtime

    def claim(self, wanted: LeaseRequest, delivery: Delivery) -> ClaimedDelivery:
        """Claim one task. This method never raises, because one defect must not affect the other leases."""
        try:
            return ClaimedDelivery(delivery, self._claimed(wanted, delivery))
        except Unavailable as error:
            return ClaimedDelivery(delivery, self._later(str(error)))
        except Exception as error:  # noqa: BLE001 - see above
            self.runtime.telemetry.count("worker_errors")
            self.runtime.telemetry.note("a task could not be leased", error=places_of(error), delivery=delivery.id)
            return ClaimedDelivery(delivery, RedeliverMessage(self.runtime.now() + wanted.first, type(error).__name__))

    def put_back(self, task: Task, reason: str) -> DeleteMessage | RedeliverMessage:
        """Put back a claimed task that was not leased; the task then waits for the given reason.

        Raises:
            Unavailable: the store did not answer.
        """
        return self._ended(self._postpone(task, Postponed(self.runtime.now(), reason)))

    def _claimed(self, wanted: LeaseRequest, delivery: Delivery) -> Leased | DeleteMessage | RedeliverMessage:
        claimant = Claimant(
            wanted.worker, self.runtime.now(), wanted.first, awaits_acknowledgement=True, stores_nonce=True
        )
        result = self.stores.tasks.apply(claimant.claim(delivery.message, self.runtime.nonce()))
        if not isinstance(result, Applied):
            refused = self._refused(result.task, delivery)
            if not isinstance(refused, TakeOver):
                return refused
            result = self.stores.tasks.apply(claimant.claim_unacknowledged(refused.task, self.runtime.nonce()))
            if not isinstance(result, Applied):
                return self._later("another worker took it over")
            self.runtime.telemetry.count("leases_unacknowledged")
        task = result.task
        task_telemetry.count_claim(self.runtime.telemetry, task, claimant.now)
        try:
            return self._begun(task, wanted, delivery)
        except Unavailable as error:
            # Nothing has started, so no attempt is counted.
            return self._ended(self._postpone(task, Postponed(self.runtime.now() + SECOND, str(error))))

    def _begun(self, task: Task, wanted: LeaseRequest, delivery: Delivery) -> Leased | DeleteMessage | RedeliverMessage:
        """Lease a claimed task, unless the task must not start."""
        now = self.runtime.now()
        if not task.pull_queue:
            # The message came from a timer for a change that was then rejected or reverted.
            return self._ended(self._postpone(task, Postponed(now, "its own target")))
        if task.attempt > task.retry.max_attempts:
            end = outcome.fail_claimed(self.outcome_writer, task, RUN_ONLY)
            self.pull_locks.lock_manager.release_reservation(task)
            return self._ended(end)
        if task.requested_action is not None:
            ending = Stopped() if task.requested_action is RequestedAction.CANCEL else Yielded(None)
            end = self.outcome_writer.finish(Run(task, now, now, was_called=False), ending, RUN_ONLY)
            self.pull_locks.lock_manager.release_reservation(task)
            return self._ended(end)
        if late := expired(task, now):
            return self._expired(task, late)
        taken = self.pull_locks.take(task, task.lease_expires_at or now)
        if isinstance(taken, Postponed | Skipped):
            stop = lock_wait(task, taken, self.runtime.now()) if isinstance(taken, Postponed) else taken
            return self._expired(task, stop) if isinstance(stop, Expired) else self._ended(self._postpone(task, stop))
        try:
            inputs = self.input_reader().inputs_of(task)
            payload = replace(task.payload, data=filled_payload(self._bytes(task, task.payload), task))
            checkpoint = None if task.checkpoint is None else self._bytes(task, task.checkpoint)
        except (InputsTooLarge, ContentExpired) as error:
            failed = failure(type(error).__name__, str(error), retriable=False)
            end = self.outcome_writer.finish(Run(task, now, now, was_called=False), failed, RUN_ONLY)
            self.pull_locks.give_back(task)
            return self._ended(end)
        if not_begun := self._not_begun(task):
            return not_begun
        self.outcome_writer.enqueuer.watch_long_run(task)
        task_telemetry.count_start(self.runtime.telemetry, task, now)
        key = LeaseKey(
            task_id=task.id,
            fence=task.fence,
            nonce=task.lease_nonce or "",
            pull_queue=delivery.message.pull_queue,
            length=wanted.length,
            receipt=delivery.receipt,
            limited_by=tuple(scope for claim in taken if (scope := scope_of_limit(claim.name)) is not None),
        )
        return Leased(key, replace(task, payload=payload), checkpoint, inputs)

    def _not_begun(self, task: Task) -> DeleteMessage | RedeliverMessage | None:
        """What to do with a message whose task is due but must not start now; `None` if the task may start."""
        if late := expired(task, self.runtime.now()):
            return self._expired(task, late)
        of_switches = self.switch_rates.rates(task)
        if (task.rate or of_switches) and (held := self.rate_limits().held(task, of_switches)):
            return self._ended(self._postpone(task, held))
        return None

    def _expired(self, task: Task, late: Expired) -> DeleteMessage | RedeliverMessage:
        end = self.outcome_writer.expire(task, late, RUN_ONLY)
        self.pull_locks.give_back(task)
        return self._ended(end)

    def _refused(self, task: Task | None, delivery: Delivery) -> DeleteMessage | RedeliverMessage | TakeOver:
        """What to do with a message whose claim was rejected; a task with steps to run goes to the worker functions."""
        retain_paused(self.stores.tasks, self.stores.contents, task)
        refusal = after_refusal(task, delivery.message, self.runtime.now())
        self.runtime.telemetry.count("claims_rejected", int(not isinstance(refusal, TakeOver)))
        match refusal:
            case FollowUp(left) | Undo(left) | CheckTopology(left) | CheckJob(left) | CheckDependencies(left):
                unsent = self.queues.send([Outgoing(message_for(left), 0)])
                return self._later("not sent") if unsent else DeleteMessage("left to the worker functions")
            case disposition:
                return disposition

    def _ended(self, end: WriteResult) -> DeleteMessage | RedeliverMessage:
        """What to do with a message whose task was not leased."""
        if not isinstance(end, Applied):
            return self._later("another worker took it over")
        if end.task.is_terminal and end.task.finished_at is None:
            self.outcome_writer.completion.close(end.task)
        return DeleteMessage("done")

    def _postpone(self, task: Task, held: Postponed | Skipped) -> WriteResult:
        end = (
            self.outcome_writer.skip(task, held)
            if isinstance(held, Skipped)
            else self.outcome_writer.postpone(task, held)
        )
        self.pull_locks.give_back(task, self.pull_locks.keep(end, task, held))
        return end

    def _later(self, reason: str) -> RedeliverMessage:
        return RedeliverMessage(self.runtime.now() + SECOND, reason)

    def _bytes(self, task: Task, content: Content) -> bytes:
        return self.stores.contents.fetch_or_link(task.id, content) if content.data is None else content.data


@frozen
class Leased:
    """A task that was handed out.

    Attributes:
        task: the claimed record, with its payload.
        checkpoint: checkpoint of a paused attempt, as JSON text in UTF-8.
        inputs: for a topology node, the results of those parents that the node names, as one JSON object in UTF-8.
    """

    key: LeaseKey
    task: Task
    checkpoint: bytes | None
    inputs: bytes | None = None

    @property
    def size(self) -> int:
        """Size of the task's contents in bytes."""
        return len(self.task.payload.data or b"") + len(self.checkpoint or b"") + len(self.inputs or b"")

    def left(self, now: Millis) -> Millis:
        """Remaining time of the lease in milliseconds; negative if it has ended."""
        return (self.task.lease_expires_at or 0) - now


@frozen
class ClaimedDelivery:
    """The result of one delivery: a lease, or what to do with the message."""

    delivery: Delivery
    end: Leased | DeleteMessage | RedeliverMessage


@frozen
class PullMessages:
    """Settles messages; an unsettled message returns when its current visibility timeout ends."""

    queues: PullQueues
    runtime: Runtime

    def settle(self, ends: Sequence[ClaimedDelivery]) -> None:
        """Delete finished messages, and set when messages to redeliver return."""
        try:
            self.queues.delete([each.delivery for each in ends if isinstance(each.end, DeleteMessage)])
        except Unavailable as error:
            self.runtime.telemetry.note("messages were not deleted", error=str(error))
        self.hide([each for each in ends if isinstance(each.end, RedeliverMessage)])

    def hide(self, ends: Sequence[ClaimedDelivery]) -> None:
        """Hide messages until their leases end, or until the time set for their redelivery."""
        now = self.runtime.now()
        seconds = [max(0, -(-(_returns_at(each.end) - now) // SECOND)) for each in ends]
        try:
            self.queues.come_back([each.delivery for each in ends], seconds)
        except Unavailable as error:
            # The messages return when their current visibility timeouts end.
            self.runtime.telemetry.note("visibility was not changed", error=str(error))


def _returns_at(end: Leased | DeleteMessage | RedeliverMessage) -> Millis:
    """When the message of a leased or postponed task returns."""
    match end:
        case Leased(task=task):
            return (task.lease_expires_at or 0) + LEASE_RETURN_MARGIN
        case RedeliverMessage(at=at):
            return at
        case DeleteMessage():
            return 0


@frozen
class PullLocks:
    """Takes, renews and releases all locks of a pull worker's attempt.

    No state is kept between calls, because a task is assumed to hold the locks that it needs. Only its places under
    switch limits are named in the lease key, because a limit may be deleted, or may be unknown to another process.

    Attributes:
        start_gate: decides whether an operator, the task's handler or its schedule keeps the task from starting.
    """

    lock_manager: LockManager
    start_gate: StartGate

    def take(self, task: Task, until: Millis) -> Postponed | Skipped | tuple[LockClaim, ...]:
        """Take all locks that a task needs, and hold them until the given time.

        Returns:
            The locks, if all of them were taken; otherwise the caller must postpone or skip the task as returned, and
            then call `give_back`.
        """
        if held := self.start_gate.held(task):
            return held
        claims = self.lock_manager.claims(task)
        for claim in claims:
            if held := self.lock_manager.take(task, claim):
                return held
        self._renew(task, claims, until)
        return claims

    def renew(self, task: Task, until: Millis) -> bool:
        """Extend all of a task's locks until the given time; returns whether the task still holds all of them."""
        return self._renew(task, self.lock_manager.claims(task), until)

    def _renew(self, task: Task, claims: Sequence[LockClaim], until: Millis) -> bool:
        return all(self.lock_manager.renew(task, claim, until) for claim in claims)

    def keep(self, end: WriteResult, task: Task, held: Postponed | Skipped) -> set[LockClaim]:
        """The locks that a postponed task keeps until its next check."""
        if not isinstance(held, Postponed):
            return set()
        return self.lock_manager.keep(end, task, held, self.lock_manager.claims(task))

    def give_back(
        self,
        task: Task,
        kept: Collection[LockClaim] = (),
        *,
        limited_by: Collection[SwitchScope] = (),
        closes_elsewhere: bool = False,
    ) -> None:
        """Release a task's locks, and hand them on.

        Args:
            task: the claimed record.
            kept: the locks that the task keeps.
            limited_by: the scopes of the switches under whose limits the task has a place.
            closes_elsewhere: whether another worker runs the steps after the outcome, and takes over the task's locks.
        """
        deleted = self._deleted_limits(task, limited_by)
        scopes = {LockScope.RUN} if closes_elsewhere else set(LockScope)
        for claim in (*self.lock_manager.claims(task, scopes), *deleted):
            if claim not in kept:
                self.lock_manager.give_back(task, claim)

    def _deleted_limits(self, task: Task, limited_by: Collection[SwitchScope]) -> list[LockClaim]:
        """The limits under which a task has a place, but which are no longer set."""
        places = [limit_of(scope, task) for scope in limited_by]
        if not self._unknown(task, places):
            return []
        # An unknown limit may be new instead of deleted. The caps are read again, because releasing a place lets
        # waiting tasks in, and this process must then know the limit.
        self.lock_manager.concurrency_caps.look_again()
        return self._unknown(task, places)

    def _unknown(self, task: Task, places: Sequence[LockClaim]) -> list[LockClaim]:
        known = {claim.name for claim in self.lock_manager.concurrency_caps.caps(task)} if places else set()
        return [place for place in places if place.name not in known]
