"""Processes a batch of messages, and returns the messages that must not be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.attempts import SwitchServices
from duetime.composition.core import CoreServices
from duetime.composition.worker import WorkerServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process the batch; never raises, because an error would make SQS redeliver all messages of the batch."""
    try:
        if composed().is_standby:
            # The other Region has a timer for each open task.
            return {"batchItemFailures": []}
        # The switches are read before the batch begins; otherwise each of its threads would read them.
        composed(SwitchServices).gate.look()
        deliveries = composed(CoreServices).deliveries(event)
        kept = composed(WorkerServices).batch_worker.work(deliveries, context.aws_request_id[:8])
        return {"batchItemFailures": [{"itemIdentifier": delivery.id} for delivery in kept]}
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(WorkerServices).batch_worker)
