"""Reads the tasks that are due in each minute, and puts them on queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.schedules import TriggerServices
from duetime.domain.dispatch.cursors import GROUP

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Read the group of shards that the event names, or start the reads of all groups.

    The function uses the current time and not the event's time, because a tick may be late, and because the local
    engine does not fill in the event's time.
    """
    holder = context.aws_request_id
    try:
        if (region := composed().region) is not None and not region.is_active():
            region.note_standby(composed().telemetry)
            return
        if GROUP in event:
            composed(TriggerServices).dispatcher.read_group(int(event[GROUP]), holder)
        else:
            composed(TriggerServices).dispatcher.tick(holder)
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(TriggerServices).dispatcher)
