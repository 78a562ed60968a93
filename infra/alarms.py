"""Alarms for what nobody would notice otherwise: the trigger stopped, fails or is behind, or messages gave up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.environments import FunctionName
from infra.lambda_function import NAMESPACE, service_of

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from infra.environments import Environment

_LONGEST_LAG_MS = 60_000


class Alarms(Construct):
    """Every alarm goes to one topic."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        environment: Environment,
        trigger: lambda_.Function,
        dead_letters: sqs.Queue,
        rejects: sqs.Queue | None = None,
    ) -> None:
        super().__init__(scope, id_)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        self._let_alarms_publish()
        if environment.alarm_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(environment.alarm_email))
        stopped = trigger.metric_invocations(period=Duration.minutes(1), statistic="Sum").create_alarm(
            self,
            "TriggerStopped",
            alarm_description="The trigger was not invoked for five minutes: nothing becomes due",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=5,
            # No invocation is no data: silence is what this alarm listens for.
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        failing = trigger.metric_errors(period=Duration.minutes(1), statistic="Sum").create_alarm(
            self,
            "TriggerFailing",
            alarm_description="The trigger failed in three of five minutes: its log says what it could not read",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=5,
            # The next tick makes up for a single one that failed.
            datapoints_to_alarm=3,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        visible = dead_letters.metric_approximate_number_of_messages_visible(period=Duration.minutes(1))
        undelivered = visible.create_alarm(
            self,
            "DeadLettersWaiting",
            alarm_description="Dead letters lie there for five minutes: their own function does not handle them",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=5,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        refused = [self._refused(rejects)] if rejects else []
        for alarm in (stopped, failing, self._behind(), undelivered, self._unavailable(), *refused):
            alarm.add_alarm_action(actions.SnsAction(self.topic))

    def _let_alarms_publish(self) -> None:
        """The policy that refuses plain connections replaces the topic's default one, which had let alarms publish."""
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )

    def _behind(self) -> cloudwatch.Alarm:
        """The trigger runs without an error, and is late all the same: a queue refuses, or there is too much to do."""
        lag = cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name="cursor_lag",
            dimensions_map={"service": service_of(FunctionName.TRIGGER)},
            period=Duration.minutes(1),
            statistic="Maximum",
        )
        return lag.create_alarm(
            self,
            "TriggerBehind",
            alarm_description="The trigger is a minute behind the clock for five minutes: tasks are sent late",
            threshold=_LONGEST_LAG_MS,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=5,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _unavailable(self) -> cloudwatch.Alarm:
        held = cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name="handlers_unavailable",
            dimensions_map={"service": service_of(FunctionName.WORKER)},
            period=Duration.minutes(1),
            statistic="Sum",
        )
        return held.create_alarm(
            self,
            "HandlersUnavailable",
            alarm_description="The package of handlers cannot be imported: its tasks wait, and say why in `waits_for`",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _refused(self, rejects: sqs.Queue) -> cloudwatch.Alarm:
        visible = rejects.metric_approximate_number_of_messages_visible(period=Duration.minutes(1))
        return visible.create_alarm(
            self,
            "EventsRefused",
            alarm_description="Events lie there that could become no task: each says why in its attribute `reason`",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
