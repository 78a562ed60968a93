"""Passes batches from the table's stream to the enabled consumers, and recounts tasks on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.stream import BroadcastServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's signature
    """Pass the batch to all consumers, or recount tasks.

    If an exact consumer fails, an exception is raised, so that the batch is redelivered. An event without records comes
    from the schedule or from an operator; it counts the table's next part if a part is due, or restarts the counts
    (`{"recount": "anew"}`).
    """
    try:
        if composed().is_standby:
            # The function in the active Region passes on the same changes.
            return
        services = composed(BroadcastServices)
        if "Records" in event:
            services.broadcaster.broadcast(services.changes(event))
        elif event.get("recount") == "anew":
            services.recounter.begin_anew()
        else:
            services.recounter.run()
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(BroadcastServices).broadcaster)
