"""Creates tasks from a batch of events, and returns the failed ones for redelivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.contract.tasks.intake_events import task_of_event
from duetime.domain.errors import RequestError
from duetime.domain.ids import TRACEPARENT, read_traceparent
from duetime.domain.tasks.creation import Order, Origin
from duetime.services.tasks.from_events import Arrival

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

_QUEUE = "queue"
"""Source for messages that were sent directly to the queue, not as events; SQS assigns their ids."""


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Process the batch; an error in one event does not affect the others."""
    try:
        again = composed(TaskServices).event_tasks.take_in([_arrival(record) for record in event["Records"]])
        return {"batchItemFailures": [{"itemIdentifier": arrival.id} for arrival in again]}
    finally:
        composed().telemetry.flush()


def _arrival(record: Mapping[str, Any]) -> Arrival:
    id_, body = record["messageId"], record["body"]
    # The same at every delivery of a message.
    delivered = Origin(_QUEUE, id_, int(record["attributes"]["SentTimestamp"]))
    try:
        spec, origin = task_of_event(body, delivered)
    except RequestError as refusal:
        return Arrival(id_, body, refusal)
    trace = record.get("messageAttributes", {}).get(TRACEPARENT, {}).get("stringValue")
    return Arrival(id_, body, Order(spec, origin=origin, traceparent=read_traceparent(trace)))
