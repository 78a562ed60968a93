"""Tests which error the client raises for each rejection by the API."""

from __future__ import annotations

import pytest

from duetime_client import (
    AddressInvalid,
    ApiError,
    BearerToken,
    Client,
    Conflict,
    CredentialsMissing,
    Forbidden,
    HeaderInvalid,
    InvalidField,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    RateLimited,
    ServerError,
    Unauthenticated,
    UnexpectedResponse,
)
from duetime_client.problems import seconds_of
from tests.client.deployment import NOW, Answer, Deployment, problem


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, InvalidRequest),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (412, PreconditionFailed),
        (413, InvalidRequest),
        (422, InvalidRequest),
        (418, ApiError),
        (429, RateLimited),
        (500, ServerError),
        (599, ServerError),
    ],
)
def test_the_status_of_a_problem_selects_the_error_class(
    client: Client, deployment: Deployment, status: int, expected: type[ApiError]
) -> None:
    """The status decides the error's class, and the message contains the API's text and code."""
    deployment.scripted.extend([problem(status, "the_code", "what happened")] * 4)
    with pytest.raises(ApiError) as caught:
        client.tasks.get("x")
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.code) == (status, "the_code")
    assert str(caught.value) == f"what happened ({status} the_code)"


def test_an_invalid_request_names_its_fields(client: Client, deployment: Deployment) -> None:
    """The error for an invalid request contains the reason and code for every rejected field."""
    refused = {"field": "retry.max_attempts", "reason": "at most 100", "code": "out_of_range"}
    deployment.scripted.append(problem(400, "invalid_request", "one field is wrong", refused))
    with pytest.raises(InvalidRequest) as caught:
        client.tasks.create("report")
    assert caught.value.errors == (InvalidField("retry.max_attempts", "at most 100", "out_of_range"),)


@pytest.mark.parametrize("document", [None, [], {"errors": "none", "detail": 7}, {"errors": [1, {"field": 2}]}])
def test_a_malformed_problem_is_still_the_error_of_its_status(
    client: Client, deployment: Deployment, document: object
) -> None:
    """If members of a problem have wrong types, the status decides the error's class and message."""
    deployment.scripted.append(Answer(400, document, content_type="application/problem+json"))
    with pytest.raises(InvalidRequest, match=r"^Bad Request \(400 Bad Request\)$"):
        client.tasks.get("x")


def test_a_rejection_by_api_gateway_keeps_its_message(client: Client, deployment: Deployment) -> None:
    """If API Gateway refuses a request, the error has the gateway's message."""
    deployment.scripted.append(Answer(403, {"message": "Missing Authentication Token"}))
    with pytest.raises(Forbidden, match="Missing Authentication Token"):
        client.tasks.get("x")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, {"message": "Not Found"}),
        Answer(404, text=b"<html>", content_type="text/html"),
        Answer(302, headers={"Location": "/login"}, text=b""),
        Answer(200, text=b"<html>", content_type="text/html"),
        Answer(200, text=b"[" * 100_000),
    ],
)
def test_a_404_of_another_server_is_not_a_missing_task(client: Client, deployment: Deployment, answer: Answer) -> None:
    """A wrong address raises a different error than a wrong id."""
    deployment.scripted.append(answer)
    with pytest.raises(UnexpectedResponse, match="/stage/v1/tasks/x"):
        client.tasks.get("x")


def test_a_404_for_an_unknown_path_is_not_a_missing_task(client: Client, deployment: Deployment) -> None:
    """If the API's 404 says that the path is unknown, the error is about the address and not about a task."""
    deployment.scripted.append(problem(404, "path_not_found", "there is nothing at this path"))
    with pytest.raises(UnexpectedResponse, match="nothing at this path"):
        client.tasks.get("x")


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://h:x", "http://h/?a=b"])
def test_an_invalid_address_is_rejected_when_the_client_is_created(url: str) -> None:
    """An invalid address is refused when the client is created."""
    with pytest.raises(AddressInvalid):
        Client(url)


def test_the_error_for_an_address_without_scheme_shows_the_correct_form() -> None:
    """For an address without a scheme, the most frequent mistake, the error shows the correct form."""
    with pytest.raises(AddressInvalid, match="it must begin with https://"):
        Client("tasks.example.org")


@pytest.mark.parametrize("status", [404, 405])
def test_the_error_at_the_root_address_asks_for_the_complete_url(
    client: Client, deployment: Deployment, status: int
) -> None:
    """If another server at the local stack's root address rejects a request, the error asks for the complete URL."""
    deployment.scripted.append(Answer(status, {}))
    with pytest.raises(UnexpectedResponse, match="give its complete URL, with the path"):
        client.tasks.create("report")


@pytest.mark.parametrize("token", ["", " "])
def test_an_empty_token_is_rejected(token: str) -> None:
    """An empty token, for example from an unset variable, is refused before any request."""
    with pytest.raises(CredentialsMissing, match="empty"):
        BearerToken(token)


@pytest.mark.parametrize("key", ["ключ", "two\r\nlines"])
def test_an_idempotency_key_that_a_header_cannot_carry_is_rejected(
    client: Client, deployment: Deployment, key: str
) -> None:
    """An idempotency key that a header cannot carry unchanged is refused, and nothing is sent."""
    with pytest.raises(HeaderInvalid):
        client.tasks.create("report", idempotency_key=key)
    assert deployment.received == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("1000000", 86_400.0),
        ("9" * 400, 86_400.0),
        ("Sat, 21 Nov 2027 12:00:30 GMT", 86_400.0),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 12:00:30 -0000", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    """`Retry-After` is read as seconds or an HTTP date; any other value is ignored."""
    assert seconds_of(header, NOW) == seconds
