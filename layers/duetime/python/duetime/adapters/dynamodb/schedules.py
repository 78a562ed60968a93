"""Schedules, in DynamoDB: a partition for each, what it is in one item, which occurrence goes on in another.

The two are apart because the trigger writes the one and workers write the other, and neither should reject the other.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.batch_get import read_items
from duetime.adapters.dynamodb.owner_index import listed, place_in_list
from duetime.adapters.dynamodb.schedule_codec import (
    expectation_form,
    packed,
    read_expectation,
    read_run,
    read_spec,
    run_form,
    spec_form,
    template_form,
    unpacked,
)
from duetime.adapters.dynamodb.versioned_items import (
    VERSION,
    Identity,
    delete_next,
    deletion_marker,
    is_deleted,
    save_next,
    version_of,
)
from duetime.domain.ids import TaskId
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.run_history import Activity, LastRun, Remark
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_record import StoredSchedule

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_ACTIVITY = "a"
UID = "u"
_GENERATION, _DONE, _SPEC, _TEMPLATE, _PAYLOAD, _COURSE, _LOG = "t", "d", "b", "T", "P", "c", "L"
_REVISION_ENDS = "R"
_EXPECTATION = "E"
ACTIVE = "a"
BUFFERED = "w"


class DynamoScheduleStore:
    """`duetime.ports.schedules.ScheduleStore` over the tasks table; it reads an owner's partitions at once."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule and its activity in one request, consistently."""
        with translated():
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                ExpressionAttributeValues={":p": attribute_values.text(partition_of(owner, name))},
                ConsistentRead=True,
            )
        stored, activity = None, Activity()
        for item in answer["Items"]:
            if item[schema.SORT_KEY]["S"] == _ACTIVITY:
                activity = activity_of(item)
            elif not is_deleted(item):
                stored = _stored(owner, item)
        return stored, activity

    def vacancy(self, owner: str, name: str) -> int | None:
        """The edition at which a schedule of this name is created; `None` if there is one."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key_of(owner, name), ConsistentRead=True)
        if "Item" not in answer:
            return 0
        return version_of(answer["Item"]) if is_deleted(answer["Item"]) else None

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule if it is still itself, at the edition that was read; a new one if its name is vacant."""
        item, identity = item_of(stored), Identity(UID, stored.uid.text)
        return save_next(self._client, self._table, item, stored.incarnation, nonce, identity)

    def remove(self, stored: StoredSchedule, nonce: str, expires_at: Millis) -> bool:
        """Replace a schedule and its activity by markers, if it is still at the edition that was read, or gone already.

        What is under its name by then may be another schedule, which this leaves alone.
        """
        marker = deletion_marker(item_of(stored.removed()), expires_at)
        identity = Identity(UID, stored.uid.text)
        if not delete_next(self._client, self._table, marker, stored.incarnation, nonce, identity):
            return False
        self._end_activity(stored, expires_at)
        return True

    def _end_activity(self, stored: StoredSchedule, expires_at: Millis) -> None:
        """Forget which occurrence goes on, at the next version, so that no late write of it can apply."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=activity_key(stored.owner, stored.name),
                ConditionExpression="attribute_not_exists(#u) OR (#u = :u AND attribute_not_exists(#x))",
                UpdateExpression="SET #u = :u, #x = :x, #v = :v ADD #e :one REMOVE #a, #b",
                ExpressionAttributeNames={
                    "#u": UID,
                    "#x": schema.TTL,
                    "#v": schema.VERSION_OF_SCHEMA,
                    "#e": VERSION,
                    "#a": ACTIVE,
                    "#b": BUFFERED,
                },
                ExpressionAttributeValues={
                    ":u": attribute_values.text(stored.uid.text),
                    ":x": attribute_values.expiry(expires_at),
                    ":v": attribute_values.number(schema.SCHEMA_VERSION),
                    ":one": attribute_values.number(1),
                },
            )

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store which occurrence goes on, if that is still at the version that was read."""
        item = {
            **activity_key(owner, name),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            **_texts({UID: activity.uid, ACTIVE: activity.active, BUFFERED: activity.buffered}),
        }
        return save_next(self._client, self._table, item, activity.version, nonce)

    def list_after(self, owner: str, after: str, limit: int) -> list[StoredSchedule]:
        """An owner's schedules in order of their names, eventually consistently."""
        place = (owner, schema.SCHEDULE_LIST_MARK, f"{schema.SCHEDULE_HEAD_MARK}{after}")
        names = [
            key.removeprefix(schema.SCHEDULE_HEAD_MARK)
            for key in listed(self._client, self._table, self._executor, place, limit)
        ]
        items = read_items(self._client, self._table, [key_of(owner, name) for name in names])
        # The index may still list one that was deleted just now.
        found = (_stored(owner, item) for item in items if not is_deleted(item))
        return sorted(found, key=lambda each: each.name)


def is_schedule(key: StoredItem) -> bool:
    """Whether a key is that of a schedule, or of the marker that a deleted one has left."""
    partition, sort = (str(key[name]["S"]) for name in (schema.PARTITION_KEY, schema.SORT_KEY))
    return partition.startswith(schema.SCHEDULE_PREFIX) and sort.startswith(schema.SCHEDULE_HEAD_MARK)


def schedule_of(item: StoredItem) -> StoredSchedule:
    """The schedule that an item holds."""
    # An owner may hold the separator itself: only the last one is ours.
    owner = str(item[schema.PARTITION_KEY]["S"]).removeprefix(schema.SCHEDULE_PREFIX).rpartition("#")[0]
    return _stored(owner, item)


def partition_of(owner: str, name: str) -> str:
    # A name has no `#`, so the last one is between the two.
    return f"{schema.SCHEDULE_PREFIX}{owner}#{name}"


def key_of(owner: str, name: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(owner, name)),
        schema.SORT_KEY: attribute_values.text(f"{schema.SCHEDULE_HEAD_MARK}{name}"),
    }


def activity_key(owner: str, name: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(owner, name)),
        schema.SORT_KEY: attribute_values.text(_ACTIVITY),
    }


def _texts(ids: dict[str, TaskId | None]) -> Item:
    return {name: attribute_values.text(each.text) for name, each in ids.items() if each is not None}


def item_of(stored: StoredSchedule) -> Item:
    owner, name = stored.owner, stored.name
    item = {
        **key_of(owner, name),
        schema.OWNER_KEY: place_in_list(owner, schema.SCHEDULE_LIST_MARK, name),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        UID: attribute_values.text(stored.uid.text),
        _GENERATION: attribute_values.number(stored.generation),
        _DONE: attribute_values.number(stored.done),
        _SPEC: packed(spec_form(stored.spec)),
        _TEMPLATE: template_form(stored.spec.task),
        _PAYLOAD: field_codecs.content(stored.payload),
        _COURSE: packed(_next_action(stored)),
    }
    if stored.revision_ends:
        item[_REVISION_ENDS] = packed(stored.revision_ends)
    if stored.expectation is not None:
        item[_EXPECTATION] = packed(expectation_form(stored.expectation))
    if stored.log:
        item[_LOG] = packed([[each.at, each.key, each.note] for each in stored.log])
    return item


def _next_action(stored: StoredSchedule) -> list[Any]:
    """How far a schedule has come; a value that is added later is added at the end."""
    last, owed = stored.last_run, stored.owed
    return [
        stored.shards,
        stored.created_at,
        stored.updated_at,
        stored.state,
        stored.paused_reason,
        stored.revision,
        stored.version,
        stored.tzdata,
        stored.remaining_runs,
        None if last is None else [last.task_id.text, last.nominal, last.revision],
        None if owed is None else [owed.nominal, owed.at, owed.due_at, owed.key, owed.runs, owed.note],
        [run_form(run) for run in stored.backfills],
        stored.runs_started,
        stored.runs_skipped,
    ]


def _stored(owner: str, item: StoredItem) -> StoredSchedule:
    name = item[schema.SORT_KEY]["S"].removeprefix(schema.SCHEDULE_HEAD_MARK)
    shards, created_at, changed_at, state, note, revision, version, *rest = unpacked(item[_COURSE])
    tzdata, remaining, last, owed, runs, placed, skipped = rest
    return StoredSchedule(
        owner=owner,
        uid=TaskId(attribute_values.string(item[UID])),
        shards=shards,
        spec=read_spec(name, unpacked(item[_SPEC]), item[_TEMPLATE]["M"]),
        payload=field_codecs.read_content("payload", item[_PAYLOAD]),
        created_at=created_at,
        updated_at=changed_at,
        done=attribute_values.integer(item[_DONE]),
        state=ScheduleState(state),
        paused_reason=note,
        revision=revision,
        version=version,
        incarnation=version_of(item),
        generation=attribute_values.integer(item[_GENERATION]),
        tzdata=tzdata,
        remaining_runs=remaining,
        last_run=None if last is None else LastRun(TaskId(last[0]), *last[1:]),
        owed=None if owed is None else Occurrence(*owed),
        backfills=tuple(map(read_run, runs)),
        log=tuple(Remark(*each) for each in unpacked(item[_LOG])) if _LOG in item else (),
        runs_started=placed,
        runs_skipped=skipped,
        revision_ends=tuple(unpacked(item[_REVISION_ENDS])) if _REVISION_ENDS in item else (),
        expectation=read_expectation(unpacked(item[_EXPECTATION])) if _EXPECTATION in item else None,
    )


def activity_of(item: StoredItem) -> Activity:
    uid, active, buffered = (
        TaskId(attribute_values.string(item[name])) if name in item else None for name in (UID, ACTIVE, BUFFERED)
    )
    return Activity(uid, active, buffered, version_of(item))
