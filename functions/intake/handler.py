"""Creates and cancels tasks as events say, and returns the failed events for redelivery."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.intake import IntakeServices
from duetime.contract.tasks import intake_events
from duetime.domain.errors import RequestError
from duetime.domain.ids import TRACEPARENT, read_traceparent
from duetime.domain.tasks.creation import Order, Origin
from duetime.services.intake import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from duetime.contract.tasks.intake_events import IntakeEvent

_QUEUE = "queue"
"""Source for messages that were sent directly to the queue, not as events; SQS assigns their ids."""
_STREAM = "aws:dynamodb"


class DeliveryFailed(Exception):
    """Some events of a delivery that cannot be repeated in parts must be delivered again."""


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Process the batch; an error in one event does not affect the others.

    Raises:
        DeliveryFailed: a delivery of CloudWatch Logs must be repeated as a whole.
    """
    creator = composed(IntakeServices).event_tasks
    try:
        if "awslogs" in event:
            lines = intake_events.events_of_logs(event["awslogs"]["data"])
            again = creator.take_in([each for line in lines for each in _by_rules(line.origin.id, line)])
            if again:
                raise DeliveryFailed(f"{len(again)} lines of a log must be delivered again")
            return {}
        again = creator.take_in([each for record in event["Records"] for each in _arrivals(record)])
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in again]}
    finally:
        composed().telemetry.flush()


def _arrivals(record: Mapping[str, Any]) -> Iterator[Arrival]:
    """What a record asks for: nothing, a task, or what each rule says that it matches."""
    if record["eventSource"] == _STREAM:
        change = record["dynamodb"]
        body = json.dumps(record, default=str)
        yield from _read(change["SequenceNumber"], body, lambda: intake_events.event_of_stream(record))
        return
    id_, body = record["messageId"], record["body"]
    if record["eventSourceARN"] in composed().settings.intake_queues:
        yield from _read(id_, body, lambda: intake_events.event_of_message(record))
        return
    try:
        document = intake_events.read_message(body)
        if not intake_events.is_for_rules(document, composed().settings.intake_detail_type):
            # The same at every delivery of a message.
            delivered = Origin(_QUEUE, id_, int(record["attributes"]["SentTimestamp"]))
            spec, origin = intake_events.task_of_event(document, delivered)
            trace = record.get("messageAttributes", {}).get(TRACEPARENT, {}).get("stringValue")
            order = Order(spec, origin=origin, traceparent=read_traceparent(trace))
            yield Arrival(id_, body, order, composed(IntakeServices).owner)
            return
    except RequestError as refusal:
        yield Arrival(id_, body, refusal)
        return
    yield from _read(id_, body, lambda: intake_events.event_of(document))


def _read(id_: str, body: str, read: Callable[[], IntakeEvent]) -> Iterator[Arrival]:
    try:
        event = read()
    except RequestError as refusal:
        yield Arrival(id_, body, refusal)
        return
    yield from _by_rules(id_, event, body)


def _by_rules(id_: str, event: IntakeEvent, body: str | None = None) -> Iterator[Arrival]:
    """What each rule says that an event matches."""
    # Few deployments have rules, so the module is imported only for them.
    from duetime.contract.intake_rules import arrivals_of  # noqa: PLC0415 - see the line above

    text = json.dumps(event.value) if body is None else body
    try:
        found = arrivals_of(composed(IntakeServices).rule_cache.rules(), event)
    except Exception as failure:  # noqa: BLE001 - another event of the batch must not suffer
        yield Arrival(id_, text, failure)
        return
    if not found:
        composed().telemetry.count("intake_unmatched", 1)
    for owner, wanted in found:
        yield Arrival(id_, text, wanted, owner)
