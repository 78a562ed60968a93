"""Makes random calls to an SQS queue, with results in a form that does not depend on the implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_HOUR = 3600


class QueueCalls:
    """Makes calls to one implementation; with the same seed, the same calls are made to another queue.

    No call waits, because a message is visible at once, or only after 15 minutes or an hour.
    """

    def __init__(self, client: Any, random: Random) -> None:  # noqa: ANN401 - a client, or what stands in for one
        self.client = client
        self.random = random
        self.url = client.create_queue(QueueName=f"twin-{uuid4().hex[:8]}")["QueueUrl"]
        self.receipts: dict[str, str] = {}
        self.sent = 0

    def next(self) -> Any:  # noqa: ANN401 - any result
        """Make the next call."""
        call = self.random.choice([self._send, self._send_many, self._receive, self._receive, self._away, self._delete])
        try:
            return call.__name__, call()
        except ClientError as error:
            return call.__name__, error.response["Error"]["Code"], self._counts()

    def _body(self) -> str:
        self.sent += 1
        return "\ufffe" if self.random.random() < 0.05 else f'{{"i":{self.sent}}}'

    def _send(self) -> Any:  # noqa: ANN401 - any answer
        answer = self.client.send_message(
            QueueUrl=self.url if self.random.random() > 0.05 else f"{self.url}-nobody",
            MessageBody=self._body(),
            DelaySeconds=self.random.choice([0, 0, 900]),
            MessageAttributes={"reason": {"DataType": "String", "StringValue": "why"}},
        )
        return answer["MD5OfMessageBody"], self._counts()

    def _send_many(self) -> Any:  # noqa: ANN401 - any answer
        entries = [
            {
                "Id": self._id(number),
                "MessageBody": self._body(),
                "DelaySeconds": self.random.choice([0, 0, 900]),
                "MessageGroupId": self.random.choice(["ann", "sha256:00"]),
            }
            for number in range(self.random.choice([1, 2, 3, 10, 11]))
        ]
        return self._batch(self.client.send_message_batch, entries)

    def _receive(self) -> Any:  # noqa: ANN401 - any answer
        answer = self.client.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=self.random.choice([1, 3, 10]),
            VisibilityTimeout=self.random.choice([0, _HOUR, _HOUR]),
            MessageSystemAttributeNames=["MessageGroupId", "ApproximateReceiveCount"],
            MessageAttributeNames=self.random.choice([[], ["All"]]),
        )
        messages = answer.get("Messages", [])
        for message in messages:
            self.receipts[message["Body"]] = message["ReceiptHandle"]
        told = ("Body", "MD5OfBody", "Attributes", "MessageAttributes")
        return [[message.get(name) for name in told] for message in messages], self._counts()

    def _away(self) -> Any:  # noqa: ANN401 - any answer
        entries = [each | {"VisibilityTimeout": self.random.choice([0, _HOUR])} for each in self._held()]
        return self._batch(self.client.change_message_visibility_batch, entries)

    def _delete(self) -> Any:  # noqa: ANN401 - any answer
        return self._batch(self.client.delete_message_batch, self._held())

    def _held(self) -> list[dict[str, Any]]:
        """Return entries for some of the messages received so far, which may have been deleted long ago."""
        bodies = sorted(self.receipts)
        chosen = self.random.sample(bodies, min(len(bodies), self.random.randint(0, 4)))
        return [{"Id": self._id(number), "ReceiptHandle": self.receipts[body]} for number, body in enumerate(chosen)]

    def _id(self, number: int) -> str:
        return self.random.choice(["", "a b", "1"]) if self.random.random() < 0.02 else str(number)

    def _batch(self, call: Callable[..., Any], entries: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - any answer
        answer = call(QueueUrl=self.url, Entries=entries)
        failed = [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer.get("Failed", [])]
        return [entry["Id"] for entry in answer.get("Successful", [])], failed, self._counts()

    def _counts(self) -> Any:  # noqa: ANN401 - any answer
        kinds = ["", "NotVisible", "Delayed"]
        names = [f"ApproximateNumberOfMessages{kind}" for kind in kinds]
        return self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
