"""The paths of the API and the methods that each takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TASKS = "/v1/tasks"
BATCH = "/v1/tasks/batch"
CANCEL_MANY = "/v1/tasks/cancel"
CHANGE_MANY = "/v1/tasks/change"
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
TARGET = f"{TASK}/target"
DEAD_LETTERS = "/v1/dead-letters"
REDRIVE = f"{DEAD_LETTERS}/redrive"
BULK_OPERATIONS = "/v1/bulk-operations"
BULK_OPERATION = f"{BULK_OPERATIONS}/{{operation_id}}"
BULK_OPERATION_CANCEL = f"{BULK_OPERATION}/cancel"
SWITCHES = "/v1/switches"
LEASES = "/v1/leases"
LEASE = "/v1/leases/{lease_id}"
LEASE_HEARTBEAT = f"{LEASE}/heartbeat"
LEASE_COMPLETE = f"{LEASE}/complete"
LEASE_FAIL = f"{LEASE}/fail"
LEASE_RELEASE = f"{LEASE}/release"
LEASE_PAUSE = f"{LEASE}/pause"
LEASE_CANCEL = f"{LEASE}/cancel"
LOCKS = "/v1/locks"
LOCK = "/v1/locks/{key}"
SCHEDULES = "/v1/schedules"
SCHEDULE_PREVIEW = "/v1/schedules/preview"
SCHEDULE = "/v1/schedules/{name}"
SCHEDULE_PAUSE = f"{SCHEDULE}/pause"
SCHEDULE_RESUME = f"{SCHEDULE}/resume"
SCHEDULE_TRIGGER = f"{SCHEDULE}/trigger"
SCHEDULE_BACKFILL = f"{SCHEDULE}/backfill"
SCHEDULE_BACKFILL_ONE = f"{SCHEDULE_BACKFILL}/{{backfill_id}}"
SCHEDULE_OCCURRENCES = f"{SCHEDULE}/occurrences"
CALENDARS = "/v1/calendars"
CALENDAR = "/v1/calendars/{name}"
TOPOLOGIES = "/v1/topologies"
TOPOLOGY = "/v1/topologies/{task_id}"
TOPOLOGY_RERUN = f"{TOPOLOGY}/rerun"
TOPOLOGY_CANCEL = f"{TOPOLOGY}/cancel"
TOPOLOGY_PAUSE = f"{TOPOLOGY}/pause"
TOPOLOGY_RESUME = f"{TOPOLOGY}/resume"
HEALTH = "/v1/health"
OPENAPI = "/v1/openapi.json"

# A fixed path comes before a pattern that it would match too.
METHODS: Mapping[str, Sequence[str]] = {
    HEALTH: ("GET",),
    OPENAPI: ("GET",),
    TASKS: ("GET", "POST"),
    BATCH: ("POST",),
    CANCEL_MANY: ("POST",),
    CHANGE_MANY: ("POST",),
    TASK: ("GET", "PATCH", "DELETE"),
    **dict.fromkeys((PAUSE, RESUME, RUN, RETRY, ROLLBACK, NOTIFY, HEARTBEAT, PROGRESS), ("POST",)),
    ATTEMPTS: ("GET",),
    TARGET: ("GET",),
    DEAD_LETTERS: ("GET",),
    REDRIVE: ("POST",),
    BULK_OPERATIONS: ("GET",),
    BULK_OPERATION: ("GET",),
    BULK_OPERATION_CANCEL: ("POST",),
    SWITCHES: ("GET", "PUT", "DELETE"),
    LEASES: ("POST",),
    **dict.fromkeys((LEASE_HEARTBEAT, LEASE_COMPLETE, LEASE_FAIL, LEASE_RELEASE, LEASE_PAUSE, LEASE_CANCEL), ("POST",)),
    LOCKS: ("GET",),
    LOCK: ("GET", "DELETE"),
    SCHEDULES: ("GET", "POST"),
    SCHEDULE_PREVIEW: ("POST",),
    SCHEDULE: ("GET", "PATCH", "DELETE"),
    **dict.fromkeys((SCHEDULE_PAUSE, SCHEDULE_RESUME, SCHEDULE_TRIGGER, SCHEDULE_BACKFILL), ("POST",)),
    SCHEDULE_BACKFILL_ONE: ("DELETE",),
    SCHEDULE_OCCURRENCES: ("GET",),
    CALENDARS: ("GET",),
    CALENDAR: ("GET", "PUT", "DELETE"),
    TOPOLOGIES: ("POST",),
    TOPOLOGY: ("GET",),
    **dict.fromkeys((TOPOLOGY_RERUN, TOPOLOGY_CANCEL, TOPOLOGY_PAUSE, TOPOLOGY_RESUME), ("POST",)),
}
_PARAMETER = re.compile(r"\{\w+\}")


def methods_of(path: str) -> Sequence[str]:
    """The methods that a requested path takes; none if nothing is there."""
    found = (methods for known, methods in METHODS.items() if re.fullmatch(_PARAMETER.sub("[^/]+", known), path))
    return next(found, ())
