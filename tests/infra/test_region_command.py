"""Tests `duetime region` with a fake AWS in two Regions, which replicates nothing by itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from duetime.adapters.dynamodb.regions import DynamoRegionStore
from duetime.adapters.dynamodb.restore import DynamoRecords
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.regions import ActiveRegion
from duetime.domain.tasks.states import State
from duetime_cdk.bucket_replication import RegionalBucket
from duetime_client import Client
from duetime_client.commands.app import app
from duetime_client.commands.clock import Clock
from duetime_client.doctor.checks import CHECKS, Finding, Severity, _findings
from duetime_client.doctor.deployment import Deployment
from duetime_testing.fakes.task_table import new_table
from tests.domain.factories import ID, task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3.type_defs import VersioningConfigurationTypeDef
    from typer.testing import Result

FIRST, OTHER = "eu-west-1", "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/replication"
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


@dataclass
class Deployed:
    """A deployment in two Regions, each with a table.

    Attributes:
        table: the name of the table in both Regions.
        now: the current time, which each wait advances.
    """

    table: str
    now: datetime = NOW

    def client(self, region: str) -> Any:  # noqa: ANN401 - of boto3
        """Return a DynamoDB client in a Region."""
        return boto3.client("dynamodb", region_name=region)

    def regions(self, region: str) -> DynamoRegionStore:
        """Return the record of the Regions, as stored in a Region."""
        return DynamoRegionStore(self.client(region), self.table)

    def records(self, region: str) -> DynamoRecords:
        """Return the tasks in a Region."""
        return DynamoRecords(self.client(region), self.table)

    def duetime(self, *arguments: str, typed: str | None = None) -> Result:
        """Run a command with this clock."""
        clock = Clock(now=lambda: self.now, sleep=self._sleep)
        return CliRunner().invoke(app, ("region", *arguments), input=typed, obj=clock)

    def _sleep(self, seconds: float) -> None:
        # Time advances by more than the wait; otherwise an item that is never replicated would be read 300 times.
        self.now += timedelta(seconds=max(seconds, 5))


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """Deploy a stack with the same name in both Regions."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", FIRST)
    with mock_aws():
        name = new_table(boto3.client("dynamodb", region_name=FIRST))
        _copy_table(name, OTHER)
        for region in (FIRST, OTHER):
            names = {"BucketName": f"contents-{region}", "ArchiveBucketName": f"archive-{region}"}
            outputs = {**names, "ReplicationRoleArn": ROLE}
            boto3.client("cloudformation", region_name=region).create_stack(
                StackName="duetime-prod", TemplateBody=json.dumps(_template(name, f"{FIRST} {OTHER}", **outputs))
            )
            objects = boto3.client("s3", region_name=region)
            placed: Any = {"LocationConstraint": region}
            versions: VersioningConfigurationTypeDef = {"Status": "Enabled"}
            for name_of_bucket in names.values():
                objects.create_bucket(Bucket=name_of_bucket, CreateBucketConfiguration=placed)
                objects.put_bucket_versioning(Bucket=name_of_bucket, VersioningConfiguration=versions)
        yield Deployed(name)


def _copy_table(name: str, region: str) -> None:
    described = boto3.client("dynamodb", region_name=FIRST).describe_table(TableName=name)["Table"]
    boto3.client("dynamodb", region_name=region).create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": key["AttributeName"], "AttributeType": "S"} for key in described["KeySchema"]
        ],
        KeySchema=described["KeySchema"],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )


def _template(table: str, regions: str, **more: str) -> dict[str, Any]:
    named = {"Regions": regions} if regions else {}
    outputs = {"TableName": table, "BucketName": "contents", "Epoch": "0", **named, **more}
    return {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }


def test_before_the_first_takeover_the_first_region_is_active(deployed: Deployed) -> None:
    """Before a takeover there is no record; if nothing is replicated, the exit code is 1 and the lag is unknown."""
    result = deployed.duetime("status", "--stack", "duetime-prod", "--json")
    found = json.loads(result.stdout)
    assert (found["active"], found["standby"], found["epoch"], found["agree"]) == (FIRST, OTHER, 0, True)
    assert (result.exit_code, found["replication_lag_ms"]) == (1, None)
    shown = deployed.duetime("status", "--stack", "duetime-prod")
    assert "nothing is replicated" in shown.output


def test_a_forced_takeover_raises_the_epoch_and_opens_the_region(deployed: Deployed) -> None:
    """After a forced takeover, the running task waits again, with a fence in the new epoch and a timer."""
    lease = round(NOW.timestamp() * 1000) + 20_000
    deployed.records(OTHER).insert(task(state=State.RUNNING, fence=1, attempt=1, lease_expires_at=lease))
    result = deployed.duetime(
        "takeover", "--stack", "duetime-prod", "--to", OTHER, "--force", "--yes", "--segments", "1"
    )
    assert result.exit_code == 0, result.output
    found = deployed.regions(OTHER).read()
    assert found is not None
    assert (found.name, found.epoch, found.is_open) == (OTHER, 1, True)
    (taken,) = deployed.records(OTHER).open_page(0, 1, "").tasks
    assert (taken.fence, taken.state) == (FENCES_PER_EPOCH + 1, State.WAITING)
    items = deployed.client(OTHER).scan(TableName=deployed.table)["Items"]
    assert [item["s"]["S"] for item in items if item["s"]["S"].startswith(f"{taken.id}#w#")]
    assert "1 tasks were running: they run again" in result.output


def test_a_planned_takeover_closes_the_first_region_and_waits_for_replication(deployed: Deployed) -> None:
    """The second Region does not start without the first Region's latest writes, and the error names `--force`."""
    result = deployed.duetime("takeover", "--stack", "duetime-prod", "--to", OTHER, "--yes")
    assert result.exit_code == 1
    assert "force" in result.output
    assert deployed.regions(OTHER).read() is None
    stopped = deployed.regions(FIRST).read()
    assert stopped is not None
    assert (stopped.name, stopped.is_open) == (OTHER, False)


def test_a_repeated_takeover_keeps_its_epoch(deployed: Deployed) -> None:
    """A repeated takeover keeps the recorded epoch; tasks that were replicated late are taken over each time."""
    deployed.regions(OTHER).save(ActiveRegion(OTHER, 4, 1, is_open=False))
    given = ("takeover", "--stack", "duetime-prod", "--to", OTHER, "--force", "--yes", "--segments", "1", "--json")
    for number in range(2):
        deployed.records(OTHER).insert(task(id=TaskId(f"{ID.text[:-1]}{number}"), state=State.SCHEDULED))
        result = deployed.duetime(*given)
        assert result.exit_code == 0, result.output
        assert (json.loads(result.stdout)["epoch"], json.loads(result.output)["tasks"]["open"]) == (4, 1)


def test_the_status_names_regions_that_disagree(deployed: Deployed) -> None:
    """If the first Region does not have the new record yet after a forced takeover, the status says so."""
    deployed.regions(OTHER).save(ActiveRegion(OTHER, 1, 1, is_open=True))
    result = deployed.duetime("status", "--stack", "duetime-prod")
    assert result.exit_code == 1
    assert f"{FIRST} is not updated yet: it considers {FIRST} active (epoch 0)" in result.output


def test_without_a_terminal_a_forced_takeover_requires_confirmation(deployed: Deployed) -> None:
    """Without a terminal, the command does nothing except explain a forced takeover and how to confirm it."""
    result = deployed.duetime("takeover", "--stack", "duetime-prod", "--to", OTHER, "--force")
    assert result.exit_code == 3
    assert "tasks run in both Regions until it receives the change" in result.output
    assert "give --yes" in result.output
    assert deployed.regions(OTHER).read() is None


def test_a_takeover_by_another_region_or_in_a_single_region_is_rejected(deployed: Deployed) -> None:
    """The error names the possible Regions, the command that adds a Region, or the missing stack."""
    elsewhere = json.dumps(_template(deployed.table, f"{FIRST} {OTHER}"))
    boto3.client("cloudformation", region_name="us-east-1").create_stack(StackName="stray", TemplateBody=elsewhere)
    wrong = deployed.duetime("takeover", "--stack", "stray", "--to", "us-east-1", "--yes")
    assert (wrong.exit_code, f"the Regions of stray are {FIRST} and {OTHER}" in wrong.output) == (1, True)
    for region in ("us-east-1", FIRST):
        boto3.client("cloudformation", region_name=region).create_stack(
            StackName="single", TemplateBody=json.dumps(_template(deployed.table, ""))
        )
    result = deployed.duetime("takeover", "--stack", "single", "--to", "us-east-1", "--yes")
    assert result.exit_code == 1
    assert "duetime region add" in result.output
    missing = deployed.duetime("status", "--stack", "absent")
    assert missing.exit_code == 1
    assert "absent" in missing.output


def test_adding_a_region_replicates_the_table_and_prints_the_settings(deployed: Deployed) -> None:
    """Repeating the command finds the replica, whose continuous backup is separate."""
    for _ in range(2):
        result = deployed.duetime("add", "--stack", "duetime-prod", "--region", OTHER)
        assert result.exit_code == 0, result.output
    assert f'regions=("{FIRST}", "{OTHER}"),' in result.output
    assert f'table="{deployed.table}",' in result.output
    assert f'table_stream_arn="arn:aws:dynamodb:{OTHER}:' in result.output
    backups = deployed.client(OTHER).describe_continuous_backups(TableName=deployed.table)
    described = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert described["PointInTimeRecoveryStatus"] == "ENABLED"


def test_adding_the_region_of_the_deployment_is_rejected(deployed: Deployed) -> None:
    """Adding the deployment's own Region is refused, because a bucket is not replicated to itself."""
    result = deployed.duetime("add", "--stack", "duetime-prod", "--region", FIRST)
    assert result.exit_code == 1
    assert "name another Region" in result.output


def test_contents_are_replicated_in_both_directions(deployed: Deployed) -> None:
    """In both directions, earlier objects are copied once, with their tags."""
    clients = {region: boto3.client("s3", region_name=region) for region in (FIRST, OTHER)}
    for region, client in clients.items():
        client.put_object(Bucket=f"contents-{region}", Key=f"of-{region}", Body=b"x", Tagging="expires=yes")
    before = json.loads(deployed.duetime("status", "--stack", "duetime-prod", "--json").stdout)
    copied = []
    for _ in range(2):
        result = deployed.duetime("replicate", "--stack", "duetime-prod")
        assert result.exit_code == 0, result.output
        copied += [line for line in result.output.splitlines() if "earlier objects" in line]
    assert copied == ["2 earlier objects were copied", "0 earlier objects were copied"]
    after = json.loads(deployed.duetime("status", "--stack", "duetime-prod", "--json").stdout)
    assert (before["contents_replicated"], after["contents_replicated"]) == (False, True)
    for region, client in clients.items():
        other = OTHER if region == FIRST else FIRST
        tags = client.get_object_tagging(Bucket=f"contents-{region}", Key=f"of-{other}")["TagSet"]
        assert tags == [{"Key": "expires", "Value": "yes"}]
        (rule,) = client.get_bucket_replication(Bucket=f"contents-{region}")["ReplicationConfiguration"]["Rules"]
        assert rule["Destination"]["Bucket"] == f"arn:aws:s3:::contents-{other}"


def test_the_archive_is_replicated_in_both_directions(deployed: Deployed) -> None:
    """Each Region gets the rows that the other Region has archived; query results are not replicated."""
    clients = {region: boto3.client("s3", region_name=region) for region in (FIRST, OTHER)}
    keys = ("archive/day=2026-11-22/{}.jsonl.gz", "unreadable/{}.jsonl.gz", "aws/lambda/{}", "query-results/{}")
    for region, client in clients.items():
        for key in keys:
            client.put_object(Bucket=f"archive-{region}", Key=key.format(region), Body=b"x", Tagging="kept-days=7")
    before = deployed.duetime("status", "--stack", "duetime-prod")
    assert "the archive is not replicated: run `duetime region replicate`" in before.output
    result = deployed.duetime("replicate", "--stack", "duetime-prod")
    assert "6 earlier objects were copied" in result.output
    after = json.loads(deployed.duetime("status", "--stack", "duetime-prod", "--json").stdout)
    assert after["archive_replicated"]
    for region, client in clients.items():
        other = OTHER if region == FIRST else FIRST
        found = {each["Key"] for each in client.list_objects_v2(Bucket=f"archive-{region}")["Contents"]}
        copied = {key.format(other) for key in keys[:3]}
        assert found == copied | {key.format(region) for key in keys}
        tags = client.get_object_tagging(Bucket=f"archive-{region}", Key=keys[0].format(other))["TagSet"]
        assert tags == [{"Key": "kept-days", "Value": "7"}]
        rules = client.get_bucket_replication(Bucket=f"archive-{region}")["ReplicationConfiguration"]["Rules"]
        assert [each["ID"] for each in rules] == ["duetime-archive/", "duetime-unreadable/", "duetime-aws/lambda/"]
        assert {each["Destination"]["Bucket"] for each in rules} == {f"arn:aws:s3:::archive-{other}"}


@pytest.mark.parametrize(("has", "lacks"), [(FIRST, OTHER), (OTHER, FIRST)])
def test_the_status_names_a_region_without_an_archive(deployed: Deployed, has: str, lacks: str) -> None:
    """Each Region archives the records that it removes; the status names the Region without an archive, and the fix."""
    both = json.loads(deployed.duetime("status", "--stack", "duetime-prod", "--json").stdout)
    assert both["archives"] == [FIRST, OTHER]
    outputs = {"BucketName": f"contents-{lacks}", "ReplicationRoleArn": ROLE}
    boto3.client("cloudformation", region_name=lacks).update_stack(
        StackName="duetime-prod", TemplateBody=json.dumps(_template(deployed.table, f"{FIRST} {OTHER}", **outputs))
    )
    shown = deployed.duetime("status", "--stack", "duetime-prod").output
    assert f"only {has} has an archive: tasks that {lacks} removes by TTL are in no archive" in shown
    assert f"deploy {lacks} with the `archive_days` of {has}" in shown
    assert "the archive is not replicated" not in shown
    one = json.loads(deployed.duetime("status", "--stack", "duetime-prod", "--json").stdout)
    assert (one["archives"], one["archive_replicated"]) == ([has], None)


def test_a_bucket_without_versions_is_rejected(deployed: Deployed) -> None:
    """S3 cannot replicate the bucket, so the error names it, and no rule is created in the other direction either."""
    client = boto3.client("s3", region_name=OTHER)
    suspended: VersioningConfigurationTypeDef = {"Status": "Suspended"}
    client.put_bucket_versioning(Bucket=f"contents-{OTHER}", VersioningConfiguration=suspended)
    result = deployed.duetime("replicate", "--stack", "duetime-prod")
    assert result.exit_code == 1
    assert f"contents-{OTHER} in {OTHER} keeps no versions" in result.output
    with pytest.raises(ClientError, match="ReplicationConfigurationNotFound"):
        boto3.client("s3", region_name=FIRST).get_bucket_replication(Bucket=f"contents-{FIRST}")
    shown = deployed.duetime("status", "--stack", "duetime-prod")
    assert "contents above 200 KB are not replicated: run `duetime region replicate`" in shown.output


def test_deletions_and_encrypted_objects_are_replicated() -> None:
    """Objects that a user deletes are deleted in both Regions; a user's key is replaced by the other Region's key."""
    named = (("here", "key-1"), ("there", "key-2"))
    here, there = (RegionalBucket(None, name, ROLE, key, ("archive/",)) for name, key in named)
    (rule,) = here.rules_to(there)
    assert rule["Filter"] == {"Prefix": "archive/"}
    assert rule["DeleteMarkerReplication"] == {"Status": "Enabled"}
    assert rule["Destination"]["EncryptionConfiguration"] == {"ReplicaKmsKeyID": "key-2"}
    assert rule["SourceSelectionCriteria"] == {"SseKmsEncryptedObjects": {"Status": "Enabled"}}
    assert "SourceSelectionCriteria" not in here.rules_to(RegionalBucket(None, "there", ROLE, ""))[0]


def _of_regions(client: Client) -> list[Finding]:
    deployment = Deployment(botocore.session.get_session(), "duetime-prod", client, lambda: NOW)
    (check,) = (each for each in CHECKS if each.name == "regions")
    return _findings(check, deployment)


def test_the_doctor_compares_the_regions(deployed: Deployed) -> None:
    """The doctor names contents that are not replicated, a stack with other Regions, and a missing stack."""
    client = Client("https://tasks.example.org")
    for found, subject in zip(_of_regions(client), ("contents above 200 KB are", "the archive is"), strict=True):
        assert found.severity is Severity.WARNING
        assert found.seen == f"{subject} not replicated from eu-west-1 and eu-central-1"
    assert deployed.duetime("replicate", "--stack", "duetime-prod").exit_code == 0
    (healthy,) = _of_regions(client)
    assert (healthy.severity, healthy.seen) == (Severity.OK, f"{FIRST} and {OTHER}")
    stacks = boto3.client("cloudformation", region_name=OTHER)
    changed = _template(deployed.table, f"{OTHER} {FIRST}", BucketName=f"contents-{OTHER}")
    stacks.update_stack(StackName="duetime-prod", TemplateBody=json.dumps(changed))
    differing, archives = _of_regions(client)
    assert (differing.severity, "deploy both" in differing.advice) == (Severity.PROBLEM, True)
    assert archives.seen == f"only {FIRST} has an archive: tasks that {OTHER} removes by TTL are in no archive"
    assert archives.advice.startswith(f"deploy {OTHER} with the `archive_days` of {FIRST}, then duetime region")
    stacks.delete_stack(StackName="duetime-prod")
    (missing,) = _of_regions(client)
    assert missing.severity is not Severity.OK
