"""What Lambda hands to a function that reads from SQS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.sqs.messages import MessageUnreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.adapters.sqs.queues import SqsQueues
    from duetime.ports.queues import Delivery
    from duetime.ports.runtime import Telemetry


def readable(event: Mapping[str, Any], queues: SqsQueues, telemetry: Telemetry) -> list[Delivery]:
    """The deliveries in an event. One that is not ours is noted and left out, so it is deleted: no task needs it."""
    deliveries = []
    for record in event["Records"]:
        try:
            deliveries.append(queues.delivery(record))
        except MessageUnreadable as error:
            telemetry.count("unreadable")
            telemetry.note("a message is not one of duetime's", message=error.message_id)
    return deliveries
