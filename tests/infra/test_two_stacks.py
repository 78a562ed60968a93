"""Tests that two stacks with the same preset, in one account and Region, share no name and no metric."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from infra.environments import environment_named
from tests.infra.synthesis import new_app

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

STACKS = ("billing", "Billing", "reports")
NAMES = {
    "AWS::ApiGatewayV2::Api": ("Name",),
    "AWS::Athena::NamedQuery": ("Database", "WorkGroup"),
    "AWS::Athena::WorkGroup": ("Name",),
    "AWS::CloudWatch::Dashboard": ("DashboardName",),
    "AWS::Glue::Database": ("DatabaseInput.Name",),
    "AWS::Glue::Table": ("DatabaseName",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::SQS::Queue": ("QueueName",),
}
"""Properties with which duetime names a resource; CloudFormation names all other resources after the stack."""
NAMING = ("Name", "AlarmName", "FunctionName", "RoleName", "TopicName", "TableName", "BucketName", "StateMachineName")
REFERRED = (
    *("AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping", "AWS::CloudWatch::Alarm"),
    # An alias's name is unique only within its function.
    "AWS::Lambda::Alias",
)


@pytest.fixture(scope="module")
def templates(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return three stacks of `prod` with everything that has a name, by their own names."""
    folder: Path = tmp_path_factory.mktemp("stacks")
    from aws_cdk.assertions import Template

    from duetime_cdk import DuetimeStack

    environment = replace(
        environment_named("prod"), handlers_folder="examples/handlers", pulled_types={"render": ("*",)}, archive_days=30
    )
    app = new_app(folder)
    made = {name: DuetimeStack(app, name, environment=environment, layers=layers) for name in STACKS}
    return {name: dict(Template.from_stack(stack).to_json()) for name, stack in made.items()}


def named(template: dict[str, Any]) -> set[str]:
    """Return the names in a template, which must differ in any other stack."""
    found = set()
    for body in template["Resources"].values():
        for path in NAMES.get(body["Type"], ()):
            value: Any = body.get("Properties", {})
            for part in path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            # A reference to a stack's own resource differs between stacks.
            if isinstance(value, str):
                found.add(f"{body['Type']} {value}")
    return found


def test_two_stacks_have_no_resource_name_in_common(templates: dict[str, dict[str, Any]]) -> None:
    """APIs, workgroups, databases, dashboards and queues have different names, even if stacks differ only in case."""
    names = [named(template) for template in templates.values()]
    assert all(len(each) >= 7 for each in names)
    for number, one in enumerate(names):
        assert all(not one & other for other in names[number + 1 :])


def test_every_property_with_a_literal_name_is_known(templates: dict[str, dict[str, Any]]) -> None:
    """No property unknown to this test contains a literal name, because all stacks would share the name."""
    for body in templates["billing"]["Resources"].values():
        if body["Type"] not in {*NAMES, *REFERRED}:
            given = {key: value for key, value in body.get("Properties", {}).items() if key in NAMING}
            assert not {key for key, value in given.items() if isinstance(value, str)}, body["Type"]
    assert not any("Export" in each for each in templates["billing"]["Outputs"].values())


def test_alarms_and_panels_use_only_metrics_of_their_stack(templates: dict[str, dict[str, Any]]) -> None:
    """Functions write metrics to a separate namespace per stack; AWS's own metrics are found by resource names."""
    spaces = []
    for name, template in templates.items():
        written = {
            body["Properties"]["Environment"]["Variables"][Variable.METRICS_NAMESPACE.value]
            for body in template["Resources"].values()
            if body["Type"] == "AWS::Lambda::Function" and "Environment" in body["Properties"]
        }
        assert written == {f"duetime/{name}"}
        watched = [
            json.dumps(body)
            for body in template["Resources"].values()
            if body["Type"] in {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}
        ]
        assert any(f"duetime/{name}" in each for each in watched)
        others = [other for other in STACKS if other != name]
        assert not any(f"duetime/{other}" in each for each in watched for other in others)
        spaces.append(written)
    assert len({str(each) for each in spaces}) == len(STACKS)
