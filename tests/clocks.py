"""Clocks that a test controls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis

NOW = 1_795_228_387_250
"""2026-11-21T02:33:07.250Z."""


@dataclass
class StandingClock:
    """A clock that only advances when it is set or when something sleeps; each sleep ends at once.

    Attributes:
        slept: the end of each sleep.
        meanwhile: a function that is called during each sleep.
    """

    at: Millis = NOW
    slept: list[Millis] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def now(self) -> Millis:
        """Return the time."""
        return self.at

    def sleep_until(self, at: Millis) -> None:
        """Advance to the time at once."""
        self.at = max(self.at, at)
        self.slept.append(self.at)
        self.meanwhile()
