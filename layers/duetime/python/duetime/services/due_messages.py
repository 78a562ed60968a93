"""Sends the messages of due tasks, each queue for itself, and has due schedules expanded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch import SCHEDULES, Message, Precision, ScheduleWake, delay_seconds, is_direct, queue_of
from duetime.ports.queues import Outgoing
from duetime.services.group_reader import Served
from duetime.services.placing import message_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.times import Millis
    from duetime.ports.queues import WorkQueues
    from duetime.ports.surroundings import Clock, Telemetry
    from duetime.services.expanding import Expanding


@dataclass(frozen=True, slots=True)
class DueMessages:
    """What the first reading and the recovery scans have in common.

    Attributes:
        expanding: makes the occurrences of schedules whose wakes are met.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        precision: how a wait is shared between the queue and the worker.
    """

    queues: WorkQueues
    expanding: Expanding
    clock: Clock
    telemetry: Telemetry
    look_ahead: Millis
    precision: Precision

    def send(self, messages: Sequence[Message]) -> Served:
        """Send messages; a queue that did not acknowledge all of its own has refused."""
        if not messages:
            return Served({}, frozenset())
        now = self.clock.now()
        unsent = self.queues.send(
            [Outgoing(message, delay_seconds(message.due, now, self.precision)) for message in messages]
        )
        if unsent:
            self.telemetry.count("unsent", len(unsent))
        sent = Counter(queue_of(message) for message in messages)
        return Served(sent, frozenset(queue_of(each.message) for each in unsent))

    def expand(self, wakes: Sequence[ScheduleWake], wants: Callable[[str], bool]) -> frozenset[str]:
        """Make what schedules have to place exist, and send what of it is due; what was refused, if it was.

        What the queue does not take is found by the first recovery scan, as with every new task.
        """
        if not wakes or not wants(SCHEDULES):
            return frozenset()
        expanded = self.expanding.expand(wakes)
        now = self.clock.now()
        self.telemetry.count("occurrences", len(expanded.tasks))
        self.send([message_for(task) for task in expanded.tasks if is_direct(task.next_at, now, self.look_ahead)])
        return frozenset() if expanded.done else frozenset({SCHEDULES})
