"""Tests a stack with an existing table and an existing bucket."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime_cdk.errors import UnsafeEnvironment
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis

if TYPE_CHECKING:
    from duetime_cdk.layers.build import Layers

TABLE = "tasks-restored"
STREAM = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{TABLE}/stream/2026-11-27T09:30:00.000"
SETTINGS: dict[str, Any] = {"table": TABLE, "table_stream_arn": STREAM, "content_bucket": "contents-kept", "epoch": 2}


@pytest.fixture(scope="module")
def synthesis(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return `prod` with an existing table and bucket."""
    environment = replace(environment_named("prod"), **SETTINGS)
    return Synthesis(environment, layers, tmp_path_factory.mktemp("existing"))


def test_a_stack_with_an_existing_table_creates_no_table(synthesis: Synthesis) -> None:
    """The stack creates no table and no bucket for contents, but still creates the archive's bucket."""
    assert not synthesis.of_type("AWS::DynamoDB::Table")
    assert [id_[:7] for id_ in synthesis.of_type("AWS::S3::Bucket")] == ["Archive"]


def test_every_function_uses_the_existing_table_in_the_new_epoch(synthesis: Synthesis) -> None:
    """Every function that uses a table gets the existing table's name and the new epoch."""
    variables = [each["Environment"]["Variables"] for each in synthesis.functions().values()]
    assert {each[Variable.TABLE] for each in variables if Variable.TABLE in each} == {TABLE}
    assert {each[Variable.EPOCH] for each in variables if Variable.TABLE in each} == {"2"}


def test_stream_readers_and_grants_refer_to_the_existing_table(synthesis: Synthesis) -> None:
    """Every DynamoDB grant is for the existing table, its indexes or its stream."""
    mappings = synthesis.properties("AWS::Lambda::EventSourceMapping").values()
    assert [each["EventSourceArn"] for each in mappings].count(STREAM) == 2
    for statements in synthesis.statements().values():
        for statement in statements:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            if any(action.startswith("dynamodb:") for action in actions):
                assert all(TABLE in json.dumps(resource) for resource in resources)


def test_alarms_and_dashboards_use_the_existing_table(synthesis: Synthesis) -> None:
    """The existing table's name is a dimension in an alarm or on a dashboard."""
    alarms = json.dumps(synthesis.properties("AWS::CloudWatch::Alarm"))
    assert TABLE in alarms + json.dumps(synthesis.properties("AWS::CloudWatch::Dashboard"))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"table": TABLE}, "need each other"),
        ({"table_stream_arn": STREAM}, "need each other"),
        ({"table": "another", "table_stream_arn": STREAM}, "not the ARN of a stream of the table 'another'"),
        ({"content_bucket": "No Bucket"}, "not the name of a bucket"),
        ({"epoch": -1}, "`epoch` must be 0 to 999"),
        ({"epoch": 1000}, "`epoch` must be 0 to 999"),
    ],
)
def test_settings_that_do_not_fit_an_existing_table_are_rejected(settings: dict[str, Any], reason: str) -> None:
    """If a setting does not fit the existing table, the error names the setting."""
    with pytest.raises(UnsafeEnvironment, match=reason):
        replace(environment_named("prod"), **settings)
