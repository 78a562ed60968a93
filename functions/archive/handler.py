"""Copies a batch of removed records to the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.stream import ArchiveServices

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's signature
    """Archive the batch, and raise an exception only if a store fails, so that the batch is redelivered."""
    try:
        services = composed(ArchiveServices)
        services.archiver.archive(services.removed(event))
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(ArchiveServices).archiver)
