"""Payloads and results outside the record: in an item beside it, or in S3 when they are too large for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws import translated
from duetime.adapters.compression import deflated, inflated
from duetime.adapters.dynamodb import forms, schema, values
from duetime.domain.task import Content, ContentPlace

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

    from duetime.adapters.dynamodb.values import Item
    from duetime.domain.ids import TaskId
    from duetime.domain.task import LedgerLine
    from duetime.domain.times import Millis

_DATA = "b"
_LINE = "line#"
_MISSING = frozenset({"NoSuchKey", "AccessDenied"})
"""S3 says `AccessDenied` of a missing key to whoever may not list the bucket (Source: S3 API Reference, GetObject)."""


class ContentLost(LookupError):
    """What a record says lies outside it is not there."""

    def __init__(self, task_id: TaskId, name: str) -> None:
        super().__init__(f"the {name} of task {task_id} is not where its record says")


class SplitContentStore:
    """`duetime.ports.stores.ContentStore` over the tasks table and a bucket."""

    def __init__(self, dynamodb: DynamoDBClient, table: str, s3: S3Client, bucket: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._s3 = s3
        self._bucket = bucket

    def keep(self, task_id: TaskId, name: str, data: bytes) -> Content:
        """Keep bytes where their compressed size says; what belongs in the record is only handed back."""
        compressed = deflated(data)
        place = ContentPlace.for_size(min(len(data), len(compressed)))
        if place is ContentPlace.RECORD:
            return Content(place, name, data)
        with translated():
            if place is ContentPlace.ITEM:
                item = _key_of(task_id, name) | {_DATA: {"B": compressed}}
                self._dynamodb.put_item(TableName=self._table, Item=item)
            else:
                self._s3.put_object(Bucket=self._bucket, Key=_object_of(task_id, name), Body=compressed)
        return Content(place, name)

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of a content, wherever they lie.

        Raises:
            ContentLost: they are not there.
        """
        if content.data is not None:
            return content.data
        if content.place is ContentPlace.OBJECT:
            return self._fetch_object(task_id, content.name)
        key = _key_of(task_id, content.name)
        with translated():
            answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        if "Item" not in answer:
            raise ContentLost(task_id, content.name)
        return values.unpacked(answer["Item"][_DATA])

    def _fetch_object(self, task_id: TaskId, name: str) -> bytes:
        with translated():
            try:
                answer = self._s3.get_object(Bucket=self._bucket, Key=_object_of(task_id, name))
                return inflated(answer["Body"].read())
            except ClientError as error:
                if error.response["Error"]["Code"] in _MISSING:
                    raise ContentLost(task_id, name) from error
                raise

    def expire(self, task_id: TaskId, content: Content, at: Millis) -> None:
        """Let what lies outside the record be removed after `at`, together with the record."""
        with translated():
            if content.place is ContentPlace.ITEM:
                self._expire_item(task_id, content.name, at)
            elif content.place is ContentPlace.OBJECT:
                self._expire_object(task_id, content.name)

    def _expire_item(self, task_id: TaskId, name: str, at: Millis) -> None:
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=_key_of(task_id, name),
                ConditionExpression="attribute_exists(#p)",
                UpdateExpression="SET #ttl = :ttl",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#ttl": schema.TTL},
                ExpressionAttributeValues={":ttl": values.expiry(at)},
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return  # gone already, and must not come back as an item of nothing but a TTL

    def _expire_object(self, task_id: TaskId, name: str) -> None:
        """Copy an object onto itself with the tag: a lifecycle rule counts from an object's last writing.

        A tag alone would let the payload of a task that was accepted long ago go on the day it ends.
        """
        key = _object_of(task_id, name)
        try:
            self._s3.copy_object(
                Bucket=self._bucket,
                Key=key,
                CopySource={"Bucket": self._bucket, "Key": key},
                MetadataDirective="REPLACE",
                TaggingDirective="REPLACE",
                Tagging="=".join(schema.EXPIRING_TAG),
            )
        except self._s3.exceptions.NoSuchKey:
            return

    def keep_line(self, task_id: TaskId, line: LedgerLine, expires_at: Millis) -> None:
        """Keep a ledger line that the record has no more room for; keeping it twice is keeping it once."""
        item = _key_of(task_id, f"{_LINE}{line.fence:06}") | {
            _DATA: forms.line(line),
            schema.TTL: values.expiry(expires_at),
        }
        with translated():
            self._dynamodb.put_item(TableName=self._table, Item=item)

    def lines_of(self, task_id: TaskId) -> list[LedgerLine]:
        """The ledger lines of a task that were kept, in no order; what has just been kept is among them."""
        key = _key_of(task_id, _LINE)
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#p = :p AND begins_with(#s, :line)",
            ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
            ExpressionAttributeValues={":p": key[schema.PARTITION_KEY], ":line": key[schema.SORT_KEY]},
            ConsistentRead=True,
        )
        with translated():
            return [forms.read_line(item[_DATA]) for page in pages for item in page["Items"]]


def _key_of(task_id: TaskId, name: str) -> Item:
    return {
        schema.PARTITION_KEY: values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: values.text(name),
    }


def _object_of(task_id: TaskId, name: str) -> str:
    return f"{task_id}/{name}"
