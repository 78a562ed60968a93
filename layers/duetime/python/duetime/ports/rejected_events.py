"""The queue of events that could not become tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Reject:
    """An event that can become no task.

    Attributes:
        body: as it came.
        reason: why, in words.
    """

    body: str
    reason: str


class Rejects(Protocol):
    """Keeps them for a person to check."""

    def put(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Keep events.

        Returns:
            Those that were not kept for sure.
        """
        ...
