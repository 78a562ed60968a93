"""Defines the calls for jobs in AWS services, and creates clients in each resource's Region."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.attempt_results import Failed, Succeeded
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

    from duetime.adapters.aws_clients import Clients
    from duetime.domain.tasks.targets import AwsTarget


class Resources:
    """Clients for the AWS resources that tasks call, each in the Region of the resource's ARN."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def lambdas(self, arn: str) -> LambdaClient:
        """A client for a function. The client waits for the function's result, and does not retry the call."""
        return self._clients.calling_lambdas(_region_of(arn))

    def sqs(self, arn: str) -> SQSClient:
        """A client for a queue."""
        return self._clients.sqs(_region_of(arn))

    def sns(self, arn: str) -> SNSClient:
        """A client for a topic."""
        return self._clients.sns(_region_of(arn))

    def events(self, arn: str) -> EventBridgeClient:
        """A client for an event bus."""
        return self._clients.events(_region_of(arn))

    def step_functions(self, arn: str) -> SFNClient:
        """A client for a state machine."""
        return self._clients.step_functions(_region_of(arn))

    def jobs(self, service: str, arn: str) -> Any:  # noqa: ANN401 - a client of boto3
        """A client for a service that runs jobs, given the service's name in boto3."""
        return self._clients.jobs(service, _region_of(arn))


def _region_of(arn: str) -> str:
    return arn.split(":")[3]


JobEnding = Succeeded | Failed
WHY_STOPPED = "stopped by duetime: its task was cancelled, or its time is over"


class NoCapacity(Exception):
    """The service has not started a job, but may start one if the request is repeated later."""


class NotListed(Exception):
    """The service has a job with this name, but does not list the job yet."""


class NoJob(Exception):
    """The service has started something that is not a job, and would start it again if the request were repeated."""


@frozen
class JobCalls:
    """The calls that start, read and stop a service's jobs.

    Attributes:
        start: starts a job with a given name, and returns its ARN.
        find: finds the job with a given name in the service's lists.
        ending: returns how a job ended; `None` while the job runs.
        stop: stops a job; this does not change a job that has ended.
        repeats: whether `start` may start a second job with the same name.
        name: returns a job's name from the started resource's name and the job's identifier in the event; `None` if the
            events of the service contain the name.
    """

    start: Callable[[Resources, AwsTarget, str, bytes], str]
    find: Callable[[Resources, AwsTarget, str], str | None]
    ending: Callable[[Resources, AwsTarget, str], JobEnding | None]
    stop: Callable[[Resources, AwsTarget, str], None]
    repeats: bool = False
    name: Callable[[Any, str, str], str] | None = None


def parameters_of(target: AwsTarget) -> dict[str, Any]:
    """Additional parameters of the request that starts a job."""
    given: dict[str, Any] = json.loads(target.parameters or "{}")
    return given
