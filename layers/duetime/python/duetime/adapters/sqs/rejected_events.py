"""Invalid events on the intake's dead-letter queue: unchanged, with the reason as an attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from duetime.domain.limits import MAX_REASON_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_sqs import SQSClient

    from duetime.ports.queues import Reject
    from duetime.ports.runtime import Executor

REASON = "reason"
"""Name of the attribute with the reason."""


class SqsRejects:
    """`duetime.ports.queues.Rejects` over SQS; one message per request, as several could be too large together.

    Args:
        client: client of SQS.
        url: URL of the queue.
        executor: sends in parallel.
    """

    def __init__(self, client: SQSClient, url: str, executor: Executor) -> None:
        self._client = client
        self._url = url
        self._executor = executor

    def put(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Send events to the queue; return those that it did not acknowledge."""
        acknowledged = self._executor.map(self._put, rejects)
        return [reject for reject, is_kept in zip(rejects, acknowledged, strict=True) if not is_kept]

    def _put(self, reject: Reject) -> bool:
        try:
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=reject.body,
                MessageAttributes={REASON: {"DataType": "String", "StringValue": _printable(reject.reason)}},
            )
        except (ClientError, BotoCoreError):
            # An event that is too large with its reason is delivered again until SQS itself gives it up.
            return False
        return True


def _printable(reason: str) -> str:
    """A reason in characters allowed in every attribute; it may quote the event."""
    text = "".join(letter if " " <= letter <= "~" else ascii(letter)[1:-1] for letter in reason)
    return text[:MAX_REASON_LENGTH] or "unknown"
