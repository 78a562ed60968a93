"""Tags of operations, each with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.openapi import webhooks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Operation

TAGS: Mapping[str, str] = {
    "tasks": "Work with a due time: create, read, update, control and report on tasks.",
    "bulk operations": "Actions on all tasks that match a filter, carried out in the background.",
    "schedules": "Recurring work: each occurrence is a task.",
    "calendars": "Named sets of times in which schedules run, or do not run.",
    "topologies": "Graphs of tasks that run as one task.",
    "locks": "Named resources that only a limited number of running tasks can hold.",
    "leases": "Leases on tasks, for your own workers that pull their work.",
    "switches": "Stop or limit the dispatch of a type, of an owner or of all tasks.",
    "live updates": "Changes of tasks and schedules as they happen, over a WebSocket.",
    "service": "The API itself: its entry point, its health and this document.",
    webhooks.TAG: "Requests that the scheduler sends to your URLs.",
}
_OF_ANOTHER = {
    "dead-letters": "tasks",
    "forecast": "schedules",
    "watch-tickets": "live updates",
    "health": "service",
    "openapi.json": "service",
}


def tag_of(operation: Operation) -> str:
    """The tag of an operation: the first part of its path after the version, unless it belongs to another tag."""
    subject = [*operation.path.split("/")[2:], ""][0]
    name = _OF_ANOTHER.get(subject, subject.replace("-", " "))
    return name if name in TAGS else "service"
