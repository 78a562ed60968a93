"""Grants the worker AWS permissions for tasks: each service's action on the ARN patterns in the settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Validations

from duetime.domain.tasks.aws_jobs import JOB_SERVICES
from duetime.domain.tasks.targets import AwsService, is_role, service_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_cdk.lambda_function import LambdaFunction

_ACTIONS = {
    AwsService.LAMBDA: "lambda:InvokeFunction",
    AwsService.SQS: "sqs:SendMessage",
    AwsService.SNS: "sns:Publish",
    AwsService.EVENTBRIDGE: "events:PutEvents",
    AwsService.STEP_FUNCTIONS: JOB_SERVICES[AwsService.STEP_FUNCTIONS].start,
    # A job definition may be submitted to the job queues that are listed in the settings.
    AwsService.BATCH: JOB_SERVICES[AwsService.BATCH].start,
    AwsService.CODEBUILD: JOB_SERVICES[AwsService.CODEBUILD].start,
    AwsService.GLUE: JOB_SERVICES[AwsService.GLUE].start,
}
_CLUSTER = ":cluster/"


def grant_target_calls(function: LambdaFunction, patterns: Sequence[str]) -> None:
    """Let a function call the resources that match ARN patterns, each with the action of the resource's service.

    The function may also read and stop the jobs of services that run jobs, and pass the listed roles to containers.
    """
    for service, action in _ACTIONS.items():
        if of_service := _of(service, patterns):
            function.allow([action], of_service)
    for service, row in JOB_SERVICES.items():
        for grant in row.grants:
            found = [re.fullmatch(grant.of, each) for each in _of(service, patterns)]
            if resources := sorted({each.expand(grant.on) for each in found if each is not None}):
                function.allow(list(grant.actions), resources, grant.conditions)
                for each in resources:
                    _acknowledge(function, each, "The name of a job is not known before it runs")
    _grant_containers(function, patterns)
    for pattern in patterns:
        if set(pattern) & set("*?"):
            _acknowledge(function, pattern, "The settings let tasks call whatever this pattern names")


def _of(service: AwsService, patterns: Sequence[str]) -> list[str]:
    return [pattern for pattern in patterns if service_of(pattern) is service]


def _grant_containers(function: LambdaFunction, patterns: Sequence[str]) -> None:
    """Let a function run only the listed task definitions, on the listed clusters, with the listed roles."""
    of_ecs = _of(AwsService.ECS, patterns)
    clusters = [each for each in of_ecs if _CLUSTER in each]
    definitions = [each for each in of_ecs if _CLUSTER not in each]
    roles = [each for each in patterns if is_role(each)]
    if not clusters or not definitions:
        return
    on_clusters = {"ArnLike": {"ecs:cluster": clusters}}
    to_containers = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    function.allow([JOB_SERVICES[AwsService.ECS].start], definitions, on_clusters)
    # This action can be restricted only to container instances, and AWS documents no resource for lists of tasks by
    # starter.
    function.allow(["ecs:ListTasks"], ["*"], on_clusters)
    _acknowledge(function, "*", "Tasks are listed on the named clusters only")
    if roles:
        function.allow(["iam:PassRole"], roles, to_containers)


def _acknowledge(function: LambdaFunction, pattern: str, reason: str) -> None:
    Validations.of(function.role).acknowledge(
        Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{pattern}]", reason=reason)
    )
