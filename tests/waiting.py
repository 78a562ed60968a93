"""Waits for a real process by checking repeatedly until a deadline, never by sleeping for a fixed time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.02, 0.25
"""The pause between two checks, which grows because the awaited process needs the CPU itself."""
PATIENCE_SECONDS = 180.0
"""The time after which a wait fails, which is longer than even a busy machine needs."""


def until(look: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Return the first truthy result of `look`, or the last result when the time is over."""
    deadline = time.monotonic() + seconds
    pause = LOOK_SECONDS
    while not (answer := look()) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 1.3, LONGEST_LOOK_SECONDS)
    return answer
