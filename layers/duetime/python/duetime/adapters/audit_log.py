"""Writes the audit log to a separate log group in CloudWatch Logs, to which functions can only add lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from duetime.domain.times import Millis

_MISSING, _EXISTS = "ResourceNotFoundException", "ResourceAlreadyExistsException"


class CloudWatchAuditLog:
    """The `duetime.ports.stores.AuditLog` that uses a log group. Each process writes to a separate log stream.

    Args:
        client: boto3's client for CloudWatch Logs.
        group: the log group's name.
        stream: the log stream's name. The stream is created when the first line is added.
    """

    def __init__(self, client: Any, group: str, stream: str) -> None:  # noqa: ANN401 - its types are in another package
        self._client = client
        self._group = group
        self._stream = stream

    def add(self, at: Millis, line: str) -> None:
        """Add a line to the log. A line that is sent again after a lost response may be stored twice.

        Raises:
            Unavailable: the line could not be stored.
        """
        with translated():
            try:
                self._put_in_stream(at, line)
            except ClientError as error:
                # The request has already been carried out, so its response must not depend on any error from the log.
                raise Unavailable(str(error)) from error

    def _put_in_stream(self, at: Millis, line: str) -> None:
        try:
            self._put(at, line)
        except ClientError as error:
            if error.response["Error"]["Code"] != _MISSING:
                raise
            self._create_stream()
            self._put(at, line)

    def _put(self, at: Millis, line: str) -> None:
        self._client.put_log_events(
            logGroupName=self._group, logStreamName=self._stream, logEvents=[{"timestamp": at, "message": line}]
        )

    def _create_stream(self) -> None:
        try:
            self._client.create_log_stream(logGroupName=self._group, logStreamName=self._stream)
        except ClientError as error:
            if error.response["Error"]["Code"] != _EXISTS:
                raise
