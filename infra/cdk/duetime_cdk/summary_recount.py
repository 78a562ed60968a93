"""Creates the EventBridge schedule that triggers recounts for the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from duetime.domain.operating_parameters import SUMMARY_RECOUNT_EVERY
from duetime_cdk.service_principals import service_of_this_account

if TYPE_CHECKING:
    from aws_cdk import CfnElement
    from aws_cdk import aws_lambda as lambda_


class SummaryRecount(Construct):
    """Checks every few minutes whether a part of the table must be recounted, which is rarely the case."""

    def __init__(self, scope: Construct, id_: str, *, function: lambda_.IFunction) -> None:
        super().__init__(scope, id_)
        role = iam.Role(self, "Role", assumed_by=service_of_this_account("scheduler.amazonaws.com"))
        every = Duration.millis(SUMMARY_RECOUNT_EVERY)
        scheduler.Schedule(
            self,
            "Every",
            schedule=scheduler.ScheduleExpression.rate(every),
            time_window=scheduler.TimeWindow.off(),
            # A failed invocation is not retried, because the next invocation continues where it stopped.
            target=targets.LambdaInvoke(
                function,
                role=role,
                retry_attempts=0,
                max_event_age=Duration.minutes(1),
                input=scheduler.ScheduleTargetInput.from_object({"recount": "continue"}),
            ),
            description="Recounts tasks that are not counted by their changes",
        )
        logical_id = Stack.of(self).get_logical_id(cast("CfnElement", function.node.default_child))
        Validations.of(role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{logical_id}.Arn>:*]",
                reason="The CDK grants a schedule all versions of the one function it invokes",
            )
        )
