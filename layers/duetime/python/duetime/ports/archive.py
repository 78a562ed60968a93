"""The archive of ended tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task


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
