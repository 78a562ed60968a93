"""Waiting for a real process: look again and again, with a deadline, and never sleep for a fixed time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 180.0
"""Only what never comes takes so long: a machine that is busy with other things is no defect."""


def until(look: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Return the first answer of `look` that is truthy, or its last one when the time is up."""
    deadline = time.monotonic() + seconds
    while not (answer := look()) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return answer
