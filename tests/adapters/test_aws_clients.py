"""The clients of AWS, as threads share them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import boto3
import botocore
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ParamValidationError
from urllib3 import HTTPResponse

from duetime.adapters.aws_clients import Clients

if TYPE_CHECKING:
    from collections.abc import Callable

MAKERS: dict[str, Callable[[Clients], object]] = {
    "dynamodb": Clients.dynamodb,
    "sqs": Clients.sqs,
    "s3": Clients.s3,
    "lambda": Clients.lambdas,
    "lambda that is waited for": Clients.calling_lambdas,
    "sns": Clients.sns,
    "events": Clients.events,
    "step functions": Clients.step_functions,
    "jobs": lambda clients: clients.jobs("ecs", "eu-west-1"),
    "connections": lambda clients: clients.connections("https://example.com"),
    "secrets": Clients.secrets,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_client_comes_with_the_classes_of_its_errors(make: Callable[[Clients], object]) -> None:
    """Concurrent creation would produce different exception classes, so they are created with the client."""
    session = boto3.Session("AKIAEXAMPLE", "secret", region_name="eu-west-1")
    client = cast("Any", make(Clients(session)))
    client._load_exceptions = lambda: pytest.fail("the classes of errors are made when they are asked for")
    assert client.exceptions.ClientError


def test_a_request_names_duetime_and_the_sdk_in_few_words() -> None:
    """AWS's logs show duetime in the user agent, without the long list of the SDK's components."""
    client, sent = _recorded(Clients.sqs)
    client.send_message(QueueUrl="https://example.com/queue", MessageBody="{}")
    (agent,) = [request.headers["User-Agent"].decode() for request in sent]
    # Marks the text that botocore composes; Powertools and a boto3 session add some words.
    assert agent.startswith(f"duetime Botocore/{botocore.__version__}")
    assert "ua/2.1" not in agent


def test_only_the_queues_of_duetime_are_called_without_validation_on_this_side() -> None:
    """Users' target requests are validated before sending; duetime's own queue requests are not."""
    own, sent = _recorded(Clients.sqs)
    own.send_message(QueueUrl="https://example.com/queue", MessageBody=5)
    assert len(sent) == 1
    targets, sent = _recorded(lambda clients: clients.sqs("eu-west-1"))
    with pytest.raises(ParamValidationError):
        targets.send_message(QueueUrl="https://example.com/queue", MessageBody=5)
    assert sent == []


def _recorded(make: Callable[[Clients], object]) -> tuple[Any, list[Any]]:
    """A client whose requests are recorded, with arbitrary responses."""
    client = cast("Any", make(Clients(boto3.Session("AKIAEXAMPLE", "secret", region_name="eu-west-1"))))
    sent = []

    def answer(request: object, **_about: object) -> AWSResponse:
        sent.append(request)
        return AWSResponse("https://example.com", 200, HTTPHeaders(), HTTPResponse(BytesIO(b"{}")))

    client.meta.events.register("before-send", answer)
    return client, sent
