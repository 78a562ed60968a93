"""The time, in a test's hands."""

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
    """A clock that only moves when it is set, or immediately when something sleeps.

    Attributes:
        slept: until when somebody slept, each time.
        meanwhile: called while somebody sleeps.
    """

    at: Millis = NOW
    slept: list[Millis] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def now(self) -> Millis:
        """The time."""
        return self.at

    def sleep_until(self, at: Millis) -> None:
        """Move on, at once."""
        self.at = max(self.at, at)
        self.slept.append(self.at)
        self.meanwhile()
