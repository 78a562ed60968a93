"""The code for the reason why a task waits is derived from the words in its record."""

from __future__ import annotations

import pytest

from duetime.domain.limits import MAX_RECORDED_WAIT_LENGTH
from duetime.domain.restore import RESTORED
from duetime.domain.tasks.wait_reasons import APPROVAL_AWAITED, EVENT_AWAITED, WaitReason, wait_reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lock db-17", WaitReason.LOCK),
        ("a lock that it lost", WaitReason.LOCK),
        ("lock type/report", WaitReason.CONCURRENCY_LIMIT),
        ("quota of attempts", WaitReason.CONCURRENCY_LIMIT),
        ("order customer-17", WaitReason.ORDER),
        ("rate crm", WaitReason.RATE),
        ("group night", WaitReason.GROUP),
        (APPROVAL_AWAITED, WaitReason.APPROVAL),
        (f"{EVENT_AWAITED}order.paid", WaitReason.EVENT),
        ("everything is stopped: an incident", WaitReason.SWITCH),
        ("type report is stopped", WaitReason.SWITCH),
        ("owner ann is stopped: lock db-17", WaitReason.SWITCH),
        (f"type {'t' * 64}"[:MAX_RECORDED_WAIT_LENGTH], WaitReason.SWITCH),
        ("the switches could not be read yet", WaitReason.SWITCH),
        ("the circuit of example.org is open", WaitReason.CIRCUIT),
        ("the run of 2026-11-21T02:33:07.250Z", WaitReason.OVERLAP),
        ("HandlersUnavailable: No module named 'handlers'", WaitReason.HANDLERS),
        ("pull workers of resize", WaitReason.WORKER),
        ("a worker: the last one released it", WaitReason.WORKER),
        ("a function with time left", WaitReason.WORKER),
        ("a lease with time left", WaitReason.WORKER),
        (RESTORED, WaitReason.OTHER),
        ("Invoke: TooManyRequestsException", WaitReason.TARGET),
        ("the state machine could not be started: throttled", WaitReason.TOPOLOGY),
        ("its state machine's execution was lost", WaitReason.TOPOLOGY),
        ("nodes of its last run have not ended", WaitReason.TOPOLOGY),
        ("its own target", WaitReason.OTHER),
        ("words of a version that nobody knows", WaitReason.OTHER),
        ("", WaitReason.OTHER),
    ],
)
def test_every_wait_reason_has_its_own_code(text: str, reason: WaitReason) -> None:
    """The words for each reason give the reason's code, and unknown words give `other`."""
    assert wait_reason(text) is reason
