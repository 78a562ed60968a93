"""Events that can become no task, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.ports.rejected_events import Reject


class MemoryRejects:
    """`duetime.ports.rejected_events.Rejects` in memory.

    Attributes:
        kept: everything that was put, in order.
    """

    def __init__(self) -> None:
        self.kept: list[Reject] = []

    def put(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Keep events; all are kept."""
        self.kept += rejects
        return []
