"""Tests which requests the client retries, and how long it waits."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from duetime_client import ApiError, Client, Conflict, RateLimited, Retries, Unreachable
from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable

HANG_UP = Answer(None)
GATEWAY = Answer(503, {"message": "Service Unavailable"})
CALLS: dict[str, Callable[[Client], object]] = {
    "get": lambda client: client.tasks.get("x"),
    "create": lambda client: client.tasks.create("report"),
    "batch": lambda client: client.tasks.create_batch([{"type": "report"}]),
    "change": lambda client: client.tasks.update("x", name="n"),
    "cancel": lambda client: client.tasks.cancel("x"),
}


def refusal(retry_after: str | None = None, status: int = 429) -> Answer:
    """Return a response that asks the client to slow down."""
    headers = {"Retry_After": retry_after} if retry_after else {}
    return problem(status, "throttled", "slow down", **headers)


@pytest.mark.parametrize("failure", [HANG_UP, GATEWAY, Answer(500, None), Answer(502, None), Answer(504, None)])
def test_a_create_request_is_resent_with_its_key_after_a_lost_response(
    client: Client, deployment: Deployment, failure: Answer
) -> None:
    """After a lost response, the request is resent with the same key and creates only one task."""
    deployment.scripted.append(failure)
    client.tasks.create("report")
    first, second = deployment.received
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.body == second.body
    assert len(deployment.tasks) == 1


@pytest.mark.parametrize("failure", [HANG_UP, GATEWAY, Answer(500, None)])
@pytest.mark.parametrize("call", ["change", "cancel"])
def test_an_update_that_may_have_been_applied_is_not_retried(
    client: Client, deployment: Deployment, failure: Answer, call: str
) -> None:
    """An update or a cancel request without a response is not retried and raises an error."""
    deployment.scripted.append(failure)
    with pytest.raises((ApiError, Unreachable)):
        CALLS[call](client)
    assert len(deployment.received) == 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("call", CALLS)
def test_a_rejection_with_retry_after_is_retried(
    client: Client, deployment: Deployment, call: str, status: int
) -> None:
    """Any request that the API rejects with a `Retry-After` header is retried, because the retry is safe."""
    deployment.tasks["x"] = dict(client.tasks.create("report").document)
    deployment.received.clear()
    deployment.scripted.append(refusal("1", status))
    CALLS[call](client)
    assert len(deployment.received) == 2


def test_a_wait_is_retry_after_plus_a_growing_backoff(
    client: Client, deployment: Deployment, waits: list[float]
) -> None:
    """With random numbers of one half, a wait is the API's `Retry-After` plus half of a doubling backoff."""
    client.tasks.create("report")
    deployment.scripted.extend([refusal("3"), refusal(), HANG_UP])
    list(client.tasks.list())
    assert waits == pytest.approx([3.1, 0.2, 0.4])


def test_full_jitter_waits_between_zero_and_the_backoff() -> None:
    """With full jitter, a wait is random between zero and the backoff, which has an upper limit."""
    retries, error = Retries(initial_seconds=1, max_seconds=5), Unreachable("u", "r", sent=True)
    assert retries.wait_seconds(error, 3, lambda: 0.0) == 0
    assert retries.wait_seconds(error, 3, lambda: 1.0) == 4
    assert retries.wait_seconds(error, 9, lambda: 1.0) == 5


def test_the_error_after_the_last_throttled_attempt_has_the_retry_time(
    client: Client, deployment: Deployment, waits: list[float]
) -> None:
    """The error after the last attempt says after how many seconds the request can be repeated."""
    deployment.scripted.extend([refusal("2")] * 9)
    with pytest.raises(RateLimited) as caught:
        client.tasks.get("x")
    assert caught.value.retry_after == 2
    assert (len(deployment.received), len(waits)) == (4, 3)


def test_the_client_does_not_wait_for_a_long_retry_after(
    client: Client, deployment: Deployment, waits: list[float]
) -> None:
    """The client does not wait for a `Retry-After` of an hour."""
    deployment.scripted.append(refusal("3600"))
    with pytest.raises(RateLimited):
        client.tasks.get("x")
    assert waits == []


def test_a_conflict_is_not_retried(client: Client, deployment: Deployment) -> None:
    """A request that is rejected with a conflict is not retried."""
    deployment.scripted.append(problem(409, "conflict", "the task is running"))
    with pytest.raises(Conflict):
        client.tasks.create("report")
    assert len(deployment.received) == 1


def test_any_request_is_retried_after_a_refused_connection(waits: list[float]) -> None:
    """If connections are refused, even a cancel request is retried, and finally the API is reported as unreachable."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", sleep=waits.append) as client, pytest.raises(Unreachable) as caught:
        client.tasks.cancel("x")
    assert (len(waits), caught.value.sent) == (3, False)
