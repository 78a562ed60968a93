"""The paths of the API and the methods that each takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TASKS = "/v1/tasks"
BATCH = "/v1/tasks/batch"
TASK = "/v1/tasks/{task_id}"
PAUSE = f"{TASK}/pause"
RESUME = f"{TASK}/resume"
RUN = f"{TASK}/run"
RETRY = f"{TASK}/retry"
ROLLBACK = f"{TASK}/rollback"
NOTIFY = f"{TASK}/notify"
HEARTBEAT = f"{TASK}/heartbeat"
PROGRESS = f"{TASK}/progress"
ATTEMPTS = f"{TASK}/attempts"
HEALTH = "/v1/health"
OPENAPI = "/v1/openapi.json"

# A fixed path comes before a pattern that it would match too.
METHODS: Mapping[str, Sequence[str]] = {
    HEALTH: ("GET",),
    OPENAPI: ("GET",),
    TASKS: ("GET", "POST"),
    BATCH: ("POST",),
    TASK: ("GET", "PATCH", "DELETE"),
    **dict.fromkeys((PAUSE, RESUME, RUN, RETRY, ROLLBACK, NOTIFY, HEARTBEAT, PROGRESS), ("POST",)),
    ATTEMPTS: ("GET",),
}
_PARAMETER = re.compile(r"\{\w+\}")


def methods_of(path: str) -> Sequence[str]:
    """The methods that a requested path takes; none if nothing is there."""
    found = (methods for known, methods in METHODS.items() if re.fullmatch(_PARAMETER.sub("[^/]+", known), path))
    return next(found, ())
