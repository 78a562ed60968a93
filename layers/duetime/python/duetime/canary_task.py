"""Defines the task type `duetime.probe`, which every deployment can run and which `duetime verify` uses for tests.

A user's handler package can contain any handlers, so deployment tests use this handler instead. The handler sleeps,
fails a requested number of times, and returns when and where it ran. It does not read or write any data.
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
"""Maximum time that a probe sleeps in seconds, so that task creators cannot block workers with long probes."""
_RAN: list[str] = []
"""The task id of the first probe that ran in this process; empty before the first probe."""


class ProbeFailed(RuntimeError):
    """The payload requested that this attempt fail."""

    def __init__(self, attempt: int) -> None:
        super().__init__(f"attempt {attempt} was asked to fail")


def run(context: Context, payload: Any) -> dict[str, object]:  # noqa: ANN401 - a payload is any JSON
    """Sleep for `seconds`, fail the first `fail_times` attempts, and return the times and process of the attempt."""
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
    """A unique name for this process."""
    return os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{socket.gethostname()}-{os.getpid()}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


BUILT_IN: Mapping[str, Registered] = {TYPE: Registered({"run": run})}
"""The handlers that need no handler package. A user's own handler for the same type takes precedence."""
