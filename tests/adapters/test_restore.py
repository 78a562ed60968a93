"""Tests how a table is restored from its continuous backup, and how its records are rewritten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.restore import DynamoRecords, DynamoTableRestore
from duetime.adapters.dynamodb.task_items import item_of, key_of
from duetime.domain.tasks.states import State
from duetime.ports.restore import TableFailed, TableStatus
from tests.domain.factories import NOW, task

if TYPE_CHECKING:
    from tests.adapters.clouds import Cloud

OPEN = task(version=3, waiting_for="a lock", tags={"team": "a"})


@pytest.fixture
def table(moto_cloud: Cloud) -> str:
    """Create a table with a continuous backup and a tag."""
    name = moto_cloud.table()
    moto_cloud.dynamodb.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    arn = moto_cloud.dynamodb.describe_table(TableName=name)["Table"]["TableArn"]
    moto_cloud.dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "project", "Value": "duetime"}])
    return name


def test_settings_missing_from_a_restored_table_are_set(moto_cloud: Cloud, table: str) -> None:
    """Stream, TTL, continuous backup, tags and the epoch tag are set, and repeating this changes nothing."""
    client, restore = moto_cloud.dynamodb, DynamoTableRestore(moto_cloud.dynamodb)
    target = f"{table}-restored"
    assert restore.status(target) is TableStatus.MISSING
    restore.begin(table, target, NOW)
    restore.begin(table, target, NOW)
    assert restore.status(target) is TableStatus.READY
    stream = restore.complete(table, target, 3)
    assert restore.complete(table, target, 3) == stream
    found = client.describe_table(TableName=target)["Table"]
    assert found["LatestStreamArn"] == stream
    assert found["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    ttl = client.describe_time_to_live(TableName=target)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", schema.TTL)
    backup = client.describe_continuous_backups(TableName=target)["ContinuousBackupsDescription"]
    assert backup["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    tags = client.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"]
    assert {"Key": "project", "Value": "duetime"} in tags
    assert (restore.epoch_of(table), restore.epoch_of(target)) == (0, 3)


def test_the_error_for_a_restore_rejected_by_aws_has_the_reason(moto_cloud: Cloud) -> None:
    """If AWS rejects a restore, the error names the table and the reason."""
    with pytest.raises(TableFailed, match="absent was not restored"):
        DynamoTableRestore(moto_cloud.dynamodb).begin("absent", "restored-from-nothing", NOW)


def test_only_open_records_are_found(moto_cloud: Cloud) -> None:
    """Records without `finished_at` are found page by page, and an unreadable record is named."""
    name, client = moto_cloud.table(), moto_cloud.dynamodb
    records = DynamoRecords(client, name)
    assert records.insert(OPEN)
    assert not records.insert(replace(OPEN, version=9))
    ended = replace(OPEN, id=type(OPEN.id).of(NOW, 1, 7), state=State.SUCCEEDED, finished_at=NOW, created_at=NOW + 5)
    records.insert(ended)
    broken = {**item_of(replace(OPEN, id=type(OPEN.id).of(NOW, 1, 9))), schema.STATE: {"S": "no state"}}
    client.put_item(TableName=name, Item=broken)
    page = records.open_page(0, 1, "")
    assert (list(page.tasks), page.cursor) == ([OPEN], "")
    assert list(page.unreadable) == [broken[schema.SORT_KEY]["S"]]
    assert [each.id for each in records.page_since(0, 1, "", NOW).tasks] == [ended.id]
    assert records.read_many([OPEN.id, ended.id]) == {OPEN.id: OPEN, ended.id: ended}


def test_a_rewrite_keeps_unknown_attributes_and_requires_the_version(moto_cloud: Cloud) -> None:
    """A rewrite keeps attributes of newer code, and does not change a record that was written in the meantime."""
    name, client = moto_cloud.table(), moto_cloud.dynamodb
    client.put_item(TableName=name, Item={**item_of(OPEN), "new": {"S": "newer"}})
    records, after = DynamoRecords(client, name), replace(OPEN, version=4, fence=7, waiting_for=None, tags={})
    assert records.rewrite(OPEN, after)
    item = client.get_item(TableName=name, Key=key_of(OPEN.id))["Item"]
    assert item == {**item_of(after), "new": {"S": "newer"}}
    assert not records.rewrite(OPEN, replace(after, fence=8))


def test_contents_outside_the_record_are_copied_once(moto_cloud: Cloud) -> None:
    """Copying contents from the source table does not change contents that the restored table already has."""
    source, target, client = moto_cloud.table(), moto_cloud.table(), moto_cloud.dynamodb
    key = {schema.PARTITION_KEY: {"S": f"{schema.CONTENT_PREFIX}{OPEN.id}"}}
    for name, data in (("payload", b"old"), ("result.1", b"new")):
        client.put_item(TableName=source, Item={**key, schema.SORT_KEY: {"S": name}, "b": {"B": data}})
    client.put_item(TableName=target, Item={**key, schema.SORT_KEY: {"S": "payload"}, "b": {"B": b"kept"}})
    DynamoRecords(client, target).copy_contents(OPEN.id, DynamoRecords(client, source))
    found = {item[schema.SORT_KEY]["S"]: item["b"]["B"] for item in client.scan(TableName=target)["Items"]}
    assert found == {"payload": b"kept", "result.1": b"new"}
