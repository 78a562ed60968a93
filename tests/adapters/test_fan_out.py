from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from duetime.adapters.lambda_invocations import LambdaFanOut
from duetime.domain.dispatch.cursors import GROUP, groups_of
from duetime.domain.errors import Unavailable
from duetime.environment_variables import Variable
from duetime.settings import Settings
from tests.adapters.clouds import EXECUTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_lambda import LambdaClient


def client_answering(answer: Callable[[dict[str, Any]], Any]) -> LambdaClient:
    """Return a real Lambda client whose requests stay within the test."""
    client = boto3.Session("testing", "testing", region_name="us-east-1").client("lambda")

    def intercept(params: dict[str, Any], **_: object) -> Any:  # noqa: ANN401 - botocore's own
        return answer(params)

    client.meta.events.register("before-call.lambda.Invoke", intercept)
    return client


class _Answered:
    """The parts of an HTTP response that botocore reads."""

    def __init__(self, status: int) -> None:
        self.status_code = status


@pytest.mark.slow
def test_each_group_is_read_by_an_asynchronous_invocation_of_the_same_function() -> None:
    """Forty shards are sent as three asynchronous events, one per group, to the same function."""
    asked: list[dict[str, Any]] = []

    def accept(params: dict[str, Any]) -> Any:  # noqa: ANN401 - botocore's own
        asked.append(params)
        return _Answered(202), {"StatusCode": 202, "ResponseMetadata": {"HTTPStatusCode": 202}}

    LambdaFanOut(client_answering(accept), "trigger-function", EXECUTOR).read_groups(groups_of(40))
    assert sorted(json.loads(params["body"])[GROUP] for params in asked) == [0, 1, 2]
    assert all("/functions/trigger-function/" in params["url"] for params in asked)
    assert {params["headers"]["X-Amz-Invocation-Type"] for params in asked} == {"Event"}


def test_a_throttled_invocation_fails_the_tick_visibly() -> None:
    """If an invocation is throttled, the tick fails visibly, and the next tick continues with the unread groups."""

    def refuse(_params: dict[str, Any]) -> Any:  # noqa: ANN401 - botocore's own
        return _Answered(429), {
            "Error": {"Code": "TooManyRequestsException", "Message": "slow down"},
            "ResponseMetadata": {"HTTPStatusCode": 429},
        }

    with pytest.raises(Unavailable):
        LambdaFanOut(client_answering(refuse), "trigger-function", EXECUTOR).read_groups(range(2))


@pytest.mark.parametrize(("version", "name"), [("17", "trigger:live"), ("$LATEST", "trigger"), ("", "trigger")])
def test_the_trigger_invokes_its_alias(version: str, name: str) -> None:
    """A published version invokes its alias; without versions, as in the local stack, the function is invoked."""
    environ: dict[str, str] = {Variable.FUNCTION_NAME: "trigger", Variable.FUNCTION_VERSION: version}
    assert Settings(environ).invoked_as == name
