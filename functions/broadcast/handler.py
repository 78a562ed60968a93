"""Passes a batch of records of the table's stream to the consumers that are turned on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.broadcast import BroadcastServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's signature
    """Tell everybody; it raises only if a figure that must be right is not: then the batch is delivered again."""
    try:
        services = composed(BroadcastServices)
        services.broadcaster.broadcast(services.changes(event))
    finally:
        composed().telemetry.flush()
