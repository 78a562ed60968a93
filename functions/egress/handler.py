"""Makes a batch of HTTP calls, and returns a reply for each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.invoked_functions import HttpServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Make the calls in parallel. If a call fails, its reply contains the error."""
    try:
        return composed(HttpServices).egress.answer(event)
    finally:
        composed().tracer.flush()


prepare(lambda: composed(HttpServices).egress)
