"""Creates the EventBridge schedule that invokes the trigger every minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from duetime_cdk.service_principals import service_of_this_account

if TYPE_CHECKING:
    from aws_cdk import CfnElement
    from aws_cdk import aws_lambda as lambda_


class TriggerSchedule(Construct):
    """The trigger's only schedule. Its delays do not make tasks late, because the trigger reads ahead."""

    def __init__(self, scope: Construct, id_: str, *, function: lambda_.IFunction) -> None:
        super().__init__(scope, id_)
        role = iam.Role(self, "Role", assumed_by=service_of_this_account("scheduler.amazonaws.com"))
        scheduler.Schedule(
            self,
            "EveryMinute",
            schedule=scheduler.ScheduleExpression.rate(Duration.minutes(1)),
            time_window=scheduler.TimeWindow.off(),
            # A tick that cannot be delivered is not retried, because the next tick makes up for it.
            target=targets.LambdaInvoke(function, role=role, retry_attempts=0, max_event_age=Duration.minutes(1)),
            description="Reads the minutes that are due, and puts their tasks on the queues",
        )
        logical_id = Stack.of(self).get_logical_id(cast("CfnElement", function.node.default_child))
        Validations.of(role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{logical_id}.Arn>:*]",
                reason="The CDK grants a schedule all versions of the one function it invokes",
            )
        )
