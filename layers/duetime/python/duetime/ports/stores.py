"""All that is stored, by subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.ports.bulk import BulkStore
    from duetime.ports.dispatch import CursorStore, ShardStore
    from duetime.ports.live_updates import WatchStore
    from duetime.ports.locks import LockStore
    from duetime.ports.long_polls import LongPollStore
    from duetime.ports.rates import RateStore
    from duetime.ports.schedules import CalendarStore, ScheduleStore
    from duetime.ports.switches import CircuitStore, SwitchStore
    from duetime.ports.tasks import ContentStore, KeyStore, TaskStore, UniqueKeyStore
    from duetime.ports.topologies import DefinitionStore, TopologyStore


class Stores(Protocol):
    """The stores of a deployment. A function makes only those that it asks for."""

    @property
    def tasks(self) -> TaskStore:
        """Records of tasks and their timers."""
        ...

    @property
    def contents(self) -> ContentStore:
        """Payloads and results."""
        ...

    @property
    def keys(self) -> KeyStore:
        """Idempotency keys."""
        ...

    @property
    def unique_keys(self) -> UniqueKeyStore:
        """Unique keys of tasks."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """Schedules, and which of their occurrences goes on."""
        ...

    @property
    def calendars(self) -> CalendarStore:
        """Calendars."""
        ...

    @property
    def topologies(self) -> TopologyStore:
        """How far the runs of topologies have come."""
        ...

    @property
    def definitions(self) -> DefinitionStore:
        """Topology definitions."""
        ...

    @property
    def bulk(self) -> BulkStore:
        """Bulk operations."""
        ...

    @property
    def locks(self) -> LockStore:
        """Locks and who waits for them."""
        ...

    @property
    def rates(self) -> RateStore:
        """How far the rates of tasks are used up."""
        ...

    @property
    def switches(self) -> SwitchStore:
        """Switches."""
        ...

    @property
    def circuit_breakers(self) -> CircuitStore:
        """The circuits of HTTP hosts that have failed."""
        ...

    @property
    def cursors(self) -> CursorStore:
        """How far the minutes of each group of shards have been read."""
        ...

    @property
    def shards(self) -> ShardStore:
        """How the number of shards has grown."""
        ...

    @property
    def long_polls(self) -> LongPollStore:
        """Which requests of the API wait."""
        ...

    @property
    def subscriptions(self) -> WatchStore:
        """Who watches what."""
        ...
