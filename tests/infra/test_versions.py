"""Tests the functions' versions and aliases, and canary deployments."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import LIVE, Variable
from duetime_cdk.alarm_list import ROLLBACK_ALARMS
from duetime_cdk.canary import Canary
from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.handlers_packages import HandlersPackage
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, referred
from tests.parts import others_slow

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

BILLING = HandlersPackage(name="billing", folder="examples/billing", types=("billing.*",))
ALIAS = "AWS::Lambda::Alias"
INVOKING = ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission", "AWS::Lambda::EventInvokeConfig")


@pytest.fixture(scope="module")
def canary(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return a deployment with a canary, and a package of handlers with another canary."""
    package = replace(BILLING, canary=Canary(share=50, minutes=5, failures=5))
    environment = replace(environment_named("prod"), canary=Canary(), handlers_packages=(package,))
    return Synthesis(environment, layers, tmp_path_factory.mktemp("canary"))


def functions(synthesis: Synthesis) -> set[str]:
    """Return the logical ids of the functions."""
    return set(synthesis.of_type("AWS::Lambda::Function"))


def test_no_alias_changes_before_all_versions_are_published(canary: Synthesis) -> None:
    """If a function cannot be updated, the deployment stops while every alias still has the earlier version."""
    versions = set(canary.of_type("AWS::Lambda::Version"))
    aliases = canary.of_type(ALIAS)
    assert len(versions) == len(aliases) == len(functions(canary)) > 10
    assert all(versions <= set(alias["DependsOn"]) for alias in aliases.values())
    assert {alias["Properties"]["Name"] for alias in aliases.values()} == {LIVE}


def test_earlier_versions_are_kept(canary: Synthesis) -> None:
    """Earlier versions are kept, so that a running attempt ends on the version on which it started."""
    assert {each["DeletionPolicy"] for each in canary.of_type("AWS::Lambda::Version").values()} == {"Retain"}


def test_all_invocations_use_the_aliases(canary: Synthesis) -> None:
    """Mappings, permissions, integrations, schedules, grants and variables name an alias, not the latest code."""
    for type_ in INVOKING:
        for id_, each in canary.properties(type_).items():
            named = json.dumps(each.get("FunctionName")) + json.dumps(each.get("Qualifier", ""))
            assert LIVE in named.lower(), id_
    for id_, each in canary.properties("AWS::Scheduler::Schedule").items():
        assert "Live" in json.dumps(each["Target"]["Arn"]), id_
    for each in canary.properties("AWS::ApiGatewayV2::Integration").values():
        assert "Live" in json.dumps(each["IntegrationUri"])
    for statements in canary.statements().values():
        for statement in statements:
            if statement["Action"] == "lambda:InvokeFunction":
                assert LIVE in json.dumps(statement["Resource"]).lower()
    for each in canary.properties("AWS::Lambda::Function").values():
        variables = each.get("Environment", {}).get("Variables", {})
        for name in (Variable.API_FUNCTION, Variable.EGRESS_FUNCTION, Variable.BULK_FUNCTION):
            assert name.value not in variables or f":{LIVE}" in json.dumps(variables[name.value])


def test_the_local_stack_replaces_code_in_place(local: Synthesis) -> None:
    """In the local stack a saved handler must run at once, so there are neither versions nor aliases."""
    assert not local.of_type("AWS::Lambda::Version")
    assert not local.of_type(ALIAS)


@pytest.mark.parametrize(
    ("change", "publishes"),
    others_slow(
        [
            ({"lease_seconds": 60}, {"worker"}),
            ({"alarm_email": "ops@example.org"}, set()),
            ({"shards": 32}, {"api", "trigger", "topology", "bulk", "worker", "deadletter"}),
        ]
    ),
    ids=["lease", "email", "shards"],
)
def test_a_changed_setting_publishes_versions_only_of_its_functions(
    layers: Layers, tmp_path: Path, change: dict[str, Any], publishes: set[str]
) -> None:
    """A version is named after its code, layers and variables, so functions without a change get no new version."""
    found = []
    for number, environment in enumerate((environment_named("dev"), replace(environment_named("dev"), **change))):
        (folder := tmp_path / str(number)).mkdir()
        synthesis = Synthesis(environment, layers, folder)
        found.append(
            {
                (synthesis.function_named(each["FunctionName"]), id_)
                for id_, each in synthesis.properties("AWS::Lambda::Version").items()
            }
        )
    before, after = found
    assert {name for name, _ in after - before} == publishes


MOST_ALARMS = 10
"""The maximum number of alarms in a deployment group (Source: AWS CodeDeploy API Reference, "AlarmConfiguration")."""


def test_an_alarm_stops_the_deployment_of_each_function(canary: Synthesis) -> None:
    """Every deployment group watches the stack's alarms, and groups of handlers also watch failures."""
    groups = canary.properties("AWS::CodeDeploy::DeploymentGroup")
    for id_, group in groups.items():
        alarms = group["AlarmConfiguration"]["Alarms"]
        runs_handlers = "Worker" in id_ or "billing" in id_
        assert len(alarms) == len(ROLLBACK_ALARMS) + runs_handlers <= MOST_ALARMS, id_
        assert ("HandlersFailing" in json.dumps(alarms)) == runs_handlers
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    deployed = {
        referred(alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"])
        for alias in canary.of_type(ALIAS).values()
    }
    assert deployed == set(groups)


def test_a_package_can_have_a_separate_canary(canary: Synthesis) -> None:
    """A package's canary has its own share and duration; all other functions use the environment's canary settings."""
    configs = canary.properties("AWS::CodeDeploy::DeploymentConfig")
    shares = {id_: (each["TrafficRoutingConfig"]["TimeBasedCanary"].values()) for id_, each in configs.items()}
    assert sorted(map(sorted, shares.values())) == [[5, 50], [10, 10]]
    of_package = [id_ for id_, config in shares.items() if sorted(config) == [5, 50]]
    used = [
        id_
        for id_, group in canary.properties("AWS::CodeDeploy::DeploymentGroup").items()
        if referred(group["DeploymentConfigName"]) in of_package
    ]
    assert len(used) == 1
    assert "billing" in used[0]


def test_the_failure_alarm_uses_metrics_of_the_new_version(canary: Synthesis) -> None:
    """The alarm's metrics are those of the function's new version, so failures of an earlier version do not count."""
    alarms = {
        id_: each for id_, each in canary.properties("AWS::CloudWatch::Alarm").items() if "HandlersFailing" in id_
    }
    assert {each["Threshold"] for each in alarms.values()} == {20, 5}
    versions = set(canary.of_type("AWS::Lambda::Version"))
    for each in alarms.values():
        metrics = [one["MetricStat"]["Metric"] for one in each["Metrics"] if "MetricStat" in one]
        assert {one["MetricName"] for one in metrics} == {"version_failures", "version_attempts"}
        for one in metrics:
            (value,) = [text for text in one["Dimensions"] if text["Name"] == "version"]
            assert versions & set(re.findall(r"\w+", json.dumps(value["Value"])))
    assert canary.functions()["worker"]["Environment"]["Variables"][Variable.CANARY.value] == "on"


def test_without_a_canary_nothing_is_added(dev: Synthesis) -> None:
    """Without a canary, there is no CodeDeploy, no alarm and no variable, and the aliases change at once."""
    assert not [each for each in dev.template["Resources"].values() if "CodeDeploy" in each["Type"]]
    assert Variable.CANARY.value not in dev.functions()["worker"]["Environment"]["Variables"]
    assert not any("HandlersFailing" in id_ for id_ in dev.of_type("AWS::CloudWatch::Alarm"))
    assert all("UpdatePolicy" not in alias for alias in dev.of_type(ALIAS).values())


@pytest.mark.parametrize("numbers", [{"share": 0}, {"share": 100}, {"minutes": 4}, {"minutes": 2881}, {"failures": 0}])
def test_a_canary_with_values_out_of_range_is_rejected(numbers: dict[str, int]) -> None:
    """The error for a canary's number out of range names the number, for an environment and for a package."""
    (name,) = numbers
    with pytest.raises(UnsafeEnvironment, match=rf"environment 'dev': `{name}` of `canary`"):
        replace(environment_named("dev"), canary=Canary(**numbers))
    with pytest.raises(UnsafeEnvironment, match=rf"'billing': `{name}` of `canary`"):
        replace(environment_named("dev"), handlers_packages=(replace(BILLING, canary=Canary(**numbers)),))
