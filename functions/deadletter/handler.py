"""Handles a batch of dead letters, and returns the ids of failed letters for redelivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.attempts import DeadLetterServices
from duetime.composition.core import CoreServices
from duetime.domain.errors import Unavailable
from duetime.domain.tracebacks import places_of

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from duetime.ports.queues import Delivery


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Process each dead letter, or return its id for redelivery."""
    try:
        if composed().is_standby:
            # The letters can be dropped, because the other Region has a timer for each open task.
            return {"batchItemFailures": []}
        kept = [delivery for delivery in composed(CoreServices).deliveries(event) if not _buried(delivery)]
        return {"batchItemFailures": [{"itemIdentifier": delivery.id} for delivery in kept]}
    finally:
        composed().telemetry.flush()


def _buried(delivery: Delivery) -> bool:
    try:
        return composed(DeadLetterServices).dead_letters.bury(delivery.message)
    except Unavailable:
        return False
    except Exception as error:  # noqa: BLE001 - a defect in one letter must not affect the batch
        telemetry = composed().telemetry
        telemetry.count("dead_letter_errors")
        telemetry.note("a dead letter could not be examined", error=places_of(error), delivery=delivery.id)
        return False


prepare(lambda: composed(DeadLetterServices).dead_letters)
