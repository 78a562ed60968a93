"""CloudWatch alarms for work that is late, fails, stalls or piles up."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from duetime_cdk.alarm_list import OVERVIEW, AlarmSpec, BurnRate, alarms, runbook
from duetime_cdk.environments import LOCAL, FunctionName
from duetime_cdk.metric_expressions import Expression
from duetime_cdk.metric_sources import function_metric

if TYPE_CHECKING:
    from duetime_cdk.dashboard import MetricNames
    from duetime_cdk.environments import Environment
    from duetime_cdk.metric_sources import Source

_TICKS_BEFORE = 10
"""Ticks, in minutes, after which an alarm on five minutes of silence no longer sees the time before deployment."""
_DAYS_REMEMBERED = 7
"""The longest period that CloudWatch evaluates (Source: Amazon CloudWatch API Reference, "PutMetricAlarm",
EvaluationPeriods)."""


class Alarms(Construct):
    """Every alarm goes to one topic.

    Args:
        environment: the settings.
        names: of the metrics.
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
        """The alarms on metrics, by name; those of other alarms are left out."""
        for alarm in [*map(self._alarm, every.single), *map(self._burn_rate, every.burn_rates)]:
            alarm.add_alarm_action(actions.SnsAction(self.topic))

    def _grant_publishing(self) -> None:
        """Allow alarms to publish; the policy that rejects unencrypted connections replaced the topic's default one."""
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )

    def _alarm(self, spec: AlarmSpec) -> cloudwatch.AlarmBase:
        description = self._description(spec.says, spec.section, spec.page)
        if not spec.missing_is_bad or self._environment.name == LOCAL:
            return self._single(spec, spec.name, description)
        # Right after the first deploy there is no data yet, which must not trigger the alarm.
        silent = self._single(spec, f"{spec.name}Now", f"Part of {spec.name}: without data, too")
        return cloudwatch.CompositeAlarm(
            self,
            spec.name,
            alarm_rule=cloudwatch.AlarmRule.all_of(
                *(cloudwatch.AlarmRule.from_alarm(each, cloudwatch.AlarmState.ALARM) for each in (silent, self._began))
            ),
            alarm_description=description,
        )

    @cached_property
    def _began(self) -> cloudwatch.Alarm:
        """Whether the trigger has ticked for some minutes within a week; otherwise silence means a new stack."""
        return cloudwatch.Alarm(
            self,
            "TriggerBegan",
            metric=self._names.unlabelled(
                function_metric(FunctionName.TRIGGER, "Invocations", "Sum"), Duration.days(1)
            ),
            alarm_description="Part of the silence alarms: the trigger has run before",
            threshold=_TICKS_BEFORE,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=_DAYS_REMEMBERED,
            datapoints_to_alarm=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _single(self, spec: AlarmSpec, name: str, description: str) -> cloudwatch.Alarm:
        missing = cloudwatch.TreatMissingData
        self.by_name[name] = cloudwatch.Alarm(
            self,
            name,
            metric=self._watched(spec.watched, spec.period),
            alarm_description=description,
            threshold=spec.threshold,
            comparison_operator=cloudwatch.ComparisonOperator[spec.comparison.value],
            evaluation_periods=-(-spec.minutes // spec.period),
            datapoints_to_alarm=spec.datapoints or None,
            treat_missing_data=missing.BREACHING if spec.missing_is_bad else missing.NOT_BREACHING,
        )
        return self.by_name[name]

    def _burn_rate(self, spec: BurnRate) -> cloudwatch.CompositeAlarm:
        windows = [self._window(spec, minutes) for minutes in (spec.long, spec.short)]
        return cloudwatch.CompositeAlarm(
            self,
            spec.name,
            alarm_rule=cloudwatch.AlarmRule.all_of(
                *(cloudwatch.AlarmRule.from_alarm(each, cloudwatch.AlarmState.ALARM) for each in windows)
            ),
            alarm_description=self._description(spec.says, spec.runbook, OVERVIEW),
        )

    def _window(self, spec: BurnRate, minutes: int) -> cloudwatch.Alarm:
        """One window of a burn-rate alarm; it sends no notification itself."""
        name = f"{spec.name}{minutes}m"
        self.by_name[name] = cloudwatch.Alarm(
            self,
            name,
            metric=self._watched(spec.level, minutes),
            alarm_description=f"Part of {spec.name}: below {spec.threshold:g} % over {minutes} minutes",
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
        return self._names.unlabelled(watched, period)

    def _description(self, says: str, section: str, page: str) -> str:
        shown = f"{self._console_url}#/{page} shows it. " if self._console_url else ""
        return f"{says}. {shown}See {runbook(self._environment, section)}"
