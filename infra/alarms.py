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
_PERIOD = Duration.minutes(1)


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
        lost_changes: sqs.Queue,
        rejects: sqs.Queue | None = None,
    ) -> None:
        super().__init__(scope, id_)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        self._grant_publishing()
        if environment.alarm_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(environment.alarm_email))
        alarms = [
            self._trigger_stopped(trigger),
            self._trigger_failing(trigger),
            self._trigger_behind(),
            self._dead_letters_waiting(dead_letters),
            self._handlers_unavailable(),
            self._changes_lost(lost_changes),
            *([self._events_rejected(rejects)] if rejects else []),
        ]
        for alarm in alarms:
            alarm.add_alarm_action(actions.SnsAction(self.topic))

    def _grant_publishing(self) -> None:
        """The policy that rejects plain connections replaces the topic's default one, which had let alarms publish."""
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )

    def _trigger_stopped(self, trigger: lambda_.Function) -> cloudwatch.Alarm:
        return trigger.metric_invocations(period=_PERIOD, statistic="Sum").create_alarm(
            self,
            "TriggerStopped",
            alarm_description="The trigger was not invoked for five minutes: nothing becomes due",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=5,
            # No invocation is no data: that is what this alarm waits for.
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def _trigger_failing(self, trigger: lambda_.Function) -> cloudwatch.Alarm:
        return self._alarm(
            "TriggerFailing",
            trigger.metric_errors(period=_PERIOD, statistic="Sum"),
            "The trigger failed in three of five minutes: its log says what it could not read",
            # The next tick makes up for a single one that failed.
            datapoints=3,
        )

    def _trigger_behind(self) -> cloudwatch.Alarm:
        """The trigger runs without an error, and is late all the same: a queue rejects, or there is too much to do."""
        return self._alarm(
            "TriggerBehind",
            _own_metric("cursor_lag", FunctionName.TRIGGER, "Maximum"),
            "The trigger is a minute behind the clock for five minutes: tasks are sent late",
            threshold=_LONGEST_LAG_MS,
        )

    def _dead_letters_waiting(self, dead_letters: sqs.Queue) -> cloudwatch.Alarm:
        return self._alarm(
            "DeadLettersWaiting",
            dead_letters.metric_approximate_number_of_messages_visible(period=_PERIOD),
            "Dead letters lie there for five minutes: their own function does not handle them",
        )

    def _handlers_unavailable(self) -> cloudwatch.Alarm:
        return self._alarm(
            "HandlersUnavailable",
            _own_metric("handlers_unavailable", FunctionName.WORKER, "Sum"),
            "The package of handlers cannot be imported: its tasks wait, and say why in `waiting_for`",
            minutes=1,
        )

    def _changes_lost(self, lost: sqs.Queue) -> cloudwatch.Alarm:
        return self._alarm(
            "ChangesLost",
            lost.metric_approximate_number_of_messages_visible(period=_PERIOD),
            "Changes of the table were given up after a day of repeats: events of them and counts in the summary lack",
            minutes=1,
        )

    def _events_rejected(self, rejects: sqs.Queue) -> cloudwatch.Alarm:
        return self._alarm(
            "EventsRefused",
            rejects.metric_approximate_number_of_messages_visible(period=_PERIOD),
            "Events lie there that could become no task: each says why in its attribute `reason`",
            minutes=1,
        )

    def _alarm(
        self,
        id_: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        threshold: int = 1,
        minutes: int = 5,
        datapoints: int | None = None,
    ) -> cloudwatch.Alarm:
        """An alarm on a metric that reaches its threshold; no data is no alarm.

        Args:
            id_: of the construct.
            metric: with a period of one minute.
            description: what is wrong, for whoever gets the mail.
            threshold: the least value that counts.
            minutes: how many are checked.
            datapoints: in how many of them the threshold must be reached; all, if it is left out.
        """
        return cloudwatch.Alarm(
            self,
            id_,
            metric=metric,
            alarm_description=description,
            threshold=threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=minutes,
            datapoints_to_alarm=datapoints,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )


def _own_metric(name: str, function: FunctionName, statistic: str) -> cloudwatch.Metric:
    """A metric that a function writes itself."""
    dimensions = {"service": service_of(function)}
    return cloudwatch.Metric(
        namespace=NAMESPACE, metric_name=name, dimensions_map=dimensions, period=_PERIOD, statistic=statistic
    )
