from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime.settings import Authentication
from duetime_cdk.alarm_list import RUNBOOK, AlarmSpec, alarms, functions_throttled
from duetime_cdk.canary import Canary
from duetime_cdk.metric_expressions import Expression
from duetime_cdk.metric_sources import function_metric
from infra import ROOT
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, referred

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.alarm_list import AlarmList
    from duetime_cdk.layers.build import Layers
    from tests.infra.synthesis import Properties


def runbook_sections(of: AlarmList) -> set[str]:
    """The names of the sections that the runbook must have for these alarms."""
    return {each.section for each in of.single} | {each.runbook for each in of.burn_rates}


def alarm_named(synthesis: Synthesis, name: str) -> Properties:
    """The one alarm of a name."""
    (alarm,) = [body for id_, body in synthesis.properties("AWS::CloudWatch::Alarm").items() if name in id_]
    return alarm


def test_trigger_ticks_every_minute_on_the_minute(every: Synthesis) -> None:
    """The schedule invokes the trigger each minute, without a window to be late in."""
    schedules = every.properties("AWS::Scheduler::Schedule").values()
    (schedule,) = (each for each in schedules if every.function_named(each["Target"]["Arn"]) == "trigger")
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


def test_ticks_that_complete_no_pass_are_an_alarm(every: Synthesis) -> None:
    """For five minutes, whatever the cause: also where the trigger does not even say how long ago the last one was."""
    alarm = alarm_named(every, "TicksIncomplete")
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("tick_age", "Maximum", 300_000)
    assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (5, "breaching")


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
    """No alarm goes off unheard: its action is the topic, or it is a part of one whose action is."""
    (topic,) = every.of_type("AWS::SNS::Topic")
    composite = every.properties("AWS::CloudWatch::CompositeAlarm").values()
    rules = json.dumps([each["AlarmRule"] for each in composite])
    whole = [body for id_, body in every.properties("AWS::CloudWatch::Alarm").items() if f'"{id_}"' not in rules]
    assert len(whole) >= 15
    for alarm in (*whole, *composite):
        assert [referred(action) for action in alarm["AlarmActions"]] == [topic]


def test_a_service_level_alarms_by_two_windows_at_two_rates(cloud: Synthesis) -> None:
    """Each of both levels has a fast and a slow alarm, which needs a long and a short window below its threshold."""
    alarms = cloud.properties("AWS::CloudWatch::Alarm")
    every = cloud.properties("AWS::CloudWatch::CompositeAlarm")
    composite = {id_: body for id_, body in every.items() if "BurnRate" in id_}
    assert len(composite) == 4
    windows = {}
    for id_, body in composite.items():
        parts = [alarms[name] for name in alarms if f'"{name}"' in json.dumps(body["AlarmRule"])]
        periods = {metric["Period"] for part in parts for metric in part["Metrics"] if "Period" in metric} | {
            metric["MetricStat"]["Period"] for part in parts for metric in part["Metrics"] if "MetricStat" in metric
        }
        (threshold,) = {part["Threshold"] for part in parts}
        assert {part["ComparisonOperator"] for part in parts} == {"LessThanThreshold"}
        assert not any(part.get("AlarmActions") for part in parts)
        windows[re.sub(r"^Alarms|[0-9A-F]{8}$", "", id_)] = (threshold, sorted(periods))
    assert windows == {
        "AcceptedBurnRateFast": (98.56, [300, 3600]),
        "AcceptedBurnRateSlow": (99.4, [1800, 21600]),
        "OnTimeBurnRateFast": (85.6, [300, 3600]),
        "OnTimeBurnRateSlow": (94, [1800, 21600]),
    }


def test_silence_is_no_alarm_before_the_trigger_has_begun(cloud: Synthesis) -> None:
    """At the first deploy there are no data yet; each alarm that tells of none waits until some have been there."""
    singles = cloud.properties("AWS::CloudWatch::Alarm")
    silent = {id_ for id_, body in singles.items() if body["TreatMissingData"] == "breaching"}
    assert {re.sub(r"^Alarms|Now[0-9A-F]{8}$", "", id_) for id_ in silent} == {"TriggerStopped", "TicksIncomplete"}
    (began,) = [id_ for id_ in singles if "TriggerBegan" in id_]
    body = singles[began]
    assert (body["MetricName"], body["TreatMissingData"]) == ("Invocations", "notBreaching")
    assert (body["Period"], body["EvaluationPeriods"], body["DatapointsToAlarm"]) == (86_400, 7, 1)
    # When so many ticks were counted, none of the alarm's periods lies before the first of them.
    assert body["Threshold"] > max(singles[id_]["EvaluationPeriods"] for id_ in silent)
    assert body["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    rules = [json.dumps(each["AlarmRule"]) for each in cloud.properties("AWS::CloudWatch::CompositeAlarm").values()]
    for id_ in silent:
        assert not singles[id_].get("AlarmActions")
        (rule,) = [each for each in rules if f'"{id_}"' in each]
        assert f'"{began}"' in rule
        assert " AND " in rule
        assert " OR " not in rule


def test_every_function_is_watched_for_throttles_however_many_there_are() -> None:
    """CloudWatch takes ten metrics in an alarm: further functions are in a further one."""
    for count, alarms_needed in ((1, 1), (10, 1), (11, 2), (25, 3)):
        names = [f"function{n}" for n in range(count)]
        made = [*functions_throttled(names)]
        watched = [
            source.label
            for each in made
            if isinstance(each.watched, Expression)
            for source in each.watched.sources.values()
        ]
        assert (len(made), watched) == (alarms_needed, names)
        assert len({each.name for each in made}) == alarms_needed
        assert {each.section for each in made} == {"FunctionsThrottled"}


def test_no_alarm_watches_more_metrics_than_cloudwatch_takes() -> None:
    """Whoever writes one is told at once."""
    sources = {f"m{n}": function_metric("worker", "Throttles", "Sum") for n in range(11)}
    with pytest.raises(ValueError, match="TooMuch would watch 11 metrics"):
        AlarmSpec("TooMuch", Expression("much", "m0", sources), "much")


def test_the_embedded_aws_is_given_no_alarm_that_it_does_not_know(local: Synthesis) -> None:
    """It has no metric math and no composite alarms."""
    assert not local.of_type("AWS::CloudWatch::CompositeAlarm")
    assert not any("Metrics" in alarm for alarm in local.properties("AWS::CloudWatch::Alarm").values())


def test_every_alarm_names_its_section_of_the_runbook(every: Synthesis) -> None:
    """Whoever gets the mail finds what to do: the page has a section of that name, and no section for nothing."""
    page = (ROOT / RUNBOOK).read_text(encoding="utf-8")
    found = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    told = alarms(every.environment)
    texts = [
        text_of(alarm["AlarmDescription"])
        for kind in ("Alarm", "CompositeAlarm")
        for alarm in every.properties(f"AWS::CloudWatch::{kind}").values()
        if not text_of(alarm["AlarmDescription"]).startswith("Part of ")
    ]
    assert {text.partition(f"{RUNBOOK}#")[2] for text in texts} == {name.lower() for name in runbook_sections(told)}
    assert runbook_sections(told) <= found


def test_an_alarm_leads_to_the_page_of_the_console_that_shows_it(
    layers: Layers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a console, each description has its address, and whoever tells of tasks knows it; without one, none has."""
    tokens = replace(
        environment_named("dev"),
        authentication=Authentication.JWT,
        jwt_issuer="https://id.example.org",
        jwt_audience=("duetime",),
        console=True,
    )
    made = Synthesis(tokens, layers, tmp_path_factory.mktemp("console"))
    told = {
        name: text_of(alarm_named(made, name)["AlarmDescription"])
        for name in ("TasksFailing", "OldestDue", "ExpectationMissed", "ClockSkewed")
    }
    found = {name: re.findall(r"/console/index\.html#/(\S+) shows it", text) for name, text in told.items()}
    assert found == {
        "TasksFailing": ["dead-letters"],
        "OldestDue": ["tasks?q=due%3A%3Cnow&order=asc"],
        "ExpectationMissed": ["schedules"],
        "ClockSkewed": ["overview"],
    }
    variables = {name: body["Environment"]["Variables"] for name, body in made.functions().items()}
    assert {name for name, each in variables.items() if Variable.CONSOLE_URL.value in each} == {"worker", "api"}
    assert text_of(variables["worker"][Variable.CONSOLE_URL.value]).endswith("/console/index.html")


def text_of(value: Any) -> str:  # noqa: ANN401 - an intrinsic of the template
    """A text of a template with what is only known to the deployment left out."""
    return value if isinstance(value, str) else "".join(part for part in value["Fn::Join"][1] if isinstance(part, str))


def test_the_runbook_has_no_section_without_an_alarm() -> None:
    """An alarm that goes takes its section along."""
    page = (ROOT / RUNBOOK).read_text(encoding="utf-8")
    found = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert found == runbook_sections(alarms(replace(environment_named("prod"), intake_owner="events", canary=Canary())))


def test_no_alarm_mixes_the_stacks_of_an_account(every: Synthesis) -> None:
    """The functions of each stack write into a namespace of their own, and its alarms look at that one."""
    variables = every.functions()["trigger"]["Environment"]["Variables"]
    namespace = variables[Variable.METRICS_NAMESPACE.value]
    assert namespace == f"duetime/duetime-{every.environment.name}"
    found = {
        alarm["Namespace"] for alarm in every.properties("AWS::CloudWatch::Alarm").values() if "Namespace" in alarm
    }
    assert found == {namespace, "AWS/Lambda", "AWS/SQS"}


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
