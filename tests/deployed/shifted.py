"""Runs the unmodified functions in this process, with the deployed stack's table and queues and a shifted time."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from duetime import composition
from duetime.adapters.runtime.process import SystemClock
from duetime.environment_variables import Variable
from tests.functions.stack import LambdaContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_sqs.type_defs import MessageTypeDef

    from duetime_local.stack import Stack


@dataclass(frozen=True, slots=True)
class ShiftedClock:
    """A clock that is a fixed time ahead of the system's clock."""

    ahead_ms: int

    def now(self) -> int:
        """The shifted time, in milliseconds."""
        return SystemClock().now() + self.ahead_ms

    def sleep_until(self, at: int) -> None:
        """Wait until the shifted time is at least `at`."""
        SystemClock().sleep_until(at - self.ahead_ms)


@contextmanager
def function_at(
    stack: Stack, name: str, clock: ShiftedClock, changed: Mapping[str, str] | None = None
) -> Iterator[Callable[[dict[str, Any]], Any]]:
    """A deployed function's handler, with a different clock and with some of the function's variables changed."""
    function_name = stack.deployment.outputs[f"{name.capitalize()}FunctionName"]
    configuration = stack.emulator.client("lambda").get_function_configuration(FunctionName=function_name)
    # The users' handlers are in a layer of the deployed function, and are not on this process's path.
    mine = {"AWS_LAMBDA_FUNCTION_NAME": function_name, Variable.HANDLERS.value: ""}
    environ = {**configuration["Environment"]["Variables"], **mine, **(changed or {})}
    handler = __import__(f"functions.{name}.handler", fromlist=["handler"]).handler
    # The adapters' clients read the process's environment variables, as they do in Lambda.
    with patch.dict("os.environ", {**environ, **stack.emulator.environ}):
        composition.use(composition.Platform(environ=environ, clock=clock))
        try:
            yield lambda event: handler(event, LambdaContext(function_name))
        finally:
            composition.use(None)


def event_of(message: MessageTypeDef, queue_arn: str) -> dict[str, Any]:
    """An SQS message in the form in which Lambda passes it to a function."""
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": "us-east-1",
    }
    return {"Records": [record]}
