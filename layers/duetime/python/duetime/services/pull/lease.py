"""Handing out due tasks to pull workers: receive, claim, and what happens to each message."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.pull_leases import LeaseRequest, Pullers
    from duetime.domain.times import Millis
    from duetime.ports.queues import PullQueues
    from duetime.ports.runtime import Runtime
    from duetime.services.long_poll_limit import LongPolls
    from duetime.services.pull.claims import LeaseClaims, PullMessages

_LONGEST_POLL = 3
"""Seconds that one request waits at a queue: less than a client of ours waits for its answer. With several types it
is less, so that none waits for the others' silence."""
_SLOW = SECOND // 2
"""A claim that took longer has its message kept away for longer too."""


@dataclass(frozen=True, slots=True)
class LeaseService:
    """Leases the due tasks of pulled types, each by the same claim that the worker functions make."""

    queues: PullQueues
    claims: LeaseClaims
    messages: PullMessages
    pullers: Pullers
    long_polls: LongPolls
    runtime: Runtime

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
        return self._with_time_left(leases, wanted.first)

    def _with_time_left(self, leases: Sequence[Leased], length: Millis) -> list[Leased]:
        """The leases that are of use to a worker; those that went by meanwhile are returned.

        Whatever was slow since their claims, a worker must not begin under a lease that is all but over, or is over
        and somebody else's by now.
        """
        now = self.runtime.now()
        useful = [lease for lease in leases if lease.left(now) * LEAST_LEASE_SHARE >= length]
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
        polls = chain(zip(types, repeat(0)), zip(cycle(types), repeat(pause)))
        with ExitStack() as places:
            for number, (pull_queue, longest) in enumerate(polls):
                # A queue waits whole seconds: rounded down, a wait of one second would be none.
                seconds = max(0, min(longest, round(left / SECOND)))
                if len(leases) >= wanted.max_tasks or (longest and (leases or not seconds)):
                    return
                if number == len(types) and not places.enter_context(self.long_polls.place(left)):
                    return
                began = self.runtime.now()
                # What is leased already must not wait for what is not due: together it could outlast a lease.
                hold = 0 if leases else MAX_HOLD
                if not self._add(
                    leases, self._leased(pull_queue, wanted, wanted.max_tasks - len(leases), seconds, hold)
                ):
                    return
                left -= max(self.runtime.now() - began, seconds * SECOND)

    def _add(self, leases: list[Leased], more: Sequence[ClaimedDelivery]) -> bool:
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

    def _leased(
        self, pull_queue: str, wanted: LeaseRequest, most: int, seconds: int, hold: Millis
    ) -> list[ClaimedDelivery]:
        """Receive from one queue and claim what is due; nothing of it is handed out before its time.

        Args:
            pull_queue: the pulled type.
            wanted: what the worker asks for.
            most: tasks at the most.
            seconds: how long to wait for a message.
            hold: how long to wait for the due time of the first of them.
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
                # Claimed a moment before, so that the claim's own time makes nothing late; handed out no earlier.
                self.runtime.clock.sleep_until(each.end.task.next_at)
        return ends

    def _put_back(self, leased: Leased, reason: str) -> None:
        """Take back a lease that was not handed out; the task waits for what the reason says."""
        try:
            end = self.claims.put_back(leased.task, reason)
        except Unavailable as error:
            self.runtime.telemetry.note("a lease could not be taken back", error=str(error))
            return
        self.messages.settle([ClaimedDelivery(Delivery(message_for(leased.task), leased.key.receipt, ""), end)])
