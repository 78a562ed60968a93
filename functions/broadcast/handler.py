"""Passes a batch of records of the table's stream to the consumers that are turned on; recounts tasks when asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.broadcast import BroadcastServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's signature
    """Tell everybody; it raises only if a figure that must be right is not: then the batch is delivered again.

    An event without records is the schedule's, or an operator's: `{"recount": "anew"}` begins the counts anew.
    """
    try:
        services = composed(BroadcastServices)
        if "Records" in event:
            services.broadcaster.broadcast(services.changes(event))
        elif event.get("recount") == "anew":
            services.recounter.begin_anew()
        else:
            services.recounter.run()
    finally:
        composed().telemetry.flush()
