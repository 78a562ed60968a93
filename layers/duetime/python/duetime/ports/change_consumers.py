"""Ports for consumers of the table's changes, including the event bus and the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import ChangeBatch, Event
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task


class ChangeConsumer(Protocol):
    """Processes writes to records after the writes were made. A consumer receives each write at least once.

    A consumer's errors are logged and counted, and other consumers still receive the batch. Some consumers' errors
    cause the batch to be delivered again.
    """

    @property
    def name(self) -> str:
        """Name of the consumer in log lines and metric names."""
        ...

    def consume(self, changes: ChangeBatch) -> None:
        """Process a batch."""
        ...


class EventBus(Protocol):
    """An event bus that delivers events according to rules."""

    def publish(self, events: Sequence[Event]) -> int:
        """Put events on the bus; rejected events are retried a few times.

        Returns:
            The number of rejected events.
        """
        ...


class ArchiveEncoder(Protocol):
    """Encodes a task as a line of the archive."""

    def line(self, task: Task, older: Sequence[AttemptRecord]) -> str:
        """Return the line for a task with its attempts and events, without a line break.

        Args:
            task: the record, with the contents that are available.
            older: attempts that are stored outside the record.

        Raises:
            ValueError: some of the content is not valid JSON.
        """
        ...


class ArchiveStore(Protocol):
    """The archive's bucket."""

    def put(self, key: str, lines: Sequence[str]) -> None:
        """Write an object; writing an object with the same key again replaces it.

        Raises:
            Unavailable: the store failed.
        """
        ...

    def keys(self, after: str, limit: int) -> Sequence[str]:
        """The next keys, in order, of objects with tasks, starting after the key `after`.

        Raises:
            Unavailable: the store failed.
        """
        ...

    def lines(self, key: str) -> Sequence[str]:
        """The lines of an object; empty if the object does not exist.

        Raises:
            Unavailable: the store failed.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete an object, if it exists.

        Raises:
            Unavailable: the store failed.
        """
        ...
