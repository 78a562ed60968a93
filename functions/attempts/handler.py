"""Answers reports from running handlers in handler packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.invoked_functions import AttemptServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Answer one request from a handler's attempt."""
    try:
        return dict(composed(AttemptServices).function.answer(event))
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(AttemptServices).function)
