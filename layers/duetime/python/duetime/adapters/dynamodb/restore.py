"""Restores the tasks table from its continuous backup, and reads and rewrites the records of the restored table."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.regions import DynamoRegionStore
from duetime.adapters.dynamodb.schedule_items import schedule_of
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, item_of, key_of, sort_key_of, task_of
from duetime.adapters.dynamodb.task_store import schedule_timer_item_of, timer_item_of
from duetime.domain.errors import RecordUnreadable
from duetime.domain.regions import has_attempt
from duetime.domain.tasks.states import State
from duetime.domain.times import to_datetime
from duetime.ports.restore import RecordPage, TableFailed, TableStatus, TakeoverPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.dispatch.enqueue_plan import ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

EPOCH_TAG = "duetime-epoch"
"""Tag of a restored table that contains the epoch of the table's fences."""
_VERSION, _FINISHED, _CREATED, _REOPENED = (
    ATTRIBUTES[name].name for name in ("version", "finished_at", "created_at", "reopened_at")
)


_NEVER: Millis = 1 << 60
"""A time that is later than the end of every task."""


class DynamoTableRestore:
    """The `duetime.ports.restore.TableRestore` that uses DynamoDB's control plane."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client

    def begin(self, source: str, target: str, at: Millis) -> None:
        """Start restoring a table to its state at a given time, unless the restore is running or has finished."""
        if self.status(target) is not TableStatus.MISSING:
            return
        try:
            self._client.restore_table_to_point_in_time(
                SourceTableName=source, TargetTableName=target, RestoreDateTime=to_datetime(at)
            )
        except ClientError as error:
            raise TableFailed(f"{source} was not restored: {error.response['Error']['Message']}") from error

    def status(self, table: str) -> TableStatus:
        """Whether a table is missing, being created, or ready."""
        try:
            found = self._client.describe_table(TableName=table)["Table"]
        except self._client.exceptions.ResourceNotFoundException:
            return TableStatus.MISSING
        return TableStatus.READY if found["TableStatus"] == "ACTIVE" else TableStatus.CREATING

    def epoch_of(self, table: str) -> int:
        """The epoch in which a table was restored; 0 if it was never restored."""
        arn = self._client.describe_table(TableName=table)["Table"]["TableArn"]
        tags = {tag["Key"]: tag["Value"] for tag in self._client.list_tags_of_resource(ResourceArn=arn).get("Tags", [])}
        return int(tags.get(EPOCH_TAG, "0"))

    def takeovers_of(self, table: str) -> int:
        """The epoch of the last takeover by another Region; 0 before the first takeover."""
        found = DynamoRegionStore(self._client, table).read()
        return 0 if found is None else found.epoch

    def complete(self, source: str, target: str, epoch: int) -> str:
        """Apply the settings that a restore omits: stream, TTL, backup, tags, and deletion protection.

        The call may be repeated.

        Returns:
            The ARN of the restored table's stream.
        """
        table = self._client.describe_table(TableName=target)["Table"]
        if not table.get("StreamSpecification", {}).get("StreamEnabled"):
            self._client.update_table(
                TableName=target,
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            )
            # DynamoDB allows only one change to a table at a time.
            self._client.get_waiter("table_exists").wait(TableName=target)
        ttl = self._client.describe_time_to_live(TableName=target)["TimeToLiveDescription"]
        if ttl.get("TimeToLiveStatus") not in {"ENABLED", "ENABLING"}:
            self._client.update_time_to_live(
                TableName=target, TimeToLiveSpecification={"AttributeName": schema.TTL, "Enabled": True}
            )
        self._client.update_continuous_backups(
            TableName=target, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        if source:
            self._copy_tags_and_protection(source, target, table["TableArn"])
        self._client.tag_resource(ResourceArn=table["TableArn"], Tags=[{"Key": EPOCH_TAG, "Value": str(epoch)}])
        return str(self._client.describe_table(TableName=target)["Table"]["LatestStreamArn"])

    def _copy_tags_and_protection(self, source: str, target: str, arn: str) -> None:
        with suppress(self._client.exceptions.ResourceNotFoundException):
            replaced = self._client.describe_table(TableName=source)["Table"]
            tags = self._client.list_tags_of_resource(ResourceArn=replaced["TableArn"]).get("Tags", [])
            # CloudFormation's own tags cannot be set.
            if own := [tag for tag in tags if not tag["Key"].startswith("aws:")]:
                self._client.tag_resource(ResourceArn=arn, Tags=own)
            if replaced.get("DeletionProtectionEnabled"):
                self._client.update_table(TableName=target, DeletionProtectionEnabled=True)


class DynamoRecords:
    """The `duetime.ports.restore.Records` and `duetime.ports.restore.RegionRecords` of one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def open_page(self, segment: int, segments: int, cursor: str) -> TakeoverPage:
        """Read the next schedules and records with unfinished work in a segment, with strong consistency."""
        return self.takeover_page(segment, segments, cursor, _NEVER)

    def takeover_page(self, segment: int, segments: int, cursor: str, ended_since: Millis) -> TakeoverPage:
        """Read the next schedules, open tasks, and tasks that ended since the given time, with strong consistency."""
        page = self._scan(
            segment,
            segments,
            cursor,
            FilterExpression="(attribute_exists(#z) AND (attribute_not_exists(#f) OR #f >= :since))"
            " OR (begins_with(#p, :schedule) AND begins_with(#s, :head) AND attribute_not_exists(#d))",
            ExpressionAttributeNames={
                "#z": schema.STATE,
                "#f": _FINISHED,
                "#p": schema.PARTITION_KEY,
                "#s": schema.SORT_KEY,
                "#d": schema.DELETED,
            },
            ExpressionAttributeValues={
                ":since": attribute_values.number(ended_since),
                ":schedule": attribute_values.text(schema.SCHEDULE_PREFIX),
                ":head": attribute_values.text(schema.SCHEDULE_HEAD_MARK),
            },
        )
        tasks, unreadable = _tasks_in([item for item in page["Items"] if schema.STATE in item])
        schedules = []
        for item in page["Items"]:
            if schema.STATE not in item:
                try:
                    schedules.append(schedule_of(item))
                except RecordUnreadable:
                    unreadable.append(sort_key_of(item))
        return TakeoverPage(tasks, schedules, unreadable, _cursor_of(page), page.get("ScannedCount", 0))

    def running_tasks(self, now: Millis) -> int:
        """Count the tasks with a running attempt, except topologies. This method reads the entire table."""
        number, cursor, more = 0, "", True
        while more:
            page = self._scan(
                0,
                1,
                cursor,
                FilterExpression="#z IN (:preparing, :running, :rolling)",
                ExpressionAttributeNames={"#z": schema.STATE},
                ExpressionAttributeValues={
                    ":preparing": attribute_values.text(State.PREPARING.value),
                    ":running": attribute_values.text(State.RUNNING.value),
                    ":rolling": attribute_values.text(State.ROLLING_BACK.value),
                },
            )
            number += sum(has_attempt(task, now) for task in _tasks_in(page["Items"])[0])
            cursor = _cursor_of(page)
            more = bool(cursor)
        return number

    def page_since(self, segment: int, segments: int, cursor: str, since: Millis) -> RecordPage:
        """Read the next records that were created, or retried after their end, since a given time."""
        names = {"#z": schema.STATE, "#c": _CREATED, "#r": _REOPENED}
        return self._page(
            segment,
            segments,
            cursor,
            FilterExpression="attribute_exists(#z) AND (#c >= :since OR #r >= :since)",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":since": attribute_values.number(since)},
        )

    def _page(self, segment: int, segments: int, cursor: str, **asked: Any) -> RecordPage:  # noqa: ANN401 - parameters of `scan`
        page = self._scan(segment, segments, cursor, **asked)
        return RecordPage(*_tasks_in(page["Items"]), _cursor_of(page), page.get("ScannedCount", 0))

    def _scan(self, segment: int, segments: int, cursor: str, **asked: Any) -> Any:  # noqa: ANN401 - same
        start: dict[str, Any] = {"ExclusiveStartKey": json.loads(cursor)} if cursor else {}
        # A single segment is read with a plain scan.
        part: dict[str, Any] = {"Segment": segment, "TotalSegments": segments} if segments > 1 else {}
        with translated():
            return self._client.scan(TableName=self._table, ConsistentRead=True, **asked, **start, **part)

    def read_many(self, task_ids: Sequence[TaskId]) -> dict[TaskId, Task]:
        """Read records with strong consistency; missing and unreadable records are left out."""
        found = {}
        for item in read_items(self._client, self._table, [key_of(each) for each in task_ids], consistent=True):
            with suppress(RecordUnreadable):
                task = task_of(item)
                found[task.id] = task
        return found

    def rewrite(self, before: Task, after: Task) -> bool:
        """Replace a record, unless it has been written since it was read; unknown attributes are kept."""
        old, new = item_of(before), item_of(after)
        changed = {name: value for name, value in new.items() if old.get(name) != value}
        gone = sorted(old.keys() - new.keys())
        names = {f"#{name}": name for name in (*changed, *gone)} | {f"#{_VERSION}": _VERSION}
        sets = ", ".join(f"#{name} = :{name}" for name in changed)
        removes = f" REMOVE {', '.join(f'#{name}' for name in gone)}" if gone else ""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=key_of(before.id),
                    UpdateExpression=f"SET {sets}{removes}",
                    ConditionExpression=f"#{_VERSION} = :before",
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues={f":{name}": value for name, value in changed.items()}
                    | {":before": attribute_values.number(before.version)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def insert(self, task: Task) -> bool:
        """Write a record, unless its id already exists."""
        return self._put_new(item_of(task))

    def add_timer(self, timer: Timer) -> None:
        """Write a timer; writing it again changes nothing."""
        with translated():
            self._client.put_item(TableName=self._table, Item=timer_item_of(timer))

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer; writing it again changes nothing."""
        with translated():
            self._client.put_item(TableName=self._table, Item=schedule_timer_item_of(timer))

    def copy_contents(self, task_id: TaskId, source: DynamoRecords) -> None:
        """Copy a task's contents and old attempts that another table stores in separate items."""
        pages = self._client.get_paginator("query").paginate(
            TableName=source._table,
            KeyConditionExpression="#p = :p",
            ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
            ExpressionAttributeValues={":p": attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}")},
            ConsistentRead=True,
        )
        with translated():
            items = [cast("Item", item) for page in pages for item in page["Items"]]
        for item in items:
            self._put_new(item)

    def _put_new(self, item: Item) -> bool:
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#p)",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True


def _tasks_in(items: Sequence[Item]) -> tuple[list[Task], list[str]]:
    """The readable records among items, and the sort keys of the unreadable items."""
    tasks, unreadable = [], []
    for item in items:
        try:
            tasks.append(task_of(item))
        except RecordUnreadable:
            unreadable.append(sort_key_of(item))
    return tasks, unreadable


def _cursor_of(page: Any) -> str:  # noqa: ANN401 - a response of `scan`
    last = page.get("LastEvaluatedKey")
    return json.dumps(last) if last else ""
