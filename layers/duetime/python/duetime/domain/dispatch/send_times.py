"""When the trigger sends what it has read: so that a whole number of seconds of delay ends close before the due time.

A queue delays by whole seconds. Sent at any moment, a message arrives up to a second too early, and a worker is paid
for waiting. Sent when the rest of the wait is a whole number of seconds, it arrives just in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import HEADROOM, Precision
from duetime.domain.operating_parameters import (
    FEWEST_WAITED_FOR,
    MAX_DELAY,
    MOST_SENT_IN_TIME,
    SEND_STEP,
    SHORTEST_WAIT_SENT_IN_TIME,
)
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class SendGroup:
    """Messages that are sent together.

    Attributes:
        at: when; their delays are counted from there.
    """

    at: Millis
    messages: tuple[Message, ...]


def send_groups(messages: Sequence[Message], now: Millis, precision: Precision) -> list[SendGroup]:
    """In which groups, and when within the next second, messages are sent; in the order of their times.

    All of them at once, if they are so many that workers are given full batches, which share their wait; or if the
    precision is not `normal`: `relaxed` waits for nothing, and `exact` is to be early. The last ones are not waited for
    if the trigger's own time would cost more than their workers'.
    """
    if precision is not Precision.NORMAL or len(messages) > MOST_SENT_IN_TIME:
        return [SendGroup(now, tuple(messages))]
    groups: dict[Millis, list[Message]] = {}
    last = 0
    waiting = len(messages)
    for step, message in sorted(((_step(each, now), each) for each in messages), key=lambda pair: pair[0]):
        # As many as are left wait for as long as the trigger waits.
        last = step if waiting >= FEWEST_WAITED_FOR else last
        groups.setdefault(last, []).append(message)
        waiting -= 1
    return [SendGroup(now + step, tuple(group)) for step, group in groups.items()]


def _step(message: Message, now: Millis) -> Millis:
    """How long until a message is best sent, in whole steps; 0 for one that cannot wait, or waits longer than SQS."""
    wait = message.due - now - HEADROOM[Precision.NORMAL]
    if not SHORTEST_WAIT_SENT_IN_TIME <= wait <= MAX_DELAY:
        return 0
    return wait % SECOND // SEND_STEP * SEND_STEP
