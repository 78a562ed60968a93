from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.settings import Variable
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, referred

if TYPE_CHECKING:
    from pathlib import Path

    from layers.build import Layers
    from tests.infra.synthesis import Properties


def alarm_named(synthesis: Synthesis, name: str) -> Properties:
    """The one alarm of a name."""
    (alarm,) = [body for id_, body in synthesis.properties("AWS::CloudWatch::Alarm").items() if name in id_]
    return alarm


def test_trigger_ticks_every_minute_on_the_minute(every: Synthesis) -> None:
    """The schedule invokes the trigger each minute, without a window to be late in."""
    (schedule,) = every.properties("AWS::Scheduler::Schedule").values()
    assert every.function_named(schedule["Target"]["Arn"]) == "trigger"
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["State"] == "ENABLED"


def test_silence_of_the_trigger_is_an_alarm(every: Synthesis) -> None:
    """A trigger that is not invoked sends no data, and no data is what sets the dead man's alarm off."""
    alarm = alarm_named(every, "TriggerStopped")
    (dimension,) = alarm["Dimensions"]
    assert every.function_named(dimension["Value"]) == "trigger"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "breaching"


def test_a_trigger_that_fails_is_an_alarm(every: Synthesis) -> None:
    """An invocation that fails is counted by Lambda: three in five minutes set it off, a single one does not."""
    alarm = alarm_named(every, "TriggerFailing")
    (dimension,) = alarm["Dimensions"]
    assert every.function_named(dimension["Value"]) == "trigger"
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/Lambda", "Errors", "Sum")
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"], alarm["Threshold"]) == (3, 5, 1)


def test_a_trigger_that_is_late_is_an_alarm(every: Synthesis) -> None:
    """What keeps it from sending without an error sets it off: by the metric that the trigger writes."""
    alarm = alarm_named(every, "TriggerBehind")
    variables = every.functions()["trigger"]["Environment"]["Variables"]
    assert alarm["Dimensions"] == [{"Name": "service", "Value": variables[Variable.SERVICE_NAME.value]}]
    assert alarm["Namespace"] == variables[Variable.METRICS_NAMESPACE.value]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("cursor_lag", "Maximum", 60_000)


def test_dead_letters_that_stay_are_an_alarm(every: Synthesis) -> None:
    """A dead letter that its function does not take sets an alarm off."""
    alarm = alarm_named(every, "DeadLettersWaiting")
    (dimension,) = alarm["Dimensions"]
    assert "RedrivePolicy" not in every.properties("AWS::SQS::Queue")[referred(dimension["Value"])]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)


def test_handlers_that_cannot_be_imported_are_an_alarm(every: Synthesis) -> None:
    """One task that is held back for them sets it off: by the metric that the worker function writes."""
    alarm = alarm_named(every, "HandlersUnavailable")
    variables = every.functions()["worker"]["Environment"]["Variables"]
    assert alarm["Dimensions"] == [{"Name": "service", "Value": variables[Variable.SERVICE_NAME.value]}]
    assert alarm["Namespace"] == variables[Variable.METRICS_NAMESPACE.value]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("handlers_unavailable", 1)
    assert alarm["TreatMissingData"] == "notBreaching"


def test_every_alarm_is_told_to_the_topic(every: Synthesis) -> None:
    """No alarm goes off unheard: each one's action is the topic."""
    (topic,) = every.of_type("AWS::SNS::Topic")
    alarms = every.properties("AWS::CloudWatch::Alarm").values()
    assert [[referred(action) for action in alarm["AlarmActions"]] for alarm in alarms] == [[topic]] * len(alarms)


def test_alarms_may_publish_to_the_topic(every: Synthesis) -> None:
    """A policy of the topic's own replaces the default one: it lets CloudWatch publish, for alarms of this account."""
    (topic,) = every.of_type("AWS::SNS::Topic")
    (policy,) = every.properties("AWS::SNS::TopicPolicy").values()
    allowed = [one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Allow"]
    assert [referred(each) for each in policy["Topics"]] == [topic]
    assert [(one["Principal"], one["Action"], referred(one["Resource"]), one["Condition"]) for one in allowed] == [
        (
            {"Service": "cloudwatch.amazonaws.com"},
            "sns:Publish",
            topic,
            {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
        )
    ]


def test_alarms_are_mailed_where_the_settings_name_someone(layers: Layers, tmp_path: Path) -> None:
    """An address in the settings subscribes to the topic; without one there is no subscription."""
    environment = replace(environment_named("dev"), alarm_email="ops@example.org")
    synthesis = Synthesis(environment, layers, tmp_path)
    (subscription,) = synthesis.properties("AWS::SNS::Subscription").values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.org")
