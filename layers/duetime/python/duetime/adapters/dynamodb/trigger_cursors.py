"""Stores the trigger's cursors in DynamoDB, with one item per group, so that one write moves all of a group's cursors.

For each reading and each lagging queue, an item stores the latest minute of the progress, and the unfinished parts of
earlier minutes.
"""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.dispatch.cursors import ALL, Cursors, Growth, Progress, ShardHistory
from duetime.domain.errors import ClockWrong
from duetime.domain.operating_parameters import CLOCK_TOLERANCE, LONGEST_HOLD
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Telemetry


_POSITIONS, _EPOCH, _HOLDER, _HELD_UNTIL = "m", "e", "h", "u"
_SORT = "cursors"
_TRIES = 5
"""Maximum number of tries to add progress to an item with concurrent changes."""


class DynamoCursorStore:
    """The `duetime.ports.stores.CursorStore` that uses the tasks table.

    If a Region is given, the store uses separate items, so that writes in another Region do not replace them.
    """

    def __init__(self, client: DynamoDBClient, table: str, telemetry: Telemetry, region: str = "") -> None:
        self._client = client
        self._table = table
        self._telemetry = telemetry
        self._region = f"@{region}" if region else ""

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, unless another invocation holds it."""
        with translated():
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=self._key_of(group),
                    # The holder can take the group again, because a resent request must not lock out its sender.
                    ConditionExpression=(
                        "attribute_not_exists(#until) OR #until <= :now OR #until > :latest OR #holder = :holder"
                    ),
                    UpdateExpression=(
                        "SET #positions = if_not_exists(#positions, :first), #holder = :holder, #until = :until,"
                        " #epoch = if_not_exists(#epoch, :epoch) + :one"
                    ),
                    ExpressionAttributeNames={
                        "#positions": _POSITIONS,
                        "#epoch": _EPOCH,
                        "#holder": _HOLDER,
                        "#until": _HELD_UNTIL,
                    },
                    ExpressionAttributeValues={
                        ":first": _positions(first),
                        ":epoch": attribute_values.number(first.epoch),
                        ":one": attribute_values.number(1),
                        ":holder": attribute_values.text(holder),
                        ":now": attribute_values.number(now),
                        ":latest": attribute_values.number(now + LONGEST_HOLD),
                        ":until": attribute_values.number(until),
                    },
                    ReturnValues="ALL_NEW",
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return None
        taken = _cursors(answer["Attributes"])
        ahead = _ahead(now, answer["ResponseMetadata"])
        if abs(ahead) >= SECOND:
            self._telemetry.measure("clock_skew", abs(ahead))
        if abs(ahead) > CLOCK_TOLERANCE:
            self.advance(group, taken, 0)
            raise ClockWrong(ahead)
        return taken

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Store the read position of a group, and keep the group until `until` (0 releases the group)."""
        return self._save(group, cursors, cursors.epoch, {_HELD_UNTIL: attribute_values.number(until)})

    def join(self, group: int, cursors: Cursors) -> Cursors | None:
        """Add progress to the stored cursors, whoever holds the group; the hold does not change."""
        for _ in range(_TRIES):
            with translated():
                answer = self._client.get_item(TableName=self._table, Key=self._key_of(group), ConsistentRead=True)
            if "Item" not in answer:
                return None
            stored = _cursors(answer["Item"])
            joined = cursors.joined(stored)
            epoch = attribute_values.number(stored.epoch + 1)
            if self._save(group, joined, stored.epoch, {_EPOCH: epoch}):
                return _at_epoch(joined, stored.epoch + 1) if stored.holder == cursors.holder else None
        return None

    def read(self, group: int) -> Cursors | None:
        """Read a group's read position, with eventual consistency; `None` if the group has never been read."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=self._key_of(group))
        return _cursors(answer["Item"]) if "Item" in answer else None

    def replace(self, group: int, cursors: Cursors) -> None:
        """Replace any stored cursors, and remove the holder; an invocation that holds the group loses the group."""
        known = self.read(group)
        epoch = max(cursors.epoch, 0 if known is None else known.epoch) + 1
        item: Item = {
            **self._key_of(group),
            _POSITIONS: _positions(cursors),
            _EPOCH: attribute_values.number(epoch),
            _HOLDER: attribute_values.text(""),
            _HELD_UNTIL: attribute_values.number(0),
        }
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def _key_of(self, group: int) -> Item:
        return {
            schema.PARTITION_KEY: attribute_values.text(f"{schema.CURSOR_PREFIX}{group}{self._region}"),
            schema.SORT_KEY: attribute_values.text(_SORT),
        }

    def _save(self, group: int, cursors: Cursors, epoch: int, more: Item) -> bool:
        """Store cursors and other attributes, if the group still has the given epoch."""
        sets = {_POSITIONS: _positions(cursors), **more}
        names = {f"#{name}": name for name in (*sets, _EPOCH)}
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=self._key_of(group),
                    ConditionExpression=f"#{_EPOCH} = :before",
                    UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in sets),
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues={
                        ":before": attribute_values.number(epoch),
                        **{f":{name}": value for name, value in sets.items()},
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True


def _ahead(now: Millis, metadata: Mapping[str, Any]) -> Millis:
    """The time by which this clock is ahead of the server's clock, in milliseconds; 0 if the response has no date."""
    date = metadata.get("HTTPHeaders", {}).get("date")
    return now - round(parsedate_to_datetime(date).timestamp()) * SECOND if date else 0


def _at_epoch(cursors: Cursors, epoch: int) -> Cursors:
    return Cursors(cursors.readings, cursors.lagging, epoch, cursors.holder)


def _positions(cursors: Cursors) -> Value:
    every = {(reading, ALL): each for reading, each in enumerate(cursors.readings)} | dict(cursors.lagging)
    found = [[reading, queue, each.upto, each.open] for (reading, queue), each in sorted(every.items())]
    return attribute_values.text(json.dumps(found, separators=(",", ":")))


def _cursors(item: StoredItem) -> Cursors:
    every = {
        (reading, queue): Progress(upto, _open(minutes))
        for reading, queue, upto, minutes in json.loads(attribute_values.string(item[_POSITIONS]))
    }
    readings = tuple(every[key] for key in sorted(every) if key[1] == ALL)
    lagging = {key: each for key, each in every.items() if key[1] != ALL}
    return Cursors(readings, lagging, attribute_values.integer(item[_EPOCH]), attribute_values.string(item[_HOLDER]))


def _open(minutes: dict[str, Any]) -> dict[int, dict[int, str]]:
    return {
        int(minute): {int(shard): after for shard, after in positions.items()} for minute, positions in minutes.items()
    }


_HISTORY, _TYPE_DEFAULTS = "b", "y"
_KEY: Item = {
    schema.PARTITION_KEY: attribute_values.text(f"{schema.CURSOR_PREFIX}shards"),
    schema.SORT_KEY: attribute_values.text("shards"),
}


class DynamoShardStore:
    """The `duetime.ports.stores.ShardStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> ShardHistory:
        """Read every announced number of shards with strong consistency."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True)
        if "Item" not in answer:
            return ShardHistory()
        steps = json.loads(attribute_values.string(answer["Item"][_HISTORY]))
        return ShardHistory(tuple(Growth(shards, at) for shards, at in steps), _TYPE_DEFAULTS in answer["Item"])

    def announce(self, shards: int, now: Millis) -> ShardHistory:
        """Announce that tasks may be spread over this number of shards from now on."""
        while (grown := (before := self.read()).grown(shards, now)) != before:
            if self._save(grown, before):
                return grown
        return before

    def announce_type_defaults(self) -> None:
        """Announce that an owner sets type defaults. The number of shards must have been announced before."""
        with translated():
            self._client.update_item(
                TableName=self._table,
                Key=_KEY,
                ConditionExpression="attribute_exists(#h)",
                UpdateExpression="SET #t = :true",
                ExpressionAttributeNames={"#h": _HISTORY, "#t": _TYPE_DEFAULTS},
                ExpressionAttributeValues={":true": {"BOOL": True}},
            )

    def _save(self, history: ShardHistory, before: ShardHistory) -> bool:
        unchanged = "#h = :before" if before.steps else "attribute_not_exists(#h)"
        compared = {":before": _told(before)} if before.steps else {}
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_KEY,
                    ConditionExpression=unchanged,
                    UpdateExpression="SET #h = :after",
                    ExpressionAttributeNames={"#h": _HISTORY},
                    ExpressionAttributeValues={":after": _told(history), **compared},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True


def _told(history: ShardHistory) -> Value:
    return attribute_values.text(json.dumps([[step.shards, step.at] for step in history.steps], separators=(",", ":")))
