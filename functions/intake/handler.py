"""Creates, cancels and wakes tasks for events, and returns the ids of failed events for redelivery."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.api import IntakeServices
from duetime.contract.tasks.intake_events import events_of_logs, read_record
from duetime.domain.errors import RequestError
from duetime.services.intake import Arrival

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


class DeliveryFailed(Exception):
    """Some log lines must be delivered again. Lambda then repeats the entire delivery."""


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Process the batch. An error in one event does not affect the other events.

    Raises:
        DeliveryFailed: some lines from CloudWatch Logs must be delivered again.
    """
    if (region := composed().region) is not None:
        # In a standby Region, this raises an exception, so that the events stay in their queue until the Region is
        # active.
        region.check()
    creator = composed(IntakeServices).event_tasks
    try:
        if "awslogs" in event:
            lines = events_of_logs(event["awslogs"]["data"])
            if again := creator.take_in([Arrival(line.origin.id, json.dumps(line.value), line) for line in lines]):
                raise DeliveryFailed(f"{len(again)} lines of a log must be delivered again")
            return {}
        again = creator.take_in([_arrival(record) for record in event["Records"]])
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in again]}
    finally:
        composed().telemetry.flush()


def _arrival(record: Mapping[str, Any]) -> Arrival:
    change = record.get("dynamodb")
    # Lambda expects sequence numbers for failed changes, and message ids for failed messages.
    id_, body = (
        (record["messageId"], record["body"]) if change is None else (change["SequenceNumber"], json.dumps(record))
    )
    settings = composed().settings
    try:
        return Arrival(id_, body, read_record(record, settings.intake_queues, settings.intake_detail_type))
    except RequestError as refusal:
        return Arrival(id_, body, refusal)


prepare(lambda: composed(IntakeServices).event_tasks)
