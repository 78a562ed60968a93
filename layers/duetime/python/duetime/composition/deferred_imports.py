"""Readers and writers that are imported when they are first needed: no other task should wait for their libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.bulk.filter_action import BulkRequest
    from duetime.domain.bulk.operation import BulkKind
    from duetime.domain.schedules.calendars import Calendar, CalendarMode
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph

# ruff: noqa: PLC0415 - see the docstring


def read_graph(payload: bytes) -> Graph:
    """`duetime.ports.topologies.GraphReader` of whole graphs, by the models of the REST contract (pydantic)."""
    from duetime.contract.topologies import decoding

    return decoding.read_graph(payload)


def read_bulk_request(kind: BulkKind, text: bytes) -> BulkRequest:
    """`duetime.ports.bulk.BulkRequestReader`, by the models of the REST contract (pydantic)."""
    from duetime.contract.bulk.bodies import read_stored

    return read_stored(kind, text)


def task_entry(task: Task) -> Mapping[str, object]:
    """A task as the API's lists show it, by the models of the REST contract (pydantic)."""
    from duetime.contract.tasks.encoding import entry

    return entry(task)


def calendar_from_ics(
    data: bytes, name: str, start: Millis, end: Millis, *, mode: CalendarMode, zone: Zone
) -> Calendar:
    """`duetime.services.schedules.calendars.CalendarReader`; the reader of calendar files is large."""
    from duetime.adapters.calendars import icalendar

    return icalendar.calendar_from_ics(data, name, start, end, mode=mode, zone=zone)
