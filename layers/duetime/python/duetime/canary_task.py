"""The one task type that every deployment handles: `duetime verify` measures a deployment with it.

A user's own package of handlers may hold anything, so that what tests a deployment brings its own handler. It sleeps,
fails as often as it is told to, and says when and where it ran; it reads and writes nothing.
"""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

from duetime.handlers import Registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.handlers import Context

TYPE = "duetime.probe"
MAX_SECONDS = 30.0
"""Longest that a probe sleeps: whoever may create tasks could otherwise hold workers with it."""
_RAN: list[str] = []
"""The first probe of this process, once it ran."""


class ProbeFailed(RuntimeError):
    """The attempt was asked to fail."""

    def __init__(self, attempt: int) -> None:
        super().__init__(f"attempt {attempt} was asked to fail")


def run(context: Context, payload: Any) -> dict[str, object]:  # noqa: ANN401 - a payload is any JSON
    """Sleep for `seconds`, fail the first `fail_times` attempts, and tell about the rest."""
    started_at_ms = _now_ms()
    asked = payload if isinstance(payload, dict) else {}
    is_first = not _RAN
    if is_first:
        _RAN.append(context.task_id)
    time.sleep(max(0.0, min(float(asked.get("seconds", 0)), MAX_SECONDS)))
    if context.attempt <= int(asked.get("fail_times", 0)):
        raise ProbeFailed(context.attempt)
    return {
        "started_at_ms": started_at_ms,
        "ended_at_ms": _now_ms(),
        "attempt": context.attempt,
        "fence": context.fence,
        "process": _process(),
        "first_in_process": is_first,
    }


def _process() -> str:
    """Which process this is, by a name that no other has."""
    return os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{socket.gethostname()}-{os.getpid()}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


BUILT_IN: Mapping[str, Registered] = {TYPE: Registered({"run": run})}
"""The handlers that need no package; a user's own of the same type comes first."""
