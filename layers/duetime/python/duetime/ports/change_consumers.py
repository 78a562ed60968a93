"""Consumers of the writes of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.change_events import ChangeBatch


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
