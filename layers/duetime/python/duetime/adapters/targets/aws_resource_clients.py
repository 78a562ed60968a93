"""Clients of the services of target resources, each in the resource's region, created when first needed."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

    from duetime.adapters.aws_clients import Clients

C = TypeVar("C")


class Resources:
    """Threads may share it: a session must not create two clients at once."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._lock = Lock()
        self._made: dict[tuple[str, str, str], object] = {}

    def lambdas(self, arn: str) -> LambdaClient:
        """A client for a function, which waits for its result and calls it only once."""
        return self._client(self._clients.calling_lambdas, arn)

    def sqs(self, arn: str) -> SQSClient:
        """A client for a queue."""
        return self._client(self._clients.sqs, arn)

    def sns(self, arn: str) -> SNSClient:
        """A client for a topic."""
        return self._client(self._clients.sns, arn)

    def events(self, arn: str) -> EventBridgeClient:
        """A client for an event bus."""
        return self._client(self._clients.events, arn)

    def step_functions(self, arn: str) -> SFNClient:
        """A client for a state machine."""
        return self._client(self._clients.step_functions, arn)

    def jobs(self, service: str, arn: str) -> Any:  # noqa: ANN401 - boto3's own
        """A client of a service that runs jobs, by its name in boto3."""
        return self._client(partial(self._clients.jobs, service), arn, "jobs")

    def _client(self, make: Callable[[str], C], arn: str, use: str = "") -> C:
        _, _, service, region, *_ = arn.split(":")
        with self._lock:
            if (service, region, use) not in self._made:
                self._made[service, region, use] = make(region)
            return self._made[service, region, use]  # type: ignore[return-value]  # made by one function only
