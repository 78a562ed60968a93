"""From options to what a task calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.task_fields import AwsTarget, HttpTarget, Target

_ARN_SEGMENTS = 6


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """The options that name a resource of AWS.

    Attributes:
        notifies: a function is not waited for: it notifies of its end.
    """

    arn: str | None = None
    notifies: bool = False
    detail_type: str | None = None


NO_AWS = AwsOptions()


def target_of(http_url: str | None, phases: Sequence[str], queries: Sequence[str], aws: AwsOptions) -> Target | None:
    """What the options say is called; nothing if they leave it to the task's type."""
    if http_url is not None and aws.arn is not None:
        raise typer.BadParameter("give either --http-url or --arn, not both")
    if http_url is None and (phases or queries):
        raise typer.BadParameter("needs --http-url", param_hint="--http-phase" if phases else "--http-query")
    if aws.arn is not None:
        return _aws_target(aws.arn, aws)
    if aws.notifies or aws.detail_type is not None:
        raise typer.BadParameter("needs --arn", param_hint="--async" if aws.notifies else "--detail-type")
    return None if http_url is None else _http_target(http_url, phases, queries)


def _http_target(url: str, phases: Sequence[str], queries: Sequence[str]) -> HttpTarget:
    target: HttpTarget = {"kind": "http", "url": url}
    if phases:
        target["phases"] = [*phases]
    if queries:
        target["queries"] = [*queries]
    return target


def _aws_target(arn: str, aws: AwsOptions) -> AwsTarget:
    """A target of the kind that the ARN's service says; an option that its kind does not have is refused."""
    segments = arn.split(":", _ARN_SEGMENTS - 1)
    service = segments[2] if len(segments) == _ARN_SEGMENTS else ""
    if aws.notifies and service != "lambda":
        raise typer.BadParameter("is for Lambda functions", param_hint="--async")
    if aws.detail_type is not None and service != "events":
        raise typer.BadParameter("is for event buses", param_hint="--detail-type")
    match service:
        case "lambda":
            return {"kind": "lambda", "arn": arn, "mode": "async"} if aws.notifies else {"kind": "lambda", "arn": arn}
        case "sqs" | "sns":
            return {"kind": service, "arn": arn}
        case "events":
            kind: AwsTarget = {"kind": "eventbridge", "arn": arn}
            return kind if aws.detail_type is None else {**kind, "detail_type": aws.detail_type}
        case "states":
            return {"kind": "step_functions", "arn": arn}
    raise typer.BadParameter(
        "should be the ARN of a Lambda function, SQS queue, SNS topic, event bus or state machine", param_hint="--arn"
    )
