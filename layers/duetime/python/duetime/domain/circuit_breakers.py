"""Circuit breakers, which block calls to a host that keeps failing, and after a while allow one probe at a time."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import CIRCUIT_LONGEST_OPEN, CIRCUIT_OPEN, CIRCUIT_PATIENCE
from duetime.domain.tasks.attempt_results import Deferred, Failed, Succeeded
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.times import Millis

_SERVER_ERROR = re.compile(r"Http5\d\d")
_ANSWERED = re.compile(r"Http\d\d\d|AnswerTooLarge")
_TIMEOUT = "Timeout"
_OURS = frozenset({"EgressFailed"})
"""The adapter's error types for calls that got no response through no fault of the host."""


class CircuitState(StrEnum):
    """Whether a host may be called."""

    CLOSED = "closed"
    """All calls are allowed."""
    OPEN = "open"
    """No calls are allowed."""
    HALF_OPEN = "half_open"
    """Only one probe at a time is allowed."""


class Sign(StrEnum):
    """What a call's result shows about the host."""

    WELL = "well"
    ILL = "ill"
    NOTHING = "nothing"


@frozen
class Circuit:
    """The circuit for one owner's calls to one host; it does not affect other owners' calls.

    Attributes:
        owner: owner of the calls.
        host: hostname as in URLs, with the port unless it is the default.
        openings: number of consecutive openings; 0 while the circuit is closed.
        open_until: no calls are allowed before this time.
        probe_until: deadline of the running probe; in the past if no probe is running.
        reason: the latest failure.
        opened_at: when the circuit opened for the first time in this series of openings.
        version: incremented by every change; 0 if nothing is stored.
    """

    owner: str
    host: str
    openings: int = 0
    open_until: Millis = 0
    probe_until: Millis = 0
    reason: str = ""
    opened_at: Millis = 0
    version: int = 0

    def state(self, now: Millis) -> CircuitState:
        """The current state."""
        if not self.openings:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self.open_until else CircuitState.HALF_OPEN

    def is_probed(self, now: Millis) -> bool:
        """Whether a probe is running."""
        return now < self.probe_until

    def opened(self, reason: str, now: Millis) -> Circuit:
        """A copy with the circuit open; the time until the next probe doubles with each consecutive opening."""
        length = min(CIRCUIT_OPEN << min(self.openings, 32), CIRCUIT_LONGEST_OPEN)
        return replace(
            self,
            openings=self.openings + 1,
            open_until=now + length,
            probe_until=0,
            reason=reason,
            opened_at=self.opened_at if self.openings else now,
        )

    def probed(self, until: Millis) -> Circuit:
        """A copy with a running probe, which must end by `until`."""
        return replace(self, probe_until=until)

    def closed(self) -> Circuit:
        """A copy with the circuit closed and without failures."""
        return Circuit(self.owner, self.host, version=self.version)


def sign_of(ending: TargetEnding, *, given: Millis, usual: Millis) -> Sign:
    """Classifies the result of a call. Any response except a 5xx shows that the host works.

    Two kinds of failures do not count against the host: failures that no retry would fix, such as a rejected
    destination, and timeouts that were too short for the host.

    Args:
        ending: the result of the call.
        given: the timeout of the call, in milliseconds.
        usual: recent response time of the host, in milliseconds; 0 if unknown.
    """
    match ending:
        case Succeeded() | Deferred():
            return Sign.WELL
        case Failed(error=error, retriable=retriable):
            if _SERVER_ERROR.fullmatch(error.type):
                return Sign.ILL
            if error.type == _TIMEOUT and given < max(CIRCUIT_PATIENCE, 2 * usual):
                return Sign.NOTHING
            if _ANSWERED.fullmatch(error.type):
                return Sign.WELL
            return Sign.ILL if retriable and error.type not in _OURS else Sign.NOTHING
        case _:
            return Sign.NOTHING
