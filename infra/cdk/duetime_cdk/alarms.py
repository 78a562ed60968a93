"""Creates CloudWatch alarms for work that is late, fails, stalls or piles up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from duetime_cdk.alarm_list import OVERVIEW, AlarmSpec, BurnRate, alarms, runbook
from duetime_cdk.metric_expressions import Expression

if TYPE_CHECKING:
    from duetime_cdk.dashboard import MetricNames
    from duetime_cdk.environments import Environment
    from duetime_cdk.metric_sources import Source


class Alarms(Construct):
    """The alarms of a deployment, which notify one topic, except burn rates that only roll back deployments.

    Args:
        environment: the settings.
        names: names of the metrics.
        console_url: address of the web console; empty if there is none.
    """

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, names: MetricNames, console_url: str = ""
    ) -> None:
        super().__init__(scope, id_)
        self._environment = environment
        self._console_url = console_url
        self._names = names
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        self._grant_publishing()
        if environment.alarm_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(environment.alarm_email))
        every = alarms(environment)
        self.by_name: dict[str, cloudwatch.Alarm] = {}
        for spec in every.single:
            self._alarm(spec)
        for rate in every.burn_rates:
            self._burn_rate(rate)

    def _grant_publishing(self) -> None:
        """Allow alarms to publish, because the policy against unencrypted connections replaces the default policy."""
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )

    def _alarm(self, spec: AlarmSpec) -> None:
        missing = cloudwatch.TreatMissingData
        alarm = self.by_name[spec.name] = cloudwatch.Alarm(
            self,
            spec.name,
            metric=self._watched(spec.watched, spec.period),
            alarm_description=self._description(spec.says, spec.section, spec.page),
            threshold=spec.threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=-(-spec.minutes // spec.period),
            datapoints_to_alarm=spec.datapoints or None,
            treat_missing_data=missing.BREACHING if spec.missing_is_bad else missing.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))

    def _burn_rate(self, spec: BurnRate) -> None:
        alarm = self._window(spec, spec.name, spec.minutes, self._description(spec.says, spec.runbook, OVERVIEW))
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        if spec.rollback_minutes:
            name = f"{spec.name}{spec.rollback_minutes}m"
            self._window(spec, name, spec.rollback_minutes, f"Part of the canary: {spec.name}, sooner")

    def _window(self, spec: BurnRate, name: str, minutes: int, description: str) -> cloudwatch.Alarm:
        self.by_name[name] = cloudwatch.Alarm(
            self,
            name,
            metric=self._watched(spec.level, minutes),
            alarm_description=description,
            threshold=spec.threshold,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        return self.by_name[name]

    def _watched(self, watched: Expression | Source, minutes: int) -> cloudwatch.IMetric:
        period = Duration.minutes(minutes)
        if isinstance(watched, Expression):
            return self._names.math(watched, period)
        return self._names.unlabeled(watched, period)

    def _description(self, says: str, section: str, page: str) -> str:
        shown = f"{self._console_url}#/{page} shows it. " if self._console_url else ""
        return f"{says}. {shown}See {runbook(self._environment, section)}"
