"""Collaborators that are imported at first use, so that tasks without them do not wait for their libraries."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from duetime.composition.root import Part
    from duetime.domain.bulk.filter_action import BulkRequest
    from duetime.domain.bulk.operation import BulkKind
    from duetime.domain.schedules.calendars import Calendar, CalendarMode
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.attempts import RateLimits
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.topologies.definitions import TopologyDefinitions

T = TypeVar("T")


class _Deferred:
    """Creates the real object at its first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Any:  # noqa: ANN401 - anything
        return self._make()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - same
        return getattr(self._made, name)


def deferred(make: Callable[[], T]) -> T:
    """An object that `make` creates at its first use."""
    return cast("T", _Deferred(make))


def rate_limits(part: Part) -> RateLimits:
    """Grants starts to attempts of tasks with a rate; few tasks have one."""
    return deferred(lambda: _rate_limits(part))


def _rate_limits(part: Part) -> RateLimits:
    from duetime.composition.core import CoreServices
    from duetime.services.rate_limiter import RateLimiter

    return RateLimiter(part.part(CoreServices).stores.rates, part.runtime)


def read_graph(payload: bytes, parameters: Collection[str]) -> Graph:
    """`duetime.ports.topologies.NewGraphReader`, with the models of the REST contract (pydantic)."""
    from duetime.contract.topologies import decoding

    return decoding.read_graph(payload, parameters)


def read_stored_graph(payload: bytes) -> Graph:
    """`duetime.ports.topologies.GraphReader` for whole graphs that were accepted before."""
    from duetime.contract.topologies import decoding

    return decoding.read_stored_graph(payload)


def read_bulk_request(kind: BulkKind, text: bytes) -> BulkRequest:
    """`duetime.ports.stores.BulkRequestReader`, with the models of the REST contract (pydantic)."""
    if kind.is_of_schedules:
        from duetime.contract.schedules import bodies

        return bodies.read_stored(kind, text)
    from duetime.contract.bulk.bodies import read_stored

    return read_stored(kind, text)


def task_entry(task: Task) -> Mapping[str, object]:
    """A task as in the API's lists, with the models of the REST contract (pydantic)."""
    from duetime.contract.tasks.encoding import entry

    return entry(task)


def topology_definitions(stores: Stores, runtime: Runtime) -> TopologyDefinitions:
    """`duetime.services.tasks.creation_rules.DefinitionReader`; few tasks are runs of definitions."""

    def make() -> TopologyDefinitions:
        from duetime.services.topologies.definitions import TopologyDefinitions

        return TopologyDefinitions(stores, runtime)

    return deferred(make)


def calendar_from_ics(
    data: bytes, name: str, start: Millis, end: Millis, *, mode: CalendarMode, zone: Zone
) -> Calendar:
    """`duetime.services.schedules.calendars.CalendarReader`; the reader of calendar files is large."""
    from duetime.adapters.calendars import icalendar

    return icalendar.calendar_from_ics(data, name, start, end, mode=mode, zone=zone)
