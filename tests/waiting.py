"""Waiting for a real process: check repeatedly, with a deadline, and never sleep for a fixed time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.02, 0.25
"""Between two looks, of which each takes a while longer: what is waited for needs the processor itself."""
PATIENCE_SECONDS = 180.0
"""Only what never comes takes so long: a machine that is busy with other things is no defect."""


def until(look: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Return the first answer of `look` that is truthy, or its last one when the time is up."""
    deadline = time.monotonic() + seconds
    pause = LOOK_SECONDS
    while not (answer := look()) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 1.3, LONGEST_LOOK_SECONDS)
    return answer
