"""The clients of AWS, as threads share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest

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
    """Threads that had them made at once would each catch classes of their own, and let the others' pass."""
    session = boto3.Session("AKIAEXAMPLE", "secret", region_name="eu-west-1")
    client = cast("Any", make(Clients(session)))
    client._load_exceptions = lambda: pytest.fail("the classes of errors are made when they are asked for")
    assert client.exceptions.ClientError
