"""What consumes the changes of the table: those who are notified, the event bus, and the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import ChangeBatch, Event
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task


class ChangeConsumer(Protocol):
    """Does something with the writes of records, after they were made.

    It is told of each write at least once. One that raises is logged and counted; the others are told all the same.
    """

    @property
    def name(self) -> str:
        """What its failures are logged and counted under: a word, as in names of metrics."""
        ...

    def consume(self, changes: ChangeBatch) -> None:
        """Take a batch."""
        ...


class EventBus(Protocol):
    """A bus that hands events to whoever has a rule for them."""

    def publish(self, events: Sequence[Event]) -> int:
        """Put events on the bus; what it does not take is tried again a few times.

        Returns:
            How many it did not take.
        """
        ...


class ArchiveEncoder(Protocol):
    """Writes a task as a line of an object."""

    def line(self, task: Task, older: Sequence[AttemptRecord]) -> str:
        """A task with its attempts and events, without a line break.

        Args:
            task: the record, with the contents that were found.
            older: attempts that the record had no more room for.

        Raises:
            ValueError: a content is not the JSON that it should be.
        """
        ...


class ArchiveStore(Protocol):
    """The bucket that holds the archive."""

    def put(self, key: str, lines: Sequence[str]) -> None:
        """Write an object; writing it again replaces it.

        Raises:
            Unavailable: the store failed.
        """
        ...
