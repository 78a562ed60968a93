"""Circuit breakers: an HTTP host that keeps failing is left alone for a while, then asked by one call at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from duetime.domain.limits import MAX_HOST_LENGTH
from duetime.domain.operating_parameters import CIRCUIT_LONGEST_OPEN, CIRCUIT_OPEN, CIRCUIT_PATIENCE
from duetime.domain.tasks.attempt_results import Deferred, Failed, Succeeded
from duetime.domain.tasks.targets import CallbackTarget, HttpTarget

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.targets import Target
    from duetime.domain.times import Millis

_SERVER_ERROR = re.compile(r"Http5\d\d")
_ANSWERED = re.compile(r"Http\d\d\d|AnswerTooLarge")
_TIMEOUT = "Timeout"
_OURS = frozenset({"EgressFailed"})
"""Nothing was heard of the call, through no fault of the host. The adapter names the error so."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class CircuitState(StrEnum):
    """Whether a host is called."""

    CLOSED = "closed"
    """It is: all is well."""
    OPEN = "open"
    """It is not."""
    HALF_OPEN = "half_open"
    """One call at a time finds out whether it is well again."""


class Sign(StrEnum):
    """What the end of a call says of the host that was called."""

    WELL = "well"
    ILL = "ill"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Circuit:
    """The circuit of one owner's calls to one host: nobody's calls close a host to others.

    Attributes:
        owner: whose calls.
        host: its name as in URLs, with its port if that is not the usual one.
        openings: how often it was opened in a row; 0 while it is closed.
        open_until: until when the host is left alone.
        probe_until: until when the one call that is under way has the word; past if there is none.
        reason: what failed last.
        opened_at: when it was opened first in this row.
        version: grows with every change; 0 while nothing is stored.
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
        """Whether the host is called now."""
        if not self.openings:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self.open_until else CircuitState.HALF_OPEN

    def is_probed(self, now: Millis) -> bool:
        """Whether the one call that may be made is under way."""
        return now < self.probe_until

    def opened(self, reason: str, now: Millis) -> Circuit:
        """Opened, or opened again: for twice as long each time."""
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
        """With one call under way that must have ended by then."""
        return replace(self, probe_until=until)

    def closed(self) -> Circuit:
        """Closed: all is forgotten."""
        return Circuit(self.owner, self.host, version=self.version)


def host_of(target: Target) -> str | None:
    """The host whose circuit a target belongs to; `None` if it has none, or none that a name service could know."""
    if not isinstance(target, HttpTarget | CallbackTarget):
        return None
    try:
        parts = urlsplit(target.url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None
    if not host or len(host) > MAX_HOST_LENGTH:
        return None
    return host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"


def sign_of(ending: TargetEnding, *, given: Millis, usual: Millis) -> Sign:
    """What the end of a call says of the host: an answer is a sign of life, unless it is a 5xx.

    A failure that no repetition would repair, such as a rejected destination, was never the host's. Neither is a
    timeout that was too short for it.

    Args:
        ending: how the call ended.
        given: how long it was allowed to take.
        usual: how long the host has taken to answer lately; 0 if that is not known.
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
