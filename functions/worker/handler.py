"""Processes a batch of messages, and returns the ids of messages that must not be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.attempts import SwitchServices
from duetime.composition.core import CoreServices
from duetime.composition.worker import WorkerServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process the batch.

    This function must not raise an exception, which would return the entire batch to the queue.
    """
    try:
        if composed().is_standby:
            # The messages can be dropped, because the other Region has a timer for each open task.
            return {"batchItemFailures": []}
        # The switches are read before the batch begins, because otherwise each of the batch's threads would read them.
        composed(SwitchServices).gate.look()
        deliveries = composed(CoreServices).deliveries(event)
        kept = composed(WorkerServices).batch_worker.work(deliveries, context.aws_request_id[:8])
        return {"batchItemFailures": [{"itemIdentifier": delivery.id} for delivery in kept]}
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(WorkerServices).batch_worker)
