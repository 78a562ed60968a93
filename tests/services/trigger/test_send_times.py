"""The trigger waits for the best time to send, and messages that are sent late still arrive before they are due."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.dispatch.enqueue_plan import Message, Precision
from duetime.domain.ids import TaskId
from duetime.domain.tasks.task_options import Priority
from duetime.ports.runtime import Runtime
from duetime.services.trigger.dispatcher import DueMessages
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.clocks import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis
    from duetime.ports.queues import Outgoing


@dataclass
class Ports:
    """A clock that oversleeps by a given time, and a queue that records how early messages arrive."""

    oversleeps: Millis
    time: Millis = NOW
    early: list[Millis] = field(default_factory=list)

    def now(self) -> Millis:
        """The time."""
        return self.time

    def sleep_until(self, at: Millis) -> None:
        """Wake too late, unless the sleep takes no time."""
        if at > self.time:
            self.time = at + self.oversleeps

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Record how early each message arrives, in milliseconds."""
        self.early += [each.message.due - self.time - 1_000 * each.delay_seconds for each in outgoing]
        return []


@pytest.mark.parametrize(("oversleeps", "early"), [(0, 90), (45, 45), (200, 890)])
def test_messages_are_sent_at_their_planned_times(oversleeps: Millis, early: Millis) -> None:
    """If messages are sent a little late, they arrive a little later; if sent very late, they are held longer."""
    ports: Any = Ports(oversleeps)
    due_messages = DueMessages(
        ports, ports, ports, ports, Runtime(ports, ports, ports, FakeTelemetry()), 180_000, Precision.NORMAL, None
    )
    messages = [
        Message(TaskId.of(NOW, 0, number), 0, NOW + 60_490 + 1_000 * number, Priority.NORMAL, "me")
        for number in range(2)
    ]
    due_messages.send(messages)
    assert ports.early == [early, early]
