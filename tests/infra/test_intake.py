from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime_cdk.errors import UnsafeEnvironment
from infra.environments import ENVIRONMENTS, environment_named
from tests.infra.synthesis import Synthesis, add_stack, as_list, new_app, referred

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

DAY = 86_400
SETTINGS = replace(
    environment_named("prod"), intake_owner="123456789012:role/Events", intake_bus="events", retention_days=2
)


@pytest.fixture(scope="module")
def taking(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return a deployment with an intake."""
    return Synthesis(SETTINGS, layers, tmp_path_factory.mktemp("taking"))


def variables(synthesis: Synthesis) -> dict[str, Any]:
    """Return the variables of the intake function."""
    told: dict[str, Any] = synthesis.functions()["intake"]["Environment"]["Variables"]
    return told


def mapping(synthesis: Synthesis) -> dict[str, Any]:
    """Return the event source mapping of the intake's queue."""
    (found,) = [
        each
        for each in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(each["FunctionName"]) == "intake"
    ]
    return found


def test_an_intake_exists_only_if_the_settings_name_its_owner(dev: Synthesis) -> None:
    """An intake exists only if the settings name its owner, because whoever can put events on the bus creates tasks."""
    assert "intake" not in dev.functions()
    assert not dev.of_type("AWS::Events::Rule")
    assert [name for name, environment in ENVIRONMENTS.items() if environment.intake_owner] == ["local"]


def test_intake_events_are_received_in_large_batches(taking: Synthesis) -> None:
    """Batches can have more than ten events, are collected briefly, and have a separate result for each event."""
    found = mapping(taking)
    assert found["BatchSize"] == 100
    assert found["MaximumBatchingWindowInSeconds"] == 1
    assert found["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert found["ScalingConfig"] == {"MaximumConcurrency": 20}


def test_poison_messages_have_a_separate_queue(taking: Synthesis) -> None:
    """Poison messages go to a separate queue, where people can inspect them for two weeks."""
    queues = taking.properties("AWS::SQS::Queue")
    rejects, queue = (
        referred(variables(taking)[Variable.INTAKE_REJECTS.value]),
        referred(mapping(taking)["EventSourceArn"]),
    )
    assert referred(queues[queue]["RedrivePolicy"]["deadLetterTargetArn"]) == rejects
    assert queues[rejects]["MessageRetentionPeriod"] == 14 * DAY
    read = {referred(each["EventSourceArn"]) for each in taking.properties("AWS::Lambda::EventSourceMapping").values()}
    assert rejects not in read


def test_an_event_does_not_outlive_the_record_of_its_task(taking: Synthesis, local: Synthesis) -> None:
    """An event expires before its task's record, because a redelivered event would otherwise create a second task."""
    for synthesis, days in ((taking, 2), (local, 4)):
        queue = synthesis.properties("AWS::SQS::Queue")[referred(mapping(synthesis)["EventSourceArn"])]
        assert queue["MessageRetentionPeriod"] == days * DAY


def test_a_message_is_hidden_while_its_batch_is_collected_and_processed(taking: Synthesis) -> None:
    """A message is hidden while its batch is collected and processed, because it would otherwise be delivered twice."""
    queue = taking.properties("AWS::SQS::Queue")[referred(mapping(taking)["EventSourceArn"])]
    assert queue["VisibilityTimeout"] == taking.functions()["intake"]["Timeout"] + 1


def test_the_rule_matches_task_events_that_are_not_from_duetime(taking: Synthesis) -> None:
    """Events go from the named bus to the queue, and undeliverable events go to the rejects."""
    (rule,) = taking.properties("AWS::Events::Rule").values()
    assert rule["EventPattern"] == {"detail-type": ["duetime task"], "source": [{"anything-but": ["duetime"]}]}
    assert rule["EventBusName"] == "events"
    (target,) = rule["Targets"]
    assert referred(target["Arn"]) == referred(mapping(taking)["EventSourceArn"])
    assert referred(target["DeadLetterConfig"]["Arn"]) == referred(variables(taking)[Variable.INTAKE_REJECTS.value])


def test_the_owner_of_intake_tasks_is_read_from_the_settings(taking: Synthesis) -> None:
    """The function reads the owner of its tasks from the settings."""
    assert variables(taking)[Variable.INTAKE_OWNER.value] == SETTINGS.intake_owner


def test_the_intake_can_write_to_the_rejects_but_not_to_its_own_queue(taking: Synthesis) -> None:
    """The intake may write to the queue of rejects, but not to the queue from which it reads."""
    resources = {
        referred(resource)
        for statement in taking.statements_of("intake")
        if "sqs:SendMessage" in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }
    assert referred(variables(taking)[Variable.INTAKE_REJECTS.value]) in resources
    assert referred(mapping(taking)["EventSourceArn"]) not in resources


def test_a_rejected_event_causes_an_alarm(taking: Synthesis) -> None:
    """A single refused event causes an alarm within a minute, because its sender believes that a task was created."""
    rejects = referred(variables(taking)[Variable.INTAKE_REJECTS.value])
    (alarm,) = [
        each
        for each in taking.properties("AWS::CloudWatch::Alarm").values()
        if "GetAtt" in str(each.get("Dimensions")) and referred(each["Dimensions"][0]["Value"]) == rejects
    ]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Period"]) == (1, 1, 60)
    assert alarm["AlarmActions"]


def test_security_rules_have_no_findings_in_an_intake(layers: Layers, tmp_path: Path) -> None:
    """The security rules have no findings except acknowledged ones."""
    from aws_cdk import Validations
    from cdk_nag import AwsSolutionsChecks

    app = new_app(tmp_path)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    add_stack(app, replace(SETTINGS, **SOURCES), layers)
    app.synth()


ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders"
TABLE_STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000"
PATTERN = {
    "source": [{"prefix": "com.example."}],
    "$or": [{"detail": {"a": [1]}}, {"id": [{"exists": True}]}],
}
SOURCES: dict[str, Any] = {
    "intake_patterns": (PATTERN, {"source": ["aws.s3"]}),
    "intake_queues": (ORDERS,),
    "intake_streams": (TABLE_STREAM,),
    "intake_log_groups": ("/app/orders",),
}


@pytest.fixture(scope="module")
def ruled(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return a deployment whose intake has sources for rules."""
    return Synthesis(replace(SETTINGS, **SOURCES), layers, tmp_path_factory.mktemp("ruled"))


def test_each_source_in_the_settings_invokes_the_intake(ruled: Synthesis, taking: Synthesis) -> None:
    """Each source invokes the intake: bus rules with the exact patterns, queues, streams, and lines of log groups."""
    rules = ruled.properties("AWS::Events::Rule").values()
    assert PATTERN in [each["EventPattern"] for each in rules]
    assert {each["EventBusName"] for each in rules} == {"events"}
    targets = {referred(target["Arn"]) for each in rules for target in each["Targets"]}
    assert len(targets) == 1
    mappings = [
        each
        for each in ruled.properties("AWS::Lambda::EventSourceMapping").values()
        if ruled.function_named(each["FunctionName"]) == "intake"
    ]
    assert [each["EventSourceArn"] for each in mappings if isinstance(each["EventSourceArn"], str)] == [
        ORDERS,
        TABLE_STREAM,
    ]
    assert all(each["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for each in mappings)
    (lines,) = ruled.properties("AWS::Logs::SubscriptionFilter").values()
    assert (lines["LogGroupName"], ruled.function_named(lines["DestinationArn"])) == ("/app/orders", "intake")
    assert variables(ruled)[Variable.INTAKE_QUEUES.value] == ORDERS
    assert not taking.of_type("AWS::Logs::SubscriptionFilter")


def test_undeliverable_events_of_a_source_go_to_the_rejects(ruled: Synthesis) -> None:
    """Stream records and log lines that the intake could not process go to the rejects."""
    rejects = referred(variables(ruled)[Variable.INTAKE_REJECTS.value])
    (stream,) = [
        each
        for each in ruled.properties("AWS::Lambda::EventSourceMapping").values()
        if each["EventSourceArn"] == TABLE_STREAM
    ]
    (invoked,) = [
        each
        for each in ruled.properties("AWS::Lambda::EventInvokeConfig").values()
        if ruled.function_named(each["FunctionName"]) == "intake"
    ]
    for found in (stream, invoked):
        assert referred(found["DestinationConfig"]["OnFailure"]["Destination"]) == rejects


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("intake_patterns", ({"source": "a"},), "intake_patterns.source should be a list"),
        ("intake_queues", ("orders",), "'orders' in `intake_queues`"),
        ("intake_streams", (ORDERS,), "in `intake_streams`"),
        ("intake_log_groups", ("a b",), "'a b' in `intake_log_groups`"),
    ],
)
def test_an_invalid_intake_source_is_rejected(setting: str, value: tuple[Any, ...], reason: str) -> None:
    """An impossible source, or a source without an intake, is refused before the deployment."""
    changed: dict[str, Any] = {setting: value}
    unowned: dict[str, Any] = {setting: SOURCES[setting], "intake_owner": ""}
    with pytest.raises(UnsafeEnvironment, match=reason):
        replace(SETTINGS, **changed)
    with pytest.raises(UnsafeEnvironment, match="need an `intake_owner`"):
        replace(SETTINGS, **unowned)


@pytest.mark.parametrize("owner", ["two words", "a#b", "a" * 129, "ä"])
def test_an_invalid_intake_owner_is_rejected(owner: str) -> None:
    """An intake owner is refused if the API would also refuse the identity as an owner."""
    with pytest.raises(UnsafeEnvironment, match="cannot own tasks"):
        replace(SETTINGS, intake_owner=owner)
