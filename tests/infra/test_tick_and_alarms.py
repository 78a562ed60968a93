from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime.metrics import METRICS
from duetime.ports.runtime import SHARED_COUNTS, SHARED_SERVICE
from duetime.settings import Authentication
from duetime_cdk.alarm_list import RUNBOOK, AlarmSpec, alarms
from duetime_cdk.canary import Canary
from duetime_cdk.metric_expressions import Expression
from duetime_cdk.metric_sources import Source, function_metric, service_of
from infra import ROOT
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, referred

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.alarm_list import AlarmList
    from duetime_cdk.layers.build import Layers
    from tests.infra.synthesis import Properties


def runbook_sections(of: AlarmList) -> set[str]:
    """Return the names of the sections that the runbook must have for these alarms."""
    return {each.section for each in of.single} | {each.runbook for each in of.burn_rates}


def alarm_named(synthesis: Synthesis, name: str) -> Properties:
    """Return the alarm with this name."""
    (alarm,) = [body for id_, body in synthesis.properties("AWS::CloudWatch::Alarm").items() if name in id_]
    return alarm


def test_the_trigger_runs_every_minute_on_the_minute(every: Synthesis) -> None:
    """The schedule invokes the trigger each minute, without a flexible time window."""
    schedules = every.properties("AWS::Scheduler::Schedule").values()
    (schedule,) = (each for each in schedules if every.function_named(each["Target"]["Arn"]) == "trigger")
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["State"] == "ENABLED"


def test_a_missing_pass_of_the_trigger_causes_an_alarm(every: Synthesis) -> None:
    """A missing pass causes an alarm even if the trigger, which reports the time since the last pass, does not run."""
    alarm = alarm_named(every, "TicksIncomplete")
    variables = every.functions()["trigger"]["Environment"]["Variables"]
    assert alarm["Dimensions"] == [{"Name": "service", "Value": variables[Variable.SERVICE_NAME.value]}]
    assert alarm["Namespace"] == variables[Variable.METRICS_NAMESPACE.value]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("tick_age", "Maximum", 300_000)
    assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (3, "breaching")
    made = every.properties("AWS::CloudWatch::Alarm").values()
    assert [each for each in made if each["TreatMissingData"] == "breaching"] == [alarm]


def test_unprocessed_dead_letters_cause_an_alarm(every: Synthesis) -> None:
    """A dead letter that its function does not process causes an alarm."""
    alarm = alarm_named(every, "DeadLettersWaiting")
    (dimension,) = alarm["Dimensions"]
    assert "RedrivePolicy" not in every.properties("AWS::SQS::Queue")[referred(dimension["Value"])]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)


def test_handlers_that_cannot_be_imported_cause_an_alarm(every: Synthesis) -> None:
    """A single task that waits for broken handlers causes an alarm, through a metric that the worker writes."""
    alarm = alarm_named(every, "HandlersUnavailable")
    variables = every.functions()["worker"]["Environment"]["Variables"]
    assert alarm["Dimensions"] == [{"Name": "service", "Value": variables[Variable.SERVICE_NAME.value]}]
    assert alarm["Namespace"] == variables[Variable.METRICS_NAMESPACE.value]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("handlers_unavailable", 1)
    assert alarm["TreatMissingData"] == "notBreaching"


def test_an_alarm_watches_all_functions_that_write_its_metric() -> None:
    """An alarm on a functions' metric includes each function that writes it; pulled starts have their own objective."""
    watched = [each.watched for each in alarms(environment_named("prod")).single if isinstance(each.watched, Source)]
    written = [each for each in watched if not each.namespace and each.name != "lateness"]
    assert len(written) >= len(SHARED_COUNTS)
    for source in written:
        functions = {service_of(function) for function in METRICS[source.name].functions}
        assert source.dimensions["service"] == SHARED_SERVICE or functions == {source.dimensions["service"]}, (
            source.name
        )


def test_a_metric_is_shared_only_if_an_alarm_watches_several_functions() -> None:
    """Each shared count is written by several functions and watched by an alarm."""
    watched = {
        each.watched.name for each in alarms(environment_named("prod")).single if isinstance(each.watched, Source)
    }
    assert watched >= SHARED_COUNTS
    assert all(len(METRICS[name].functions) > 1 for name in SHARED_COUNTS)


def test_every_alarm_notifies_the_topic(every: Synthesis) -> None:
    """Every alarm sends a notification, without a composite alarm."""
    (topic,) = every.of_type("AWS::SNS::Topic")
    made = every.properties("AWS::CloudWatch::Alarm").values()
    assert len(made) >= 15
    for alarm in made:
        assert [referred(action) for action in alarm["AlarmActions"]] == [topic]
    assert not every.of_type("AWS::CloudWatch::CompositeAlarm")


def windows_of(synthesis: Synthesis) -> dict[str, tuple[float, set[int]]]:
    """Return the threshold and the periods of each burn-rate alarm, by the alarm's name."""
    found = {}
    for id_, alarm in synthesis.properties("AWS::CloudWatch::Alarm").items():
        if "BurnRate" in id_:
            each = [metric["MetricStat"] for metric in alarm.get("Metrics", []) if "MetricStat" in metric] or [alarm]
            assert alarm["ComparisonOperator"] == "LessThanThreshold"
            name = re.sub(r"^Alarms|[0-9A-F]{8}$", "", id_)
            found[name] = (alarm["Threshold"], {metric["Period"] for metric in each})
    return found


def test_each_service_level_has_alarms_for_two_rates(cloud: Synthesis) -> None:
    """Each service level has an alarm for a fast burn rate over an hour and one for a slow burn rate over six hours."""
    assert windows_of(cloud) == {
        "AcceptedBurnRateFast": (98.56, {3600}),
        "AcceptedBurnRateSlow": (99.4, {21600}),
        "OnTimeBurnRateFast": (85.6, {3600}),
        "OnTimeBurnRateSlow": (94, {21600}),
    }


def test_the_alarm_uses_the_percentile_rank_of_the_lateness(cloud: Synthesis) -> None:
    """The alarm uses the percentage of starts that are at most a second late, which is a percentile rank."""
    alarm = alarm_named(cloud, "OnTimeBurnRateFast")
    assert (alarm["MetricName"], alarm["ExtendedStatistic"]) == ("lateness", "PR(:1000)")


def test_the_alarm_includes_pulled_tasks_if_there_are_pulled_types(layers: Layers, tmp_path: Path) -> None:
    """With pulled types, the API's counts are added to the worker's counts."""
    environment = replace(environment_named("dev"), pulled_types={"pulled": ("*",)})
    metrics = alarm_named(Synthesis(environment, layers, tmp_path), "OnTimeBurnRateFast")["Metrics"]
    stats = sorted(each["MetricStat"]["Stat"] for each in metrics if "MetricStat" in each)
    assert stats == ["PR(:1000)", "PR(:1000)", "SampleCount", "SampleCount"]


def test_alarms_on_short_windows_roll_back_a_canary(layers: Layers, tmp_path: Path) -> None:
    """A canary adds alarms on trigger failures, and on short windows of fast burn rates, which notify nobody."""
    made = Synthesis(replace(environment_named("dev"), canary=Canary()), layers, tmp_path)
    short = {name: window for name, window in windows_of(made).items() if name.endswith("5m")}
    assert short == {"AcceptedBurnRateFast5m": (98.56, {300}), "OnTimeBurnRateFast5m": (85.6, {300})}
    assert not any(alarm_named(made, name).get("AlarmActions") for name in short)
    failing = alarm_named(made, "TriggerFailing")
    assert (failing["Namespace"], failing["MetricName"], failing["DatapointsToAlarm"]) == ("AWS/Lambda", "Errors", 3)


def test_an_alarm_with_too_many_metrics_raises_an_error() -> None:
    """An alarm with too many metrics raises an error when it is defined."""
    sources = {f"m{n}": function_metric("worker", "Throttles", "Sum") for n in range(11)}
    with pytest.raises(ValueError, match="TooMuch would watch 11 metrics"):
        AlarmSpec("TooMuch", Expression("much", "m0", sources), "much")


def test_the_embedded_aws_gets_no_unsupported_alarms(local: Synthesis) -> None:
    """The embedded AWS gets no alarms with metric math, which it does not support."""
    assert not any("Metrics" in alarm for alarm in local.properties("AWS::CloudWatch::Alarm").values())


def test_every_alarm_links_to_its_section_of_the_runbook(every: Synthesis) -> None:
    """An alarm's email links to the runbook, which has a section for each alarm."""
    page = (ROOT / RUNBOOK).read_text(encoding="utf-8")
    found = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    told = alarms(every.environment)
    texts = [
        text_of(alarm["AlarmDescription"])
        for alarm in every.properties("AWS::CloudWatch::Alarm").values()
        if not text_of(alarm["AlarmDescription"]).startswith("Part of ")
    ]
    assert {text.partition(f"{RUNBOOK}#")[2] for text in texts} == {name.lower() for name in runbook_sections(told)}
    assert runbook_sections(told) <= found


def test_an_alarm_links_to_its_page_in_the_console(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With a console, alarms' descriptions and the functions that send links have the console's address."""
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
    """Return a string in a template, without parts that are only known at the deployment."""
    return value if isinstance(value, str) else "".join(part for part in value["Fn::Join"][1] if isinstance(part, str))


def test_the_runbook_has_no_section_without_an_alarm() -> None:
    """If an alarm is removed, its section must be removed, too."""
    page = (ROOT / RUNBOOK).read_text(encoding="utf-8")
    found = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert found == runbook_sections(alarms(replace(environment_named("prod"), intake_owner="events", canary=Canary())))


def test_alarms_read_only_the_metrics_of_their_stack(every: Synthesis) -> None:
    """The functions of each stack write to a separate namespace, and the stack's alarms read only this namespace."""
    variables = every.functions()["trigger"]["Environment"]["Variables"]
    namespace = variables[Variable.METRICS_NAMESPACE.value]
    assert namespace == f"duetime/duetime-{every.environment.name}"
    found = {
        alarm["Namespace"] for alarm in every.properties("AWS::CloudWatch::Alarm").values() if "Namespace" in alarm
    }
    assert found == {namespace, "AWS/Lambda", "AWS/SQS"}


def test_alarms_can_publish_to_the_topic(every: Synthesis) -> None:
    """The topic's policy replaces the default policy and lets CloudWatch publish only for this account's alarms."""
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


def test_alarms_are_mailed_to_the_address_in_the_settings(dev: Synthesis, layers: Layers, tmp_path: Path) -> None:
    """An email address in the settings is subscribed to the topic; without an address there is no subscription."""
    environment = replace(environment_named("dev"), alarm_email="ops@example.org")
    synthesis = Synthesis(environment, layers, tmp_path)
    (subscription,) = synthesis.properties("AWS::SNS::Subscription").values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.org")
    assert not dev.of_type("AWS::SNS::Subscription")
