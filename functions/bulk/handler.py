"""Runs a bulk operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.api import BulkExecutorServices
from duetime.domain.bulk import OPERATION
from duetime.domain.ids import TaskId

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Run the bulk operation named in the event for as long as this invocation's timeout allows."""
    try:
        if composed().is_standby:
            # The operation has a timer, which continues the operation in the active Region.
            return
        composed(BulkExecutorServices).executor.carry_out(TaskId(event[OPERATION]), context.aws_request_id)
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(BulkExecutorServices).executor)
