"""Runs one phase of a handler for the worker that has claimed the handler's task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.invoked_functions import PackageServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Run the phase in the event, and return how it ended."""
    try:
        return composed(PackageServices).function.answer(event)
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(PackageServices).function)
