"""Stores payloads and results outside the record, in a separate item or, if they are too large for an item, in S3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.attribute_values import deflated, inflated
from duetime.domain.errors import ContentExpired
from duetime.domain.limits import INLINE_CONTENT_BYTES
from duetime.domain.operating_parameters import UPLOAD_LIFE
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.times import SECOND
from duetime_common.payload_codecs import BINARY, CONTENT_TYPE, Binary, json_of_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Expiry

_DATA = "b"
_LINE = "line#"
MISSING = "NoSuchKey"
"""S3's code for a missing key, which callers receive if they may list the bucket. All functions that read or tag
objects may list the bucket. Other callers receive `AccessDenied` (Source: S3 API Reference, GetObject). For duetime,
`AccessDenied` therefore means a wrong policy, not lost content.
"""


class SplitContentStore:
    """The `duetime.ports.tasks.ContentStore` that uses the tasks table and a bucket."""

    def __init__(self, dynamodb: DynamoDBClient, table: str, s3: S3Client, bucket: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._s3 = s3
        self._bucket = bucket

    def keep(
        self,
        task_id: TaskId,
        name: str,
        data: bytes,
        expiry: Expiry | None = None,
        inline: int = INLINE_CONTENT_BYTES,
    ) -> Content:
        """Store bytes outside the record if their compressed size requires this; otherwise, only return them."""
        compressed = deflated(data)
        place = ContentPlace.for_size(min(len(data), len(compressed)), inline)
        if place is ContentPlace.RECORD:
            return Content(place, name, data)
        with translated():
            if place is ContentPlace.ITEM:
                self._put_if_absent(_key_of(task_id, name) | {_DATA: {"B": compressed}} | _ttl(expiry))
            else:
                key, tagging = object_of(task_id, name), {} if expiry is None else {"Tagging": tag_of(expiry)}
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=compressed, **tagging)  # type: ignore[arg-type]  # one of its arguments
        return Content(place, name)

    def _put_if_absent(self, item: Item) -> None:
        """Write an item unless it exists. An existing item has the same bytes, but its expiry may be different."""
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """Read the bytes of content, regardless of where the content is stored.

        Raises:
            ContentExpired: the bytes have expired.
        """
        if content.data is not None:
            return content.data
        if content.place is ContentPlace.OBJECT:
            data = self._fetch_object(task_id, content.name)
            if content.uploaded is None:
                return inflated(data)
            return json.dumps(
                json_of_bytes(Binary(data, content.uploaded.content_type)), separators=(",", ":")
            ).encode()
        key = _key_of(task_id, content.name)
        with translated():
            answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        if "Item" not in answer:
            raise ContentExpired(task_id, content.name)
        return attribute_values.unpacked(answer["Item"][_DATA])

    def fetch_or_link(self, task_id: TaskId, content: Content) -> bytes:
        """Like `fetch`, but if the payload was uploaded, return a temporary URL from which it can be read.

        Raises:
            ContentExpired: the bytes have expired.
        """
        uploaded = content.uploaded
        if uploaded is None:
            return self.fetch(task_id, content)
        url = self._s3.generate_presigned_url(
            ClientMethod="get_object",
            Params={
                "Bucket": self._bucket,
                "Key": object_of(task_id, content.name),
                "ResponseContentType": uploaded.content_type,
                # Browsers must not render payloads that clients have uploaded.
                "ResponseContentDisposition": "attachment",
            },
            ExpiresIn=UPLOAD_LIFE // SECOND,
        )
        link = {"url": url, "size": uploaded.size, CONTENT_TYPE: uploaded.content_type}
        return json.dumps({BINARY: link}, separators=(",", ":")).encode()

    def _fetch_object(self, task_id: TaskId, name: str) -> bytes:
        with translated():
            try:
                answer = self._s3.get_object(Bucket=self._bucket, Key=object_of(task_id, name))
                return answer["Body"].read()
            except ClientError as error:
                if error.response["Error"]["Code"] == MISSING:
                    raise ContentExpired(task_id, name) from error
                raise

    def expire(self, task_id: TaskId, content: Content, expiry: Expiry) -> bool:
        """Set the expiry of content outside the record, and return whether the content exists."""
        with translated():
            if content.place is ContentPlace.ITEM:
                return self._expire_item(_key_of(task_id, content.name), expiry)
            if content.place is ContentPlace.OBJECT:
                return self._expire_object(task_id, content.name, expiry)
        return True

    def _expire_item(self, key: StoredItem, expiry: Expiry) -> bool:
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=key,
                ConditionExpression="attribute_exists(#p)",
                UpdateExpression="SET #ttl = :ttl",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#ttl": schema.TTL},
                ExpressionAttributeValues={":ttl": attribute_values.expiry(expiry.at)},
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False  # the item is already removed, and must not be created again with only a TTL
        return True

    def _expire_object(self, task_id: TaskId, name: str, expiry: Expiry) -> bool:
        """Copy an object onto itself with the tag, because a lifecycle rule counts from an object's last write.

        If only the tag were set, the payload of a task that was accepted long ago would be removed on the day on which
        the task ends.
        """
        key = object_of(task_id, name)
        try:
            self._s3.copy_object(
                Bucket=self._bucket,
                Key=key,
                CopySource={"Bucket": self._bucket, "Key": key},
                MetadataDirective="REPLACE",
                TaggingDirective="REPLACE",
                Tagging=tag_of(expiry),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == MISSING:
                return False
            raise
        return True

    def retain(self, task_id: TaskId, content: Content, expiry: Expiry | None = None) -> None:
        """Remove the expiry of content outside the record.

        If `expiry` is given, an item's expiry is removed only if it equals `expiry`.
        """
        with translated():
            if content.place is ContentPlace.ITEM:
                self._retain_item(_key_of(task_id, content.name), expiry)
            elif content.place is ContentPlace.OBJECT:
                self._retain_object(task_id, content.name)

    def _retain_item(self, key: StoredItem, expiry: Expiry | None) -> None:
        condition, named = "attribute_exists(#ttl)", {}
        if expiry is not None:
            condition, named = (
                "#ttl = :ttl",
                {"ExpressionAttributeValues": {":ttl": attribute_values.expiry(expiry.at)}},
            )
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=key,
                ConditionExpression=condition,
                UpdateExpression="REMOVE #ttl",
                ExpressionAttributeNames={"#ttl": schema.TTL},
                **named,  # type: ignore[arg-type]  # one of its arguments
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return  # the item has no expiry, or a concurrent write has set another expiry

    def _retain_object(self, task_id: TaskId, name: str) -> None:
        try:
            key, value = schema.KEPT_TAG
            tags = {"TagSet": [{"Key": key, "Value": value}]}
            self._s3.put_object_tagging(Bucket=self._bucket, Key=object_of(task_id, name), Tagging=tags)  # type: ignore[arg-type]  # a TaggingTypeDef
        except ClientError as error:
            if error.response["Error"]["Code"] != MISSING:
                raise

    def expire_items(self, task_id: TaskId, expiry: Expiry) -> None:
        """Set the expiry of all items outside a record, unless they already have a later expiry."""
        wanted = attribute_values.expiry(expiry.at)
        with translated():
            for item in self._items(task_id, "", "#p, #s, #ttl"):
                if schema.TTL not in item or int(item[schema.TTL]["N"]) < int(wanted["N"]):
                    self._expire_item({key: item[key] for key in (schema.PARTITION_KEY, schema.SORT_KEY)}, expiry)

    def erase(self, task_id: TaskId, contents: Sequence[Content]) -> None:
        """Remove these contents and all other items outside a record; some of them may already be removed."""
        with translated():
            for content in contents:
                if content.place is ContentPlace.OBJECT:
                    self._s3.delete_object(Bucket=self._bucket, Key=object_of(task_id, content.name))
            for item in self._items(task_id, "", "#p, #s, #ttl"):
                key = {name: item[name] for name in (schema.PARTITION_KEY, schema.SORT_KEY)}
                self._dynamodb.delete_item(TableName=self._table, Key=key)

    def store_attempt(self, task_id: TaskId, line: AttemptRecord) -> None:
        """Store an attempt record that no longer fits into the task's record; repeating the call changes nothing."""
        with translated():
            self._put_if_absent(_key_of(task_id, f"{_LINE}{line.fence:06}") | {_DATA: field_codecs.line(line)})

    def attempts_outside(self, task_id: TaskId) -> list[Content]:
        """The stored attempt records of a task, as contents."""
        with translated():
            items = self._items(task_id, _LINE, "#s, #ttl")
            return [Content(ContentPlace.ITEM, str(item[schema.SORT_KEY]["S"])) for item in items]

    def attempts_of(self, task_id: TaskId) -> list[AttemptRecord]:
        """The stored attempt records of a task, in any order, including records that were just stored."""
        with translated():
            return [field_codecs.read_attempt(item[_DATA]) for item in self._items(task_id, _LINE)]

    def _items(self, task_id: TaskId, prefix: str, attributes: str = "") -> Iterator[StoredItem]:
        """Yield the items outside a record whose names begin with `prefix`, with all or only the given attributes."""
        key = _key_of(task_id, prefix)
        names = {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY}
        projected = {}
        if attributes:
            names["#ttl"] = schema.TTL
            projected = {"ProjectionExpression": attributes}
        condition, wanted = "#p = :p", {":p": key[schema.PARTITION_KEY]}
        if prefix:
            condition, wanted = f"{condition} AND begins_with(#s, :s)", wanted | {":s": key[schema.SORT_KEY]}
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=wanted,
            ConsistentRead=True,
            **projected,  # type: ignore[arg-type]  # one of its arguments
        )
        return (item for page in pages for item in page["Items"])


def _ttl(expiry: Expiry | None) -> Item:
    return {} if expiry is None else {schema.TTL: attribute_values.expiry(expiry.at)}


def tag_of(expiry: Expiry) -> str:
    """The tag with which a lifecycle rule removes an object later."""
    return "=".join(schema.UNREFERENCED_TAG if expiry.provisional else schema.EXPIRING_TAG)


def _key_of(task_id: TaskId, name: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(name),
    }


def object_of(task_id: TaskId, name: str) -> str:
    """The S3 key of content."""
    return f"{task_id}/{name}"
