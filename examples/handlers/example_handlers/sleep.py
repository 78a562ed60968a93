"""A handler that simulates a program in a recorded workflow by sleeping for as long as the program ran."""

from __future__ import annotations

import time
from typing import NotRequired, TypedDict

from duetime.handlers import Context, handler

LOOK_SECONDS = 1.0
"""The interval between checks for a request to stop, in seconds."""


class Nap(TypedDict):
    """The payload for tasks of the type `sleep`."""

    seconds: float
    """How long to sleep, in seconds."""
    program: NotRequired[str]
    """The name of the simulated program."""


@handler("sleep")
def sleep(context: Context, payload: Nap) -> dict[str, object]:
    """Sleep, and return the duration and the program."""
    began = time.monotonic()
    while (left := payload["seconds"] - (time.monotonic() - began)) > 0:
        time.sleep(min(left, LOOK_SECONDS))
        context.stop_if_requested()
    return {"slept": payload["seconds"], "program": payload.get("program")}
