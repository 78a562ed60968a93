"""Contexts in which parts of a deployed stack are stopped."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.stack import Stack

_KEPT = ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target")


@contextmanager
def no_ticks(over: Stack, seconds: float = 0) -> Iterator[None]:
    """Stop all schedules of EventBridge Scheduler, such as the trigger's, at least for this number of seconds."""
    # The type of the emulator's client has only the services that other code calls.
    scheduler: Any = cast("Any", over.emulator).client("scheduler")
    started = time.monotonic()
    schedules = [
        scheduler.get_schedule(Name=one["Name"], GroupName=one["GroupName"])
        for one in scheduler.list_schedules()["Schedules"]
    ]
    fields = [{name: one[name] for name in _KEPT} for one in schedules]
    for one in fields:
        scheduler.update_schedule(**one, State="DISABLED")
    try:
        yield
        time.sleep(max(0.0, started + seconds - time.monotonic()))
    finally:
        for one in fields:
            scheduler.update_schedule(**one, State="ENABLED")


@contextmanager
def no_workers(over: Stack) -> Iterator[None]:
    """Stop queues and streams from invoking functions."""
    functions = over.emulator.client("lambda")
    mappings = [mapping["UUID"] for mapping in functions.list_event_source_mappings()["EventSourceMappings"]]
    for mapping in mappings:
        functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    try:
        yield
    finally:
        for mapping in mappings:
            functions.update_event_source_mapping(UUID=mapping, Enabled=True)
