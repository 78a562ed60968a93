"""Carries out a bulk operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.bulk import BulkExecutorServices
from duetime.domain.bulk.operation import OPERATION
from duetime.domain.ids import TaskId

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Carry out the operation that the event names, as far as this invocation's time goes."""
    try:
        composed(BulkExecutorServices).executor.carry_out(TaskId(event[OPERATION]), context.aws_request_id)
    finally:
        composed().telemetry.flush()
