"""What the worker may call of AWS on behalf of tasks: the action of each service, on the patterns of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations

from duetime.domain.tasks.arns import AwsService, service_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_cdk.lambda_function import LambdaFunction

_ACTIONS = {
    AwsService.LAMBDA: "lambda:InvokeFunction",
    AwsService.SQS: "sqs:SendMessage",
    AwsService.SNS: "sns:Publish",
    AwsService.EVENTBRIDGE: "events:PutEvents",
    AwsService.STEP_FUNCTIONS: "states:StartExecution",
}


def grant_target_calls(function: LambdaFunction, patterns: Sequence[str]) -> None:
    """Let a function call the resources that patterns of ARNs name, each by the one action of its service."""
    for service, action in _ACTIONS.items():
        of_service = [pattern for pattern in patterns if service_of(pattern) is service]
        if of_service:
            function.allow([action], of_service)
    for pattern in patterns:
        if set(pattern) & set("*?"):
            Validations.of(function.role).acknowledge(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::{pattern}]",
                    reason="The settings of the environment let tasks call whatever this pattern names",
                )
            )
