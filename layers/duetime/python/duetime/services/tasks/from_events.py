"""Creates tasks from events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError
from duetime.domain.tasks.creation import Order
from duetime.domain.tracebacks import places_of
from duetime.ports.queues import Reject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.task import Task
    from duetime.ports.queues import Rejects
    from duetime.ports.runtime import Telemetry
    from duetime.services.tasks.create import BatchCreator


@dataclass(frozen=True, slots=True)
class Arrival:
    """A delivered event.

    Attributes:
        id: id of the delivery.
        body: body as received.
        wanted: the requested task, or why the event is invalid.
    """

    id: str
    body: str
    wanted: Order | RequestError


@dataclass(frozen=True, slots=True)
class EventTaskCreator:
    """Creates a task for each event; a repeated delivery finds the existing task.

    An event that can never become a task is put aside at once, with the reason, and not delivered again.

    Attributes:
        owner: owner of all the tasks.
    """

    batch_creator: BatchCreator
    rejects: Rejects
    telemetry: Telemetry
    owner: str

    def take_in(self, arrivals: Sequence[Arrival]) -> list[Arrival]:
        """Process a batch.

        Returns:
            Deliveries to repeat: the store or the queue of rejects did not answer, or duetime has a defect.
        """
        orders = [arrival.wanted for arrival in arrivals if isinstance(arrival.wanted, Order)]
        created = iter(self.batch_creator.create_each(self.owner, orders))
        ends = [next(created) if isinstance(arrival.wanted, Order) else arrival.wanted for arrival in arrivals]
        self.telemetry.count("intake_tasks", sum(not isinstance(end, Exception) for end in ends))
        put_aside = self._put_aside(arrivals, ends)
        return [
            arrival
            for arrival, end in zip(arrivals, ends, strict=True)
            if isinstance(end, Exception) and arrival.id not in put_aside
        ]

    def _put_aside(self, arrivals: Sequence[Arrival], ends: Sequence[Task | Exception]) -> set[str]:
        """Put rejected events aside and note other failures; returns the ids of the events put aside."""
        refused: dict[str, Reject] = {}
        for arrival, end in zip(arrivals, ends, strict=True):
            if isinstance(end, RequestError):
                refused[arrival.id] = Reject(arrival.body, str(end))
                self.telemetry.note("an event cannot become a task", event=arrival.id, error=type(end).__name__)
            elif isinstance(end, Exception):
                self.telemetry.note("an event must be delivered again", event=arrival.id, error=places_of(end))
        lost = self.rejects.put(list(refused.values())) if refused else []
        self.telemetry.count("intake_refused", len(refused) - len(lost))
        return {id_ for id_, reject in refused.items() if reject not in lost}
