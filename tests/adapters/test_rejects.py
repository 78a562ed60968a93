from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from duetime.adapters.sqs import REASON, SqsRejects
from duetime.domain.limits import MAX_REASON_LENGTH
from duetime.ports.queues import Reject
from tests.adapters.clouds import EXECUTOR
from tests.adapters.conftest import IMPLEMENTATIONS, cloud_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.ports.queues import Rejects
    from tests.adapters.clouds import Cloud

    Kept = Callable[[], set[tuple[str, str]]]


def queue(cloud: Cloud) -> tuple[SqsRejects, Kept]:
    """Return an empty reject queue and a function that reads its messages."""
    url = cloud.sqs.create_queue(QueueName=f"rejects-{uuid4().hex}")["QueueUrl"]
    found: set[tuple[str, str]] = set()

    def kept() -> set[tuple[str, str]]:
        while messages := cloud.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages", []):
            found.update((each["Body"], each["MessageAttributes"][REASON]["StringValue"]) for each in messages)
        return found

    return SqsRejects(cloud.sqs, url, EXECUTOR), kept


@pytest.fixture(params=IMPLEMENTATIONS)
def rejects(request: pytest.FixtureRequest) -> tuple[Rejects, Kept]:
    """Return an empty store of rejects and a function that reads its content."""
    return queue(cloud_of(request))


def test_rejects_are_stored_unchanged_with_their_reasons(rejects: tuple[Rejects, Kept]) -> None:
    """Any number of rejects is stored with their reasons; without rejects, no request is made."""
    place, kept = rejects
    given = [Reject(f"not json {number}", f"body: is not JSON at {number}") for number in range(12)]
    assert place.put([]) == []
    assert place.put(given) == []
    assert kept() == {(each.body, each.reason) for each in given}


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("", "unknown"),
        ("\x00\ud800ä", r"\x00\ud800\xe4"),
        ("a" * (MAX_REASON_LENGTH + 1), "a" * MAX_REASON_LENGTH),
    ],
)
def test_a_reject_can_have_any_reason(moto_cloud: Cloud, reason: str, told: str) -> None:
    """A reason can be empty or have characters that XML lacks, although SQS refuses such attributes."""
    place, kept = queue(moto_cloud)
    assert place.put([Reject("poison", reason)]) == []
    assert kept() == {("poison", told)}


def test_a_reject_that_is_too_large_for_the_queue_is_reported(moto_cloud: Cloud) -> None:
    """A message that the queue refuses as too large is returned to the caller, and the other rejects are stored."""
    place, kept = queue(moto_cloud)
    large, small = Reject("a" * 1_048_577, "is too large"), Reject("b", "is wrong")
    assert place.put([large, small]) == [large]
    assert kept() == {("b", "is wrong")}
