"""Handing out due tasks to pull workers: receive, claim, and what happens to each message."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, cycle, repeat
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied
from duetime.domain.dispatch.acknowledgement import (
    CheckTopology,
    DeleteMessage,
    FollowUp,
    RedeliverMessage,
    Undo,
    after_refusal,
)
from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.limits import CLAIM_LEAD, LEASE_RETURN_MARGIN, LEAST_LEASE_SHARE, MAX_HOLD, MAX_LEASED_BYTES
from duetime.domain.tasks.attempt_outcomes import Claimant, Run
from duetime.domain.tasks.attempt_results import Postponed, Skipped, Stopped, Yielded, failure
from duetime.domain.tasks.pull_leases import LeaseKey
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND
from duetime.domain.topologies.inputs import InputsTooLarge
from duetime.ports.queues import Delivery, Outgoing
from duetime.services.content_retention import retain_paused
from duetime.services.enqueue import message_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.content import Content
    from duetime.domain.tasks.pull_leases import LeaseRequest, Pullers
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.attempts import InputReader
    from duetime.ports.queues import PullQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.long_poll_limit import LongPolls
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.pull.locks import PullLocks

RUN_ONLY = frozenset({Phase.RUN})
"""What pull workers offer."""
_LONGEST_POLL = 3
"""Seconds that one request waits at a queue: less than a client of ours waits for its answer. With several types it
is less, so that none waits for the others' silence."""
_SLOW = SECOND // 2
"""A claim that took longer has its message kept away for longer too."""


@dataclass(frozen=True, slots=True)
class Leased:
    """A task that was handed out.

    Attributes:
        task: the record as it was claimed, with its payload.
        checkpoint: what a paused attempt left; JSON text in UTF-8.
        inputs: of a topology's node, the results of its parents that it asked for: one JSON object in UTF-8.
    """

    key: LeaseKey
    task: Task
    checkpoint: bytes | None
    inputs: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of its contents."""
        return len(self.task.payload.data or b"") + len(self.checkpoint or b"") + len(self.inputs or b"")

    def left(self, now: Millis) -> Millis:
        """How much of the lease is left; less than nothing if it is over."""
        return (self.task.lease_expires_at or 0) - now


@dataclass(frozen=True, slots=True)
class _Taken:
    """What happened to one delivery: a lease, or the message's disposition."""

    delivery: Delivery
    end: Leased | DeleteMessage | RedeliverMessage


@dataclass(frozen=True, slots=True)
class LeaseService:
    """Leases the due tasks of pulled types, each by the same claim that the worker functions make."""

    stores: Stores
    queues: PullQueues
    outcome_writer: OutcomeWriter
    pull_locks: PullLocks
    pullers: Pullers
    runtime: Runtime
    long_polls: LongPolls
    input_reader: InputReader

    def lease(self, caller: str, wanted: LeaseRequest) -> list[Leased]:
        """Lease tasks that are due; none, if none became due while it waited.

        Raises:
            TypeNotPulled: the caller may not pull one of the types.
            Unavailable: store or queue did not answer, and nothing was leased.
        """
        self.pullers.check(caller, wanted.types)
        leases: list[Leased] = []
        try:
            self._fill(leases, wanted)
        except Unavailable as error:
            if not leases:
                raise
            # What was leased must reach its worker, or it is lost until the leases end.
            self.runtime.telemetry.note("a queue could not be asked", error=str(error))
        return self._with_time_left(leases)

    def _with_time_left(self, leases: Sequence[Leased]) -> list[Leased]:
        """The leases that are of use to a worker; those that went by meanwhile are returned.

        Whatever was slow since their claims, a worker must not begin under a lease that is all but over, or is over
        and somebody else's by now.
        """
        now = self.runtime.now()
        useful = [lease for lease in leases if lease.left(now) * LEAST_LEASE_SHARE >= lease.key.length]
        for lease in leases:
            if lease not in useful:
                self.runtime.telemetry.count("leases_too_late")
                self._put_back(lease, "a lease with time left")
        return useful

    def _fill(self, leases: list[Leased], wanted: LeaseRequest) -> None:
        """Ask every type once without waiting, each request another one first; then wait at each in turn."""
        first = self.runtime.random_source.below(len(wanted.types))
        types = (*wanted.types[first:], *wanted.types[:first])
        pause = max(1, _LONGEST_POLL // len(types))
        left = wanted.wait
        requested_action = chain(zip(types, repeat(0)), zip(cycle(types), repeat(pause)))
        with ExitStack() as outcome_waiter:
            for number, (pull_queue, longest) in enumerate(requested_action):
                seconds = max(0, min(longest, left // SECOND))
                if len(leases) >= wanted.most or (longest and (leases or not seconds)):
                    return
                if number == len(types) and not outcome_waiter.enter_context(self.long_polls.place(left)):
                    return
                began = self.runtime.now()
                # What is leased already must not wait for what is not due: together it could outlast a lease.
                hold = 0 if leases else MAX_HOLD
                if not self._add(leases, self._leased(pull_queue, wanted, wanted.most - len(leases), seconds, hold)):
                    return
                left -= max(self.runtime.now() - began, seconds * SECOND)

    def _add(self, leases: list[Leased], more: Sequence[_Taken]) -> bool:
        """Add what an answer has room for, and put the rest back; says whether there is room for more."""
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

    def _leased(self, pull_queue: str, wanted: LeaseRequest, most: int, seconds: int, hold: Millis) -> list[_Taken]:
        """Receive from one queue and claim what is due; nothing of it is handed out before its time.

        Args:
            pull_queue: the pulled type.
            wanted: what the worker asks for.
            most: tasks at the most.
            seconds: how long to wait for a message.
            hold: how long to wait for the due time of the first of them.
        """
        away = -(-(wanted.length + LEASE_RETURN_MARGIN) // SECOND)
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
        ends = self.runtime.executor.map(partial(self._take_up, wanted), ready)
        ends += [_Taken(each, RedeliverMessage(each.message.due - SECOND, "not due")) for each in early]
        if self.runtime.now() > received_at + _SLOW:
            leased = [each for each in ends if isinstance(each.end, Leased)]
            self._come_back([each.delivery for each in leased], [_returns_at(each.end) for each in leased])
        self._settle(ends)
        for each in ends:
            if isinstance(each.end, Leased):
                # Claimed a moment before, so that the claim's own time makes nothing late; handed out no earlier.
                self.runtime.clock.sleep_until(each.end.task.next_at)
        return ends

    def _take_up(self, wanted: LeaseRequest, delivery: Delivery) -> _Taken:
        """Claim one task. Never raises: one defect must not take the other leases with it."""
        try:
            return _Taken(delivery, self._claimed(wanted, delivery))
        except Unavailable as error:
            return _Taken(delivery, self._later(str(error)))
        except Exception as error:  # noqa: BLE001 - see above
            self.runtime.telemetry.count("worker_defects")
            self.runtime.telemetry.note("a task could not be leased", error=repr(error), delivery=delivery.id)
            return _Taken(delivery, RedeliverMessage(self.runtime.now() + wanted.length, repr(error)))

    def _claimed(self, wanted: LeaseRequest, delivery: Delivery) -> Leased | DeleteMessage | RedeliverMessage:
        claimant = Claimant(wanted.worker, self.runtime.now(), wanted.length)
        result = self.stores.tasks.apply(claimant.claim(delivery.message, self.runtime.nonce()))
        if not isinstance(result, Applied):
            return self._refused(result.task, delivery)
        task = result.task
        try:
            return self._begun(task, wanted, delivery)
        except Unavailable as error:
            # It has begun nothing: another try costs it no attempt.
            return self._ended(self._postpone(task, Postponed(self.runtime.now() + SECOND, str(error))))

    def _begun(self, task: Task, wanted: LeaseRequest, delivery: Delivery) -> Leased | DeleteMessage | RedeliverMessage:
        """Hand a claimed task out, unless it must not begin."""
        now = self.runtime.now()
        if not task.pull_queue:
            # The timer of a change that was rejected, or made undone, brought its message here.
            return self._ended(self._postpone(task, Postponed(now, "its own target")))
        if task.attempt > task.retry.max_attempts:
            end = self.outcome_writer.give_up(task, RUN_ONLY)
            self.pull_locks.lock_manager.release_reservation(task)
            return self._ended(end)
        if task.requested_action is not None:
            ending = Stopped() if task.requested_action is RequestedAction.CANCEL else Yielded(None)
            end = self.outcome_writer.finish(Run(task, now, now), ending, RUN_ONLY)
            self.pull_locks.lock_manager.release_reservation(task)
            return self._ended(end)
        if held := self.pull_locks.take(task, task.lease_expires_at or now):
            return self._ended(self._postpone(task, held))
        try:
            inputs = self.input_reader.inputs_of(task)
            payload = replace(task.payload, data=self._bytes(task, task.payload))
            checkpoint = None if task.checkpoint is None else self._bytes(task, task.checkpoint)
        except (InputsTooLarge, ContentExpired) as error:
            failed = failure(type(error).__name__, str(error), retriable=False)
            end = self.outcome_writer.finish(Run(task, now, now), failed, RUN_ONLY)
            self.pull_locks.give_back(task)
            return self._ended(end)
        self.runtime.telemetry.measure("lateness", max(0, now - task.next_at))
        key = LeaseKey(task.id, task.fence, delivery.message.pull_queue, wanted.length, delivery.receipt)
        return Leased(key, replace(task, payload=payload), checkpoint, inputs)

    def _refused(self, task: Task | None, delivery: Delivery) -> DeleteMessage | RedeliverMessage:
        """What happens to a message whose claim was rejected; what follows an outcome is the worker functions'."""
        self.runtime.telemetry.count("refused")
        retain_paused(self.stores.tasks, self.stores.contents, task)
        match after_refusal(task, delivery.message, self.runtime.now()):
            case FollowUp(left) | Undo(left) | CheckTopology(left):
                unsent = self.queues.send([Outgoing(message_for(left), 0)])
                return self._later("not sent") if unsent else DeleteMessage("left to the worker functions")
            case disposition:
                return disposition

    def _ended(self, end: WriteResult) -> DeleteMessage | RedeliverMessage:
        """The disposition of a message whose task was not handed out."""
        if not isinstance(end, Applied):
            return self._later("somebody else took it over")
        if end.task.is_terminal and end.task.finished_at is None:
            self.outcome_writer.completion.close(end.task)
        return DeleteMessage("done")

    def _put_back(self, leased: Leased, reason: str) -> None:
        """Take back a lease that was not handed out; the task waits for what the reason says."""
        try:
            end = self._ended(self._postpone(leased.task, Postponed(self.runtime.now(), reason)))
        except Unavailable as error:
            self.runtime.telemetry.note("a lease could not be taken back", error=str(error))
            return
        self._settle([_Taken(Delivery(message_for(leased.task), leased.key.receipt, ""), end)])

    def _postpone(self, task: Task, held: Postponed | Skipped) -> WriteResult:
        end = (
            self.outcome_writer.skip(task, held)
            if isinstance(held, Skipped)
            else self.outcome_writer.postpone(task, held)
        )
        self.pull_locks.give_back(task)
        return end

    def _settle(self, ends: Sequence[_Taken]) -> None:
        """Delete the messages that are done with, and set when the others come back."""
        try:
            self.queues.delete([each.delivery for each in ends if isinstance(each.end, DeleteMessage)])
        except Unavailable as error:
            self.runtime.telemetry.note("messages were not deleted", error=str(error))
        back = [each for each in ends if isinstance(each.end, RedeliverMessage)]
        self._come_back([each.delivery for each in back], [_returns_at(each.end) for each in back])

    def _come_back(self, deliveries: Sequence[Delivery], times: Sequence[Millis]) -> None:
        now = self.runtime.now()
        try:
            self.queues.come_back(deliveries, [max(0, -(-(at - now) // SECOND)) for at in times])
        except Unavailable as error:
            # They come back at the visibility they have.
            self.runtime.telemetry.note("visibility was not changed", error=str(error))

    def _later(self, reason: str) -> RedeliverMessage:
        return RedeliverMessage(self.runtime.now() + SECOND, reason)

    def _bytes(self, task: Task, content: Content) -> bytes:
        return self.stores.contents.fetch(task.id, content) if content.data is None else content.data


def _returns_at(end: Leased | DeleteMessage | RedeliverMessage) -> Millis:
    """When a message comes back whose task is leased, or whose disposition is to come back."""
    match end:
        case Leased(task=task):
            return (task.lease_expires_at or 0) + LEASE_RETURN_MARGIN
        case RedeliverMessage(at=at):
            return at
        case DeleteMessage():
            return 0
