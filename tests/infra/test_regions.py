"""Tests the stack of a deployment with a standby Region."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.environment_variables import Variable
from duetime_cdk.errors import UnsafeEnvironment
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis

if TYPE_CHECKING:
    from duetime_cdk.layers.build import Layers

REGIONS = ("eu-west-1", "eu-central-1")


@pytest.fixture(scope="module")
def synthesis(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return `prod` with a standby Region; the stack's own Region is only known at the deployment."""
    environment = replace(environment_named("prod"), regions=REGIONS, api_keys=True, summary_spread=0, task_lists=0)
    return Synthesis(environment, layers, tmp_path_factory.mktemp("regions"))


def test_every_function_knows_the_regions(synthesis: Synthesis) -> None:
    """Functions that use the table get the Regions, with the first active Region first."""
    variables = [each["Environment"]["Variables"] for each in synthesis.functions().values()]
    assert {each[Variable.REGIONS] for each in variables if Variable.TABLE in each} == {" ".join(REGIONS)}


def test_functions_with_few_grants_can_read_the_record_of_the_active_region(synthesis: Synthesis) -> None:
    """The broadcaster, even without a summary, and the authorizer, which reads only keys, can read the record."""
    for name in ("Broadcast", "Authorizer"):
        statements = [
            statement
            for role, found in synthesis.statements().items()
            if name in role
            for statement in found
            if "dynamodb:GetItem" in statement["Action"]
        ]
        assert statements, name
        keys = [
            each["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
            for each in statements
            if "Condition" in each
        ]
        assert bool(keys) == (name == "Authorizer")
        assert all(schema.REGION_KEY in each for each in keys)


@pytest.mark.parametrize("construct", ["Content", "Archive"])
def test_contents_and_the_archive_can_be_replicated(synthesis: Synthesis, construct: str) -> None:
    """The bucket keeps versions for a day, and S3 has a role that reaches only this account's buckets."""
    found = {name: each for name, each in synthesis.properties("AWS::S3::Bucket").items() if name.startswith(construct)}
    ((name, bucket),) = found.items()
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert {"NoncurrentDays": 1} in [each.get("NoncurrentVersionExpiration") for each in rules]
    (statements,) = [found for role, found in synthesis.statements().items() if "Replication" in role]
    reads = [each for each in statements if "s3:GetObjectVersionForReplication" in each["Action"]]
    assert name in str(reads)
    writes = next(each for each in statements if "s3:ReplicateObject" in each["Action"])
    assert writes["Condition"] == {"StringEquals": {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}}}
    assert "ReplicationRoleArn" in synthesis.template["Outputs"]


@pytest.mark.parametrize(
    "regions", [("eu-west-1",), ("eu-west-1", "eu-west-1"), "eu-west-1", ("Ireland", "eu-central-1"), ("a", "b", "c")]
)
def test_a_setting_without_exactly_two_regions_is_rejected(regions: Any) -> None:  # noqa: ANN401 - any value that a user can write
    """The error for a setting without exactly two Regions names the setting and shows the expected form."""
    with pytest.raises(UnsafeEnvironment, match="`regions` needs two different Regions"):
        replace(environment_named("prod"), regions=regions)


def test_a_stack_in_another_region_is_rejected() -> None:
    """A third Region is refused, and so is the second without the replica; a single-Region stack can be anywhere."""
    environment = replace(environment_named("prod"), regions=REGIONS)
    environment.check_region(REGIONS[0])
    environment.check_region("${Token[AWS.Region.9]}")
    with pytest.raises(UnsafeEnvironment, match="us-east-1, which is not in `regions`"):
        environment.check_region("us-east-1")
    with pytest.raises(UnsafeEnvironment, match="`duetime region add` prints"):
        environment.check_region(REGIONS[1])
    environment_named("prod").check_region("us-east-1")
