"""Leases due tasks to pull workers: receives messages, claims tasks, and settles the messages."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, cycle, repeat
from typing import TYPE_CHECKING

from duetime.domain.dispatch.message_deletion import RedeliverMessage
from duetime.domain.errors import Unavailable
from duetime.domain.limits import LEAST_LEASE_SHARE, MAX_LEASED_BYTES
from duetime.domain.operating_parameters import CLAIM_LEAD, LEASE_RETURN_MARGIN, MAX_HOLD
from duetime.domain.times import SECOND
from duetime.ports.queues import Delivery
from duetime.services.enqueue import message_for
from duetime.services.pull.claims import ClaimedDelivery, Leased
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.pull_leases import LeaseRequest, Pullers
    from duetime.domain.times import Millis
    from duetime.ports.queues import PullQueues
    from duetime.ports.runtime import Runtime
    from duetime.services.long_poll_limit import LongPolls
    from duetime.services.pull.claims import LeaseClaims, PullMessages
    from duetime.services.quotas.at_once import LeaseQuota

_LONGEST_POLL = 3
"""Seconds that one request waits at a queue, which is less than our client's response timeout. With several types the
wait is shorter, so that one idle type does not delay the others.
"""
_SLOW = SECOND // 2
"""If a claim takes longer than this, its message's visibility is extended."""


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
        """Lease due tasks; returns none if none becomes due during the wait.

        Raises:
            TypeNotPulled: the caller is not allowed to pull one of the types.
            QuotaExceeded: the caller has as many leases, or waiting requests, as it may.
            Unavailable: store or queue did not answer, and nothing was leased.
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
            # A leased task must reach its worker, or it is lost until its lease ends.
            self.runtime.telemetry.note("a queue could not be read", error=str(error))
        useful = self._with_time_left(leases, wanted.first)
        if self.quota is not None:
            self.quota.note(caller, [lease.task for lease in useful])
        return useful

    def _with_time_left(self, leases: Sequence[Leased], length: Millis) -> list[Leased]:
        """The leases with enough time left to be useful; the others are returned.

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
        """Ask every type once without waiting, starting with another one in each request; then wait at each in turn."""
        first = self.runtime.random_source.below(len(wanted.types))
        types = (*wanted.types[first:], *wanted.types[:first])
        pause = max(1, _LONGEST_POLL // len(types))
        left = wanted.wait
        polls = chain(zip(types, repeat(0)), zip(cycle(types), repeat(pause)))
        with ExitStack() as places:
            for number, (pull_queue, longest) in enumerate(polls):
                # A queue waits whole seconds: rounded down, a wait of one second would be zero.
                seconds = max(0, min(longest, round(left / SECOND)))
                if len(leases) >= wanted.max_tasks or (longest and (leases or not seconds)):
                    return
                if number == len(types) and not places.enter_context(self.long_polls.place(caller, left)):
                    return
                began = self.runtime.now()
                # Tasks leased already must not wait for tasks that are not due: the wait could outlast a lease.
                hold = 0 if leases else MAX_HOLD
                if not self._add(
                    leases, self._leased(pull_queue, wanted, wanted.max_tasks - len(leases), seconds, hold)
                ):
                    return
                left -= max(self.runtime.now() - began, seconds * SECOND)

    def _add(self, leases: list[Leased], more: Sequence[ClaimedDelivery]) -> bool:
        """Add leases while the response has room, and return the rest; returns whether there is room for more."""
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
        """Receive from one queue and claim due tasks; none is handed out before its due time.

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
                # Claimed slightly early, so that the claim's own time makes no task late; handed out no earlier.
                self.runtime.clock.sleep_until(each.end.task.next_at)
        return ends

    def _put_back(self, leased: Leased, reason: str) -> None:
        """Return a lease that was not handed out; the task waits for the given reason."""
        try:
            end = self.claims.put_back(leased.task, reason)
        except Unavailable as error:
            self.runtime.telemetry.note("a lease could not be returned", error=str(error))
            return
        self.messages.settle([ClaimedDelivery(Delivery(message_for(leased.task), leased.key.receipt, ""), end)])
