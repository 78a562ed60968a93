"""Tests `duetime restore` and `duetime uninstall` with a fake AWS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from duetime.adapters.dynamodb.regions import DynamoRegionStore
from duetime.adapters.dynamodb.restore import EPOCH_TAG, DynamoRecords
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.regions import ActiveRegion
from duetime.domain.tasks.states import State
from duetime_client.commands.app import app
from duetime_testing.fakes.task_table import new_table
from tests.domain.factories import task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typer.testing import Result

TO = "2026-11-20T09:30:00Z"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Create a table with a continuous backup and one running task."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("dynamodb")
        name = new_table(client)
        client.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        DynamoRecords(client, name).insert(task(state=State.RUNNING, fence=1, attempt=1, lease_expires_at=1))
        yield name


def duetime(*arguments: str, typed: str | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, arguments, input=typed)


def restored(table: str, tmp_path: Path, *more: str) -> Result:
    """Restore the table."""
    report = str(tmp_path / "report.jsonl")
    given = ("--from", table, "--bucket", "contents", "--to", TO, "--table", "restored", "--report", report)
    return duetime("restore", *given, *more)


def test_a_restore_prints_the_settings_to_deploy(table: str, tmp_path: Path) -> None:
    """After a restore, the task has a fence of epoch 1, the deployment is stopped, and the report names the task."""
    result = restored(table, tmp_path, "--yes")
    assert result.exit_code == 0, result.output
    client = boto3.client("dynamodb")
    (found,) = DynamoRecords(client, "restored").open_page(0, 1, "").tasks
    assert (found.fence, found.state) == (FENCES_PER_EPOCH + 1, State.PAUSED)
    (before,) = DynamoRecords(client, table).open_page(0, 1, "").tasks
    assert before.fence == 1
    stream = client.describe_table(TableName="restored")["Table"]["LatestStreamArn"]
    assert 'table="restored",' in result.output
    assert f'table_stream_arn="{stream}",' in result.output
    assert "epoch=1," in result.output
    (line,) = (json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines())
    assert (line["id"], line["change"], line["now"]) == (found.id.text, "begun", "paused")
    switches = DynamoSwitchStore(client, "restored").read(consistent=True).in_force
    assert "the table was restored" in str(switches.verdict(found))


def test_a_second_run_continues_with_the_paused_tasks(table: str, tmp_path: Path) -> None:
    """A second run finds the restored table and its epoch, does not repeat the takeover, and resumes the tasks."""
    assert restored(table, tmp_path, "--yes").exit_code == 0
    again = restored(table, tmp_path, "--yes", "--after", "rerun")
    assert again.exit_code == 0, again.output
    assert "epoch=1," in again.output
    (found,) = DynamoRecords(boto3.client("dynamodb"), "restored").open_page(0, 1, "").tasks
    assert (found.fence, found.state) == (FENCES_PER_EPOCH + 1, State.WAITING)


def test_the_epoch_increases_with_every_restore(table: str, tmp_path: Path) -> None:
    """The restored table contains the new epoch, so a restore from this table gets the next epoch."""
    assert restored(table, tmp_path, "--yes").exit_code == 0
    client = boto3.client("dynamodb")
    given = ("--from", "restored", "--bucket", "contents", "--to", TO, "--table", "again")
    result = duetime("restore", *given, "--report", str(tmp_path / "second.jsonl"), "--yes")
    assert "epoch=2," in result.output
    (found,) = DynamoRecords(client, "again").open_page(0, 1, "").tasks
    assert found.fence == 2 * FENCES_PER_EPOCH + 1


def test_the_epoch_is_above_that_of_the_last_takeover_by_another_region(table: str, tmp_path: Path) -> None:
    """The new epoch is above the last takeover's epoch, so that no fence from the lost table stays valid."""
    DynamoRegionStore(boto3.client("dynamodb"), table).save(ActiveRegion("us-east-1", 3, 1, is_open=True))
    result = restored(table, tmp_path, "--yes")
    assert "epoch=4," in result.output


def test_a_table_restored_by_hand_requires_the_epoch_as_an_option(table: str, tmp_path: Path) -> None:
    """If the replaced table no longer exists, its epoch cannot be read and must be given as an option."""
    given = ("restore", "--table", table, "--bucket", "contents", "--report", str(tmp_path / "report"), "--yes")
    refused = duetime(*given)
    assert (refused.exit_code, "--epoch" in refused.output) == (1, True)
    result = duetime(*given, "--epoch", "4", "--after", "rerun")
    assert result.exit_code == 0, result.output
    assert "the tasks that ran after the restore point are not known" in result.output
    (found,) = DynamoRecords(boto3.client("dynamodb"), table).open_page(0, 1, "").tasks
    assert (found.fence, found.state) == (4 * FENCES_PER_EPOCH + 1, State.WAITING)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "give --to TIME"),
        (("--to", TO), "give --stack, or --from"),
        (("--to", TO, "--from", "absent"), "--bucket"),
        (("--to", TO, "--from", "absent", "--bucket", "b"), "there is no table absent"),
        (("--to", "yesterday-ish", "--from", "absent", "--bucket", "b"), "--to: "),
        (("--to", "2999-01-01T00:00:00Z", "--from", "absent", "--bucket", "b"), "lies in the future"),
        (("--stack", "absent", "--to", TO), "the stack absent cannot be read"),
    ],
)
@pytest.mark.usefixtures("table")
def test_an_incomplete_restore_command_is_rejected(arguments: tuple[str, ...], reason: str) -> None:
    """An incomplete or invalid restore command is refused, and the error gives the reason."""
    result = duetime("restore", *arguments)
    assert (result.exit_code, reason in result.output) == (1, True), result.output


def test_a_restore_requires_confirmation(table: str, tmp_path: Path) -> None:
    """Without a terminal, a restore does nothing unless `--yes` is given."""
    result = restored(table, tmp_path)
    assert result.exit_code == 3
    assert "give --yes" in result.output
    assert len(boto3.client("dynamodb").list_tables()["TableNames"]) == 1


def _stack(policy: str) -> None:
    resources: dict[str, Any] = {
        "Tasks": {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": policy,
            "Properties": {
                "TableName": "tasks",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
                "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
            },
        },
        "Queue": {"Type": "AWS::SQS::Queue"},
    }
    outputs = {"TableName": {"Value": {"Ref": "Tasks"}}, "BucketName": {"Value": "contents"}}
    template = json.dumps({"Resources": resources, "Outputs": outputs})
    boto3.client("cloudformation").create_stack(StackName="duetime-prod", TemplateBody=template)


@pytest.mark.usefixtures("table")
def test_uninstall_lists_retained_resources_and_deletes_nothing_without_yes() -> None:
    """The command prints the settings with which a new stack uses the existing table."""
    _stack("RetainExceptOnCreate")
    client = boto3.client("dynamodb")
    arn = client.describe_table(TableName="tasks")["Table"]["TableArn"]
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": EPOCH_TAG, "Value": "2"}])
    result = duetime("uninstall", "duetime-prod")
    assert result.exit_code == 0, result.output
    assert "duetime-prod: 1 resources are deleted, 1 stay" in result.output
    assert "stays: AWS::DynamoDB::Table tasks" in result.output
    assert 'table="tasks",' in result.output
    assert "epoch=2," in result.output
    assert "Nothing was deleted" in result.output
    assert boto3.client("cloudformation").describe_stacks(StackName="duetime-prod")["Stacks"]


@pytest.mark.usefixtures("table")
def test_uninstall_deletes_the_stack_with_yes() -> None:
    """The command lists the data that will be lost before it deletes the stack."""
    _stack("Delete")
    result = duetime("uninstall", "duetime-prod", "--yes")
    assert result.exit_code == 0, result.output
    assert "deleted: 1 AWS::DynamoDB::Table, with all that it contains" in result.output
    assert "duetime-prod is deleted." in result.output
    refused = duetime("uninstall", "absent")
    assert (refused.exit_code, "the stack absent cannot be read" in refused.output) == (1, True)
