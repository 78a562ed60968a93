from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.attribute_values import inflated
from duetime.domain.errors import ContentExpired
from duetime.domain.limits import INLINE_CONTENT_BYTES, ITEM_CONTENT_BYTES, MAX_PAYLOAD_BYTES
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.task import Content, ContentPlace, Expiry
from tests.adapters.examples import HOME, numbered

if TYPE_CHECKING:
    from duetime.ports.tasks import ContentStore
    from tests.adapters.clouds import Cloud

TASK = numbered(1)


def noise(size: int) -> bytes:
    """Return bytes that do not compress."""
    return Random(size).randbytes(size)  # noqa: S311 - an example, not a secret


CONTENTS = [
    (b"", ContentPlace.RECORD),
    (b'{"any":"json"}', ContentPlace.RECORD),
    (noise(INLINE_CONTENT_BYTES), ContentPlace.RECORD),
    (b"a" * 100_000, ContentPlace.RECORD),
    (noise(INLINE_CONTENT_BYTES + 1), ContentPlace.ITEM),
    (noise(ITEM_CONTENT_BYTES), ContentPlace.ITEM),
    (noise(ITEM_CONTENT_BYTES + 1), ContentPlace.OBJECT),
    (noise(MAX_PAYLOAD_BYTES), ContentPlace.OBJECT),
]
OUTSIDE = [content for content in CONTENTS if content[1] is not ContentPlace.RECORD]


def sizes(contents: list[tuple[bytes, ContentPlace]]) -> list[str]:
    """Return names for the given contents."""
    return [f"{place.value}-{len(data)}" for data, place in contents]


@pytest.mark.parametrize(("data", "place"), CONTENTS, ids=sizes(CONTENTS))
def test_content_is_stored_by_size_and_read_back_unchanged(
    content_store: ContentStore, data: bytes, place: ContentPlace
) -> None:
    """Content is read back unchanged from the record, an item or an S3 object, depending on its compressed size."""
    content = content_store.keep(TASK, "payload", data)
    assert content == Content(place, "payload", data if place is ContentPlace.RECORD else None)
    assert content_store.fetch(TASK, content) == data


@pytest.mark.parametrize(("data", "place"), OUTSIDE, ids=sizes(OUTSIDE))
def test_contents_of_different_names_are_independent(
    content_store: ContentStore, data: bytes, place: ContentPlace
) -> None:
    """Content stored under one name for a task does not affect content under other names or for other tasks."""
    first = content_store.keep(TASK, "result.1", data)
    content_store.keep(TASK, "result.2", data[::-1])
    content_store.keep(numbered(2), "result.1", data[::-1])
    assert first.place is place
    assert content_store.fetch(TASK, first) == data


@pytest.mark.parametrize("place", [ContentPlace.ITEM, ContentPlace.OBJECT])
def test_reading_missing_content_raises_an_error(content_store: ContentStore, place: ContentPlace) -> None:
    """Reading content outside the record raises `ContentExpired` if the content is missing."""
    with pytest.raises(ContentExpired):
        content_store.fetch(TASK, Content(place, "payload"))


@pytest.mark.parametrize("place", ContentPlace)
def test_an_expiry_of_missing_or_inline_content_has_no_effect(content_store: ContentStore, place: ContentPlace) -> None:
    """Setting an expiry has no effect on content in the record or on missing content."""
    data = b"1" if place is ContentPlace.RECORD else None
    content_store.expire(TASK, Content(place, "payload", data), Expiry(HOME))
    if data is None:
        with pytest.raises(ContentExpired):
            content_store.fetch(TASK, Content(place, "payload"))


@pytest.mark.parametrize(("data", "place"), OUTSIDE, ids=sizes(OUTSIDE))
def test_content_can_be_read_until_its_expiry(content_store: ContentStore, data: bytes, place: ContentPlace) -> None:
    """Content can be read until its expiry; setting the same expiry twice has the same effect as setting it once."""
    content = content_store.keep(TASK, "result", data)
    assert content.place is place
    content_store.expire(TASK, content, Expiry(HOME))
    content_store.expire(TASK, content, Expiry(HOME))
    assert content_store.fetch(TASK, content) == data


def test_the_attempt_records_of_a_task_are_found(content_store: ContentStore) -> None:
    """Every stored attempt record is read once and unchanged, without contents or attempt records of other tasks."""
    lines = [AttemptRecord(fence, fence, "worker", HOME, 1, 2, AttemptOutcome.RETRIED) for fence in range(1, 121)]
    for line in [*lines, lines[0]]:
        content_store.store_attempt(TASK, line)
    content_store.store_attempt(numbered(2), lines[0])
    content_store.keep(TASK, "payload", noise(1_000))
    assert sorted(content_store.attempts_of(TASK), key=lambda line: line.fence) == lines
    assert content_store.attempts_of(numbered(3)) == []


def test_an_expiring_item_has_a_ttl_in_seconds_rounded_up(moto_cloud: Cloud) -> None:
    """Content in an item has no TTL until its expiry is set, and then has the same TTL as its record."""
    table = moto_cloud.table()
    store = SplitContentStore(moto_cloud.dynamodb, table, moto_cloud.s3, moto_cloud.bucket())
    content = store.keep(TASK, "payload", noise(1_000))
    key = {schema.PARTITION_KEY: attribute_values.text(f"x#{TASK}"), schema.SORT_KEY: attribute_values.text("payload")}
    assert schema.TTL not in moto_cloud.dynamodb.get_item(TableName=table, Key=key)["Item"]
    store.expire(TASK, content, Expiry(1_795_228_380_250))
    assert moto_cloud.dynamodb.get_item(TableName=table, Key=key)["Item"][schema.TTL] == {"N": "1795228381"}


def test_an_expiring_object_is_rewritten_with_a_tag(moto_cloud: Cloud) -> None:
    """Content in S3 is rewritten with a tag for the lifecycle rule, which counts from that write."""
    bucket = moto_cloud.bucket()
    store = SplitContentStore(moto_cloud.dynamodb, moto_cloud.table(), moto_cloud.s3, bucket)
    content = store.keep(TASK, "payload", noise(300_000))
    key = f"{TASK}/payload"
    assert moto_cloud.s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"] == []
    store.expire(TASK, content, Expiry(HOME))
    tags = moto_cloud.s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    assert [(tag["Key"], tag["Value"]) for tag in tags] == [schema.EXPIRING_TAG]
    stored = moto_cloud.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    assert inflated(stored) == noise(300_000)


def test_an_attempt_record_is_stored_as_one_separate_item(moto_cloud: Cloud) -> None:
    """An attempt record that is stored twice is one item outside the trigger's partitions, without a TTL at first."""
    table = moto_cloud.table()
    store = SplitContentStore(moto_cloud.dynamodb, table, moto_cloud.s3, moto_cloud.bucket())
    line = AttemptRecord(7, 9, "worker 1", HOME, 12, 480, AttemptOutcome.RETRIED)
    store.store_attempt(TASK, line)
    store.store_attempt(TASK, line)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item[schema.PARTITION_KEY] == {"S": f"x#{TASK}"}
    assert schema.TTL not in item
    assert field_codecs.read_attempt(item["b"]) == line


@pytest.mark.parametrize(("data", "place"), OUTSIDE, ids=sizes(OUTSIDE))
def test_content_with_an_expiry_can_be_retained(content_store: ContentStore, data: bytes, place: ContentPlace) -> None:
    """Content that was stored with an expiry can be read before and after the expiry is removed, even twice."""
    content = content_store.keep(TASK, "payload", data, Expiry(HOME, provisional=True))
    assert content.place is place
    for _ in range(2):
        content_store.retain(TASK, content, Expiry(HOME, provisional=True))
        assert content_store.fetch(TASK, content) == data
    assert content_store.expire(TASK, content, Expiry(HOME))
    content_store.retain(TASK, Content(place, "nothing"))
    assert not content_store.expire(TASK, Content(place, "nothing"), Expiry(HOME))


def test_only_the_given_expiry_is_removed(moto_cloud: Cloud) -> None:
    """An expiry that was set later is kept, and storing the same content again does not change the expiry."""
    table = moto_cloud.table()
    store = SplitContentStore(moto_cloud.dynamodb, table, moto_cloud.s3, moto_cloud.bucket())
    given, ended = Expiry(HOME, provisional=True), Expiry(HOME + 1_000)
    content = store.keep(TASK, "payload", noise(1_000), given)
    store.expire(TASK, content, ended)
    store.retain(TASK, content, given)
    store.keep(TASK, "payload", noise(1_000), given)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item[schema.TTL] == attribute_values.expiry(ended.at)
    store.retain(TASK, content, ended)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert schema.TTL not in item


def test_all_items_of_a_task_expire_together(moto_cloud: Cloud) -> None:
    """Each item beside a record gets the expiry unless the item's expiry is later; other tasks' items do not change."""
    table = moto_cloud.table()
    store = SplitContentStore(moto_cloud.dynamodb, table, moto_cloud.s3, moto_cloud.bucket())
    store.keep(TASK, "payload", noise(1_000))
    store.keep(TASK, "later", noise(1_000), Expiry(HOME + 9_000))
    store.keep(TASK, "earlier", noise(1_000), Expiry(HOME - 9_000))
    store.store_attempt(TASK, AttemptRecord(7, 9, "worker 1", HOME, 12, 480, AttemptOutcome.RETRIED))
    store.keep(numbered(2), "payload", noise(1_000))
    store.expire_items(TASK, Expiry(HOME))
    found = {
        (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]): item.get(schema.TTL)
        for item in moto_cloud.dynamodb.scan(TableName=table)["Items"]
    }
    at, mine = attribute_values.expiry(HOME), f"x#{TASK}"
    assert found == {
        (mine, "payload"): at,
        (mine, "later"): attribute_values.expiry(HOME + 9_000),
        (mine, "earlier"): at,
        (mine, "line#000009"): at,
        (f"x#{numbered(2)}", "payload"): None,
    }
