"""A stand-in for a program of a recorded workflow: it takes as long as the program once took."""

from __future__ import annotations

import time
from typing import NotRequired, TypedDict

from duetime.handlers import Context, handler

LOOK_SECONDS = 1.0
"""Interval between checks for a stop request."""


class Nap(TypedDict):
    """The payload of a task of the type `sleep`."""

    seconds: float
    """How long to sleep."""
    program: NotRequired[str]
    """What it stands for."""


@handler("sleep")
def sleep(context: Context, payload: Nap) -> dict[str, object]:
    """Sleep, and return the duration."""
    began = time.monotonic()
    while (left := payload["seconds"] - (time.monotonic() - began)) > 0:
        time.sleep(min(left, LOOK_SECONDS))
        context.stop_if_requested()
    return {"slept": payload["seconds"], "program": payload.get("program")}
