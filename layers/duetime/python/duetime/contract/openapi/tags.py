"""What operations are about: a tag each, with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.openapi import webhooks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Operation

TAGS: Mapping[str, str] = {
    "tasks": "One piece of work with a due time: create, read, update, steer and report it.",
    "bulk operations": "Actions on all tasks that a filter matches, carried out bit by bit.",
    "schedules": "Recurring work: each occurrence is a task.",
    "calendars": "Times in which schedules run, or do not.",
    "topologies": "Graphs of tasks that run as one.",
    "locks": "Named resources that only so many running tasks may hold.",
    "leases": "Work that workers of your own fetch.",
    "switches": "Stop or cap the dispatch of a type, of an owner or of everything.",
    "service": "The API about itself.",
    webhooks.TAG: "Requests that the scheduler makes to URLs of yours.",
}
_OF_ANOTHER = {"dead-letters": "tasks", "health": "service", "openapi.json": "service"}


def tag_of(operation: Operation) -> str:
    """What an operation is about: the first part of its path behind the version, if that is not another's."""
    subject = [*operation.path.split("/")[2:], ""][0]
    name = _OF_ANOTHER.get(subject, subject.replace("-", " "))
    return name if name in TAGS else "service"
