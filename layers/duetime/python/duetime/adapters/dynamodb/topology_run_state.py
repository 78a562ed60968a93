"""Stores the run states, counts and tokens of topologies in DynamoDB.

Each node has a separate partition, with its chunks, its reports and its token. Therefore, nodes that end at the same
time do not all write to one partition.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.task_items import key_of, task_of
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition, save_next, version_of
from duetime.domain.topologies.join_counters import Chunk, JoinCount, chunk_of
from duetime.domain.topologies.run_state import Begun, RunState
from duetime.domain.topologies.trigger_rules import Counts, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

_HEAD, _CHUNK, _TALLY, _TOKEN = "head", "c", "r", "token"
_RUNS, _FENCE, _RAN, _FLAGS = "r", "k", "n", "w"
_GROUP = "jg"
_NAMES = ("opened", "stopped", "ended", "dissolved")
_SETS = {Outcome.SUCCEEDED: "a", Outcome.FAILED: "b", Outcome.SKIPPED: "c"}
_FULLNESS = "q"
"""Prefix of the attribute with the number of a chunk's edges that have arrived, according to the chunk's report. The
chunk's number follows the prefix."""
_COUNTS = "w"
"""Prefix of the attribute with the counts in a chunk's report. The chunk's number follows the prefix."""
_VALUE = "b"


class DynamoTopologyStore:
    """The `duetime.ports.topologies.TopologyStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, topology: TaskId) -> RunState | None:
        """Read the run state of a topology with strong consistency; `None` if the topology has never started."""
        item = self._get(_key_of(topology, _HEAD))
        return _head(topology, item) if item else None

    def read_with_task(self, topology: TaskId) -> tuple[Task | None, RunState | None]:
        """Read a topology's task and its run state with strong consistency, in one request."""
        head = _key_of(topology, _HEAD)
        found = read_items(self._client, self._table, [key_of(topology), head], consistent=True)
        items = {item[schema.PARTITION_KEY]["S"]: item for item in found}
        task, state = items.get(topology.partition), items.get(head[schema.PARTITION_KEY]["S"])
        return task_of(task) if task else None, _head(topology, state) if state else None

    def save(self, run_state: RunState, nonce: str, expires_at: Millis | None) -> bool:
        """Store the run state of a topology, if the stored item still has the version that was read."""
        flags = [name for name in _NAMES if getattr(run_state, name)]
        item: Item = {
            **_key_of(run_state.topology, _HEAD),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            **({} if expires_at is None else {schema.TTL: attribute_values.expiry(expires_at)}),
            _RUNS: attribute_values.text(" ".join(f"{begun.at}/{begun.shards}" for begun in run_state.runs)),
            _FENCE: attribute_values.number(run_state.fence),
            _FLAGS: attribute_values.text(" ".join(flags)),
            _GROUP: attribute_values.number(run_state.join_group),
            **({_RAN: attribute_values.packed(json.dumps(dict(run_state.ran)).encode())} if run_state.ran else {}),
        }
        return save_next(self._client, self._table, item, run_state.version, nonce)

    def add_edges(
        self, node: TaskId, edges: int, arrived: Mapping[int, Outcome], expires_at: Millis
    ) -> tuple[Chunk, Chunk]:
        """Count edges in one chunk that have arrived at a node; edges that were already counted change nothing."""
        number = chunk_of(min(arrived))
        missing = dict(arrived)
        while True:
            request = self._addition(_key_of(node, f"{_CHUNK}{number}"), missing, expires_at)
            with translated():
                try:
                    before = _chunk(number, edges, self._client.update_item(**request).get("Attributes") or {})
                    return before, before.with_edges(missing)
                except self._client.exceptions.ConditionalCheckFailedException as refusal:
                    before = _chunk(number, edges, item_of_failed_condition(refusal) or {})
            missing = {position: outcome for position, outcome in missing.items() if not before.has(position)}
            if not missing:
                return before, before

    def _addition(self, key: Item, arrived: Mapping[int, Outcome], expires_at: Millis) -> dict[str, Any]:
        """The update that adds edges, on the condition that none of these edges has been counted."""
        names = {f"#{attribute}": attribute for attribute in _SETS.values()}
        positions = {f":p{place}": attribute_values.number(each) for place, each in enumerate(arrived)}
        added = {
            _SETS[kind]: {"NS": [str(position) for position, outcome in arrived.items() if outcome is kind]}
            for kind in _SETS
            if kind in arrived.values()
        }
        return {
            "TableName": self._table,
            "Key": key,
            "ConditionExpression": " AND ".join(
                f"NOT contains({name}, {position})" for name in names for position in positions
            ),
            "UpdateExpression": f"ADD {', '.join(f'#{name} :{name}' for name in added)} SET #x = :x",
            "ExpressionAttributeNames": {**names, "#x": schema.TTL},
            "ExpressionAttributeValues": {
                **positions,
                **{f":{name}": numbers for name, numbers in added.items()},
                ":x": attribute_values.expiry(expires_at),
            },
            "ReturnValues": "ALL_OLD",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def add_report(self, node: TaskId, edges: int, chunk: int, counts: Counts, expires_at: Millis) -> JoinCount:
        """Store a chunk's report, unless a report with as many or more edges is stored, and return the counts."""
        report = f"{counts.total} {counts.succeeded} {counts.failed} {counts.skipped}"
        request: dict[str, Any] = {
            "TableName": self._table,
            "Key": _key_of(node, _TALLY),
            "ConditionExpression": "attribute_not_exists(#q) OR #q < :q",
            "UpdateExpression": "SET #q = :q, #w = :w, #x = :x",
            "ExpressionAttributeNames": {
                "#q": f"{_FULLNESS}{chunk}",
                "#w": f"{_COUNTS}{chunk}",
                "#x": schema.TTL,
            },
            "ExpressionAttributeValues": {
                ":q": attribute_values.number(counts.ended),
                ":w": attribute_values.text(report),
                ":x": attribute_values.expiry(expires_at),
            },
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        with translated():
            try:
                return _join_count(edges, self._client.update_item(**request)["Attributes"])
            except self._client.exceptions.ConditionalCheckFailedException as refusal:
                return _join_count(edges, item_of_failed_condition(refusal) or {})

    def read_join_count(self, node: TaskId, edges: int) -> JoinCount:
        """Read the reports of a node's chunks with strong consistency."""
        return _join_count(edges, self._get(_key_of(node, _TALLY)) or {})

    def put_token(self, node: TaskId, token: str, expires_at: Millis) -> None:
        """Store the token with which a node's end is reported to the run's execution; it replaces an older token."""
        item = {
            **_key_of(node, _TOKEN),
            _VALUE: attribute_values.text(token),
            schema.TTL: attribute_values.expiry(expires_at),
        }
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def read_token(self, node: TaskId) -> str | None:
        """Read the token of a node with strong consistency; `None` if no token is stored."""
        item = self._get(_key_of(node, _TOKEN))
        return attribute_values.string(item[_VALUE]) if item else None

    def _get(self, key: Item) -> StoredItem | None:
        with translated():
            return self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")


def _key_of(task_id: TaskId, name: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.TOPOLOGY_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(name),
    }


def _head(topology: TaskId, item: StoredItem) -> RunState:
    runs = [pair.split("/") for pair in attribute_values.string(item[_RUNS]).split()]
    flags = attribute_values.string(item[_FLAGS]).split()
    return RunState(
        topology,
        runs=tuple(Begun(int(at), int(shards)) for at, shards in runs),
        fence=attribute_values.integer(item[_FENCE]),
        join_group=attribute_values.integer(item[_GROUP]),
        ran=json.loads(attribute_values.unpacked(item[_RAN])) if _RAN in item else {},
        **{name: name in flags for name in _NAMES},
        version=version_of(item),
    )


def _chunk(number: int, edges: int, item: StoredItem) -> Chunk:
    sets = [frozenset(map(int, item[name]["NS"])) if name in item else frozenset() for name in _SETS.values()]
    return Chunk(Chunk.numbered(number, edges).edges, *sets)


def _join_count(edges: int, item: StoredItem) -> JoinCount:
    reports = {
        int(name.removeprefix(_COUNTS)): Counts(*map(int, attribute_values.string(value).split()))
        for name, value in item.items()
        if name.startswith(_COUNTS)
    }
    return JoinCount(edges, reports)
