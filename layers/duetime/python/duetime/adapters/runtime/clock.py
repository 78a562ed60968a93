"""The system's clock and randomness."""

from __future__ import annotations

import base64
import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.times import Millis

_NANOSECONDS = 1_000_000
_NONCE_BYTES = 9


class SystemClock:
    """The wall clock of the machine."""

    def now(self) -> Millis:
        """The time, rounded down to the millisecond."""
        return time.time_ns() // _NANOSECONDS

    def sleep_until(self, at: Millis) -> None:
        """Return no earlier than `at` by this clock, even if a sleep ends early."""
        while (rest := at * _NANOSECONDS - time.time_ns()) > 0:
            time.sleep(rest / 1e9)


class SystemRandom:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def bits(self, count: int) -> int:
        """A number with the given count of random bits."""
        return self._source.getrandbits(count)

    def below(self, bound: int) -> int:
        """A whole number from 0, less than `bound`."""
        return self._source.randrange(bound)

    def fraction(self) -> float:
        """A number from 0, less than 1."""
        return self._source.random()

    def nonce(self) -> str:
        """Twelve characters that carry 72 random bits."""
        return base64.urlsafe_b64encode(self._source.randbytes(_NONCE_BYTES)).decode("ascii")
