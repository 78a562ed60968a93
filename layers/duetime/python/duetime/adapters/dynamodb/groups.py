"""Stores groups in DynamoDB. Each group has an item, and each member has an item in one of the group's partitions."""

from __future__ import annotations

import heapq
import json
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import place_in_list, read_listed
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.groups import Group, Member
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import GROUP_PARTS
from duetime.domain.tasks.states import State
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor
    from duetime.ports.tasks import ListQuery

_UID, _CREATED, _CLOSED, _COMPLETED, _COMPLETION, _RULE, _HASH, _COUNTS = "i", "n", "c", "d", "t", "r", "h", "k"
_OUTCOME, _NOTED, _NOTED_AT = "o", "n", "c"
_FEW = 20
"""Number of members that fit into one read unit."""
_REMEMBERED = 1_000
"""Maximum number of groups for which a process remembers a known open member."""
_REMOVED = 500
"""Maximum number of members in one partition that one call removes."""


class DynamoGroupStore:
    """The `duetime.ports.stores.GroupStore` that uses the tasks table. It reads a group's partitions in parallel."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor
        self._places: dict[tuple[str, str], TaskId] = {}
        """The last known open member, by owner and group. The next search in a group begins with this member."""

    def read(self, owner: str, group_id: str, *, consistent: bool = True) -> Group | None:
        """Read a group without its members; `None` if it does not exist."""
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key=_key_of(owner, group_id), ConsistentRead=consistent
            )
        return _group(owner, answer["Item"]) if "Item" in answer else None

    def save(self, group: Group, nonce: str) -> bool:
        """Write the next version of a group, if the stored group still has the version that was read."""
        return save_next(self._client, self._table, _item_of(group), group.version, nonce)

    def list_after(self, owner: str, after: str, limit: int) -> list[Group]:
        """Read an owner's groups in order of their ids, with eventual consistency.

        Only the last page has fewer than `limit` groups.
        """

        def read(ids: list[str]) -> list[Group]:
            items = read_items(self._client, self._table, [_key_of(owner, group_id) for group_id in ids])
            return sorted((_group(owner, item) for item in items), key=lambda group: group.id)

        place = (owner, schema.GROUP_LIST_MARK, after or " ")
        return read_listed(self._client, self._table, self._executor, place, limit, read)

    def add_member(self, owner: str, group_id: str, task_id: TaskId, now: Millis) -> bool:
        """Write the item of a member that joins, or joins again before its end; return whether it was written."""
        item = {
            **_member_key(owner, group_id, task_id),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            _NOTED: attribute_values.number(0),
            _NOTED_AT: attribute_values.number(now),
        }
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#n) OR #n = :zero",
                    ExpressionAttributeNames={"#n": _NOTED},
                    ExpressionAttributeValues={":zero": attribute_values.number(0)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def note(
        self, owner: str, group_id: str, member: Member, expires_at: Millis | None, read: Member | None = None
    ) -> None:
        """Store the outcome of a member, or that the member is open again, unless a later version is stored.

        Args:
            owner: the group's owner.
            group_id: the group's id.
            member: the new values.
            expires_at: when the item may be removed; `None` while the task is open.
            read: the member that was read, whose item must not have changed; `None` to change any earlier version.
        """
        sets = "#n = :n, #c = :c"
        removes = [name for name, value in (("#o", member.outcome), ("#x", expires_at)) if value is None]
        values: Item = {
            ":n": attribute_values.number(member.version),
            ":c": attribute_values.number(member.noted_at),
        }
        if member.outcome is not None:
            sets, values[":o"] = f"{sets}, #o = :o", attribute_values.text(member.outcome.value)
        if expires_at is not None:
            sets, values[":x"] = f"{sets}, #x = :x", attribute_values.expiry(expires_at)
        condition = "#n <= :n"
        if read is not None:
            condition, values[":r"] = "#n = :r_n AND #c = :r", attribute_values.number(read.noted_at)
            values[":r_n"] = attribute_values.number(read.version)
        # The condition also fails for a missing item, which was removed with its group.
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=_member_key(owner, group_id, member.task_id),
                UpdateExpression=f"SET {sets}{' REMOVE ' + ', '.join(removes) if removes else ''}",
                ConditionExpression=condition,
                ExpressionAttributeNames={"#n": _NOTED, "#c": _NOTED_AT, "#o": _OUTCOME, "#x": schema.TTL},
                ExpressionAttributeValues=values,
            )

    def remove_member(self, owner: str, group_id: str, task_id: TaskId, read: Member | None = None) -> None:
        """Remove a member's item.

        If `read` is given, the item is removed only if it has not changed since it was read.
        """
        request: dict[str, Any] = {}
        if read is not None:
            request = {
                "ConditionExpression": "#n = :n AND #c = :c",
                "ExpressionAttributeNames": {"#n": _NOTED, "#c": _NOTED_AT},
                "ExpressionAttributeValues": {
                    ":n": attribute_values.number(read.version),
                    ":c": attribute_values.number(read.noted_at),
                },
            }
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.delete_item(TableName=self._table, Key=_member_key(owner, group_id, task_id), **request)

    def open_members(self, owner: str, group_id: str, limit: int, near: TaskId | None = None) -> list[Member]:
        """Read some open members with strong consistency; the result is empty only if no member is open.

        Args:
            owner: the group's owner.
            group_id: the group's id.
            limit: maximum number of members, which are all from one partition.
            near: a member whose partition is read first if no open member is known from an earlier call.
        """
        for pages in self._search(owner, group_id, near):
            found: list[Member] = []
            for page in pages:
                found += [_member(item) for item in page if _OUTCOME not in item]
                if len(found) >= limit:
                    break
            if found:
                if len(self._places) >= _REMEMBERED:
                    self._places.clear()
                self._places[owner, group_id] = found[0].task_id
                return found[:limit]
        self._places.pop((owner, group_id), None)
        return []

    def _search(self, owner: str, group_id: str, near: TaskId | None) -> Iterator[Iterator[Sequence[StoredItem]]]:
        """Yield the pages of each partition's members, beginning with the last known open member.

        With this order, a process reads each ended member about once, regardless of the order in which members end. If
        searches began with the latest members, they would read most of a large group once these members have ended.
        """
        place = self._places.get((owner, group_id))
        begin = place or near
        first = 0 if begin is None else part_of(begin)
        yield self._pages(_part(owner, group_id, first), _FEW, until=place)
        for number in range(1, GROUP_PARTS):
            yield self._pages(_part(owner, group_id, (first + number) % GROUP_PARTS), _FEW)
        if place is not None:
            yield self._pages(_part(owner, group_id, first), after=place)

    def counts(self, owner: str, group_id: str, most_open: int) -> tuple[dict[State, int], list[TaskId], int]:
        """Count all members with strong consistency.

        Args:
            owner: the group's owner.
            group_id: the group's id.
            most_open: maximum number of open members' ids to return.

        Returns:
            The number of ended members by state, some open members' ids, and the number of open members.
        """
        ended: dict[State, int] = {}
        ids: list[TaskId] = []
        open_members = 0
        for counted, some in self._executor.map(partial(self._count, owner, group_id), range(GROUP_PARTS)):
            for state, number in counted.items():
                ended[state] = ended.get(state, 0) + number
            open_members += len(some)
            ids += some[: most_open - len(ids)]
        return ended, ids, open_members

    def remove(self, owner: str, group_id: str) -> bool:
        """Remove some members of a group, and the group itself when no member is left; return whether it is removed."""
        left = [self._remove_part(owner, group_id, number) for number in range(GROUP_PARTS)]
        if any(left):
            return False
        self._delete(_key_of(owner, group_id))
        return True

    def _count(self, owner: str, group_id: str, number: int) -> tuple[dict[State, int], list[TaskId]]:
        counted: dict[str, int] = {}
        ids: list[TaskId] = []
        for page in self._pages(_part(owner, group_id, number)):
            for item in page:
                if _OUTCOME in item:
                    outcome = item[_OUTCOME]["S"]
                    counted[outcome] = counted.get(outcome, 0) + 1
                else:
                    ids.append(TaskId(item[schema.SORT_KEY]["S"]))
        return {State(outcome): count for outcome, count in counted.items()}, ids

    def _pages(
        self, partition: str, first: int | None = None, *, until: TaskId | None = None, after: TaskId | None = None
    ) -> Iterator[Sequence[StoredItem]]:
        """Yield pages of a partition's members with strong consistency, beginning with the latest member.

        Args:
            partition: the partition.
            first: number of members on the first page; `None` for as many members as fit.
            until: the latest member to read; `None` for no limit.
            after: the member after which to read; `None` for all members.
        """
        condition, values = "#p = :p", {":p": attribute_values.text(partition)}
        if place := until or after:
            condition += " AND #s <= :s" if until is not None else " AND #s > :s"
            values[":s"] = attribute_values.text(place.text)
        names = {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY, "#n": _NOTED, "#c": _NOTED_AT, "#o": _OUTCOME}
        more: dict[str, Any] = {} if first is None else {"Limit": first}
        while True:
            with translated():
                page = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression=condition,
                    ProjectionExpression="#s, #n, #c, #o",
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                    ConsistentRead=True,
                    # Members mostly end in the order of their ids, so most open members are at the end.
                    ScanIndexForward=False,
                    **more,
                )
            yield page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            more["ExclusiveStartKey"] = page["LastEvaluatedKey"]
            if first is not None:
                # Doubling the page size limits the number of requests, without reading far beyond the searched members.
                more["Limit"] *= 2

    def _remove_part(self, owner: str, group_id: str, number: int) -> bool:
        """Remove some members in a partition, and return whether any members are left."""
        keys: list[Item] = []
        partition = _part(owner, group_id, number)
        for page in self._pages(partition):
            keys += [_key(partition, item[schema.SORT_KEY]["S"]) for item in page]
            if len(keys) > _REMOVED:
                break
        self._executor.map(self._delete, keys[:_REMOVED])
        return len(keys) > _REMOVED

    def _delete(self, key: Item) -> None:
        with translated():
            self._client.delete_item(TableName=self._table, Key=key)


def member_ids(client: DynamoDBClient, table: str, executor: Executor, query: ListQuery) -> list[TaskId]:
    """Read the next members of a group for a task list, in order of ids and with eventual consistency.

    With `failed_only`, members that are known to have ended in other states are left out.
    """
    parts = executor.map(partial(_ids_of_part, client, table, query), range(GROUP_PARTS))
    merged = heapq.merge(*parts, reverse=query.descending)
    return [TaskId(text) for text in islice(merged, query.limit)]


def _ids_of_part(client: DynamoDBClient, table: str, query: ListQuery, number: int) -> list[str]:
    condition, names = "#p = :p", {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY, "#o": _OUTCOME}
    values: Item = {":p": attribute_values.text(_part(query.owner, query.in_group, number))}
    if query.after is not None:
        condition += f" AND #s {'<' if query.descending else '>'} :after"
        values[":after"] = attribute_values.text(query.after.text)
    more: dict[str, Any] = {} if query.failed_only else {"Limit": query.limit}
    found: list[str] = []
    with translated():
        while True:
            page = client.query(
                TableName=table,
                KeyConditionExpression=condition,
                ProjectionExpression="#s, #o",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ScanIndexForward=not query.descending,
                **more,
            )
            found += [item[schema.SORT_KEY]["S"] for item in page["Items"] if _is_listed(item, query)]
            if len(found) >= query.limit or "LastEvaluatedKey" not in page:
                return found[: query.limit]
            more["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _is_listed(item: StoredItem, query: ListQuery) -> bool:
    """Whether a member could belong in a list, judging by its item.

    An item may still say that an ended member is open.
    """
    return not query.failed_only or _OUTCOME not in item or item[_OUTCOME]["S"] == State.FAILED


def part_of(task_id: TaskId) -> int:
    """The number of the partition with a member's item.

    Ids that begin with the same time are spread over partitions.
    """
    return task_id.data[-1] % GROUP_PARTS


def _part(owner: str, group_id: str, number: int) -> str:
    # A group id contains no `#`, so the last `#` separates the owner from the group id.
    return f"{schema.GROUP_MEMBERS_PREFIX}{number}#{owner}#{group_id}"


def _key(partition: str, sort_key: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(partition),
        schema.SORT_KEY: attribute_values.text(sort_key),
    }


def _key_of(owner: str, group_id: str) -> Item:
    return _key(f"{schema.GROUP_PREFIX}{owner}#{group_id}", group_id)


def _member_key(owner: str, group_id: str, task_id: TaskId) -> Item:
    return _key(_part(owner, group_id, part_of(task_id)), task_id.text)


def _member(item: StoredItem) -> Member:
    return Member(
        TaskId(item[schema.SORT_KEY]["S"]),
        State(item[_OUTCOME]["S"]) if _OUTCOME in item else None,
        attribute_values.integer(item[_NOTED]),
        attribute_values.integer(item[_NOTED_AT]),
    )


def _item_of(group: Group) -> Item:
    item = {
        **_key_of(group.owner, group.id),
        schema.OWNER_KEY: place_in_list(group.owner, schema.GROUP_LIST_MARK, group.id),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _UID: attribute_values.text(group.uid),
        _CREATED: attribute_values.number(group.created_at),
    }
    if group.closed_at is not None:
        item[_CLOSED] = attribute_values.number(group.closed_at)
        item[_RULE] = attribute_values.text(group.rule.value)
        item[_HASH] = attribute_values.text(group.request_hash)
    if group.completion is not None:
        item[_COMPLETION] = attribute_values.text(group.completion.text)
    if group.completed_at is not None:
        item[_COMPLETED] = attribute_values.number(group.completed_at)
        item[_COUNTS] = attribute_values.text(json.dumps(dict(group.counts), separators=(",", ":")))
    if group.expires_at is not None:
        item[schema.TTL] = attribute_values.expiry(group.expires_at)
    return item


def _group(owner: str, item: StoredItem) -> Group:
    return Group(
        owner=owner,
        id=attribute_values.string(item[schema.SORT_KEY]),
        uid=attribute_values.string(item[_UID]),
        created_at=attribute_values.integer(item[_CREATED]),
        expires_at=attribute_values.read_expiry(item[schema.TTL]) if schema.TTL in item else None,
        closed_at=attribute_values.integer(item[_CLOSED]) if _CLOSED in item else None,
        completed_at=attribute_values.integer(item[_COMPLETED]) if _COMPLETED in item else None,
        completion=TaskId(attribute_values.string(item[_COMPLETION])) if _COMPLETION in item else None,
        rule=TriggerRule(attribute_values.string(item[_RULE])) if _RULE in item else TriggerRule.ALL_DONE,
        request_hash=attribute_values.string(item[_HASH]) if _HASH in item else "",
        counts=_counts(attribute_values.string(item[_COUNTS])) if _COUNTS in item else {},
        version=version_of(item),
    )


def _counts(text: str) -> dict[State, int]:
    return {State(state): int(count) for state, count in json.loads(text).items()}
