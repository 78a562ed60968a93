"""Tests expiry and refusals in the fake SQS after hours and days, which cannot be tested with the embedded AWS."""

from __future__ import annotations

from typing import Any

import pytest

from duetime_testing.fakes.sqs import FakeSQS

HOUR, DAY = 3_600_000, 24 * 3_600_000


class _Queue:
    """A queue in a fake SQS with the test's time."""

    def __init__(self, **attributes: str) -> None:
        self.now = 0
        self.sqs = FakeSQS(lambda: self.now)
        self.url = self.sqs.create_queue(QueueName="normal", Attributes=attributes)["QueueUrl"]
        self.sqs.send_message(QueueUrl=self.url, MessageBody="{}")

    def received(self, at: int) -> list[dict[str, Any]]:
        self.now = at
        found: list[dict[str, Any]] = self.sqs.receive_message(QueueUrl=self.url).get("Messages", [])
        return found


@pytest.mark.parametrize(("attributes", "days"), [({}, 4), ({"MessageRetentionPeriod": "1209600"}, 14)])
def test_a_message_is_deleted_after_the_retention_of_its_queue(attributes: dict[str, str], days: int) -> None:
    """A message is deleted four days after it was sent, unless the queue has another setting."""
    queue = _Queue(**attributes)
    assert queue.received(days * DAY - HOUR)
    assert not queue.received(days * DAY)


def test_a_message_is_hidden_for_at_most_twelve_hours_after_its_receipt() -> None:
    """The visibility timeout's limit counts from the receipt, so that after an hour eleven hours are left."""
    queue = _Queue()
    (message,) = queue.received(0)
    entry = {"Id": "1", "ReceiptHandle": message["ReceiptHandle"]}
    queue.now = HOUR
    hidden = [
        queue.sqs.change_message_visibility_batch(
            QueueUrl=queue.url, Entries=[{**entry, "VisibilityTimeout": hours * 3_600}]
        )
        for hours in (12, 11)
    ]
    assert hidden[0]["Failed"][0]["Code"] == "InvalidParameterValue"
    assert hidden[1]["Successful"] == [{"Id": "1"}]
    assert not queue.received(12 * HOUR - 1)
    assert queue.received(12 * HOUR)
