"""Works on a batch of messages and reports those that must not be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Work on the batch; never raises, because that would bring the whole batch back."""
    inside = composed()
    try:
        # Before the batch begins: else each of its threads would read the switches for itself.
        inside.switch_gate.look()
        kept = inside.batch_worker.work(inside.deliveries(event), context.aws_request_id[:8])
        return {"batchItemFailures": [{"itemIdentifier": delivery.id} for delivery in kept]}
    finally:
        inside.telemetry.flush()
