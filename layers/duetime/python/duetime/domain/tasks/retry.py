"""When a failed attempt is tried again: exponential backoff with full jitter.

Source: AWS Architecture Blog, "Exponential Backoff And Jitter".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_ATTEMPTS

if TYPE_CHECKING:
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a task is tried.

    Attributes:
        max_attempts: attempts in all, the first and those lost to a crash included; 1 means no retry.
        initial_seconds: upper bound of the first wait.
        multiplier: growth of the bound from one wait to the next.
        max_seconds: the bound grows no further than this.
        max_duration_seconds: how long after the start of the first attempt another one may start; `None` for no limit.
    """

    max_attempts: int = 5
    initial_seconds: float = 1.0
    multiplier: float = 2.0
    max_seconds: float = 300.0
    max_duration_seconds: int | None = None

    def bound(self, attempt: int) -> Millis:
        """Longest wait after the given attempt (1 is the first) has failed."""
        # No policy has more attempts; the powers of the largest multiplier stay within a float up to there.
        power = min(attempt - 1, MAX_ATTEMPTS)
        seconds = min(self.initial_seconds * self.multiplier**power, self.max_seconds)
        return int(seconds * 1000)

    def wait(self, attempt: int, fraction: float) -> Millis:
        """The wait after the given attempt, drawn evenly between nothing and its bound.

        Args:
            attempt: the attempt that failed, from 1.
            fraction: a random number, 0 <= fraction < 1.
        """
        return int(self.bound(attempt) * fraction)

    def allows_after(self, attempt: int) -> bool:
        """Whether another attempt may follow the given one."""
        return attempt < self.max_attempts


DEFAULT_RETRY = RetryPolicy()
"""That of a task which names none."""
