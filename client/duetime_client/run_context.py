"""The schedule and topology of a running attempt's task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RunSchedule:
    """The schedule run that a task, or its topology, belongs to.

    Attributes:
        name: of the schedule.
        scheduled_at: the run's nominal time, before jitter and calendars; also in a backfill.
        previous_at: the schedule's time before that one; `None` if there is none.
        next_at: the schedule's time after that one; `None` if there is none.
        cause: `schedule`, `catch_up`, `backfill` or `manual`.
    """

    name: str
    scheduled_at: datetime
    previous_at: datetime | None = None
    next_at: datetime | None = None
    cause: str = "schedule"

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> RunSchedule:
        """Parse a task's `schedule`."""
        before, after = (document.get(name) for name in ("previous_at", "next_at"))
        return cls(
            name=document["name"],
            scheduled_at=datetime.fromisoformat(document["scheduled_at"]),
            previous_at=None if before is None else datetime.fromisoformat(before),
            next_at=None if after is None else datetime.fromisoformat(after),
            cause=document["cause"],
        )


@dataclass(frozen=True)
class RunTopology:
    """The topology of a node: its id, the number of its run, and the node's name."""

    id: str
    run: int
    node: str

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> RunTopology:
        """Parse a task's `topology`."""
        return cls(document["id"], document["run"], document["node"])
