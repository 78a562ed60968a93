"""Compares accepting and running tasks on the embedded engine with making only the writes that this requires."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from bench.paired_timing import Comparison, compare, compare_cpu
from duetime import composition
from duetime.adapters.dynamodb import schema
from duetime.composition import Platform, composed
from duetime.composition.tasks import TaskServices
from duetime.composition.worker import WorkerServices
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.tasks.creation import Order
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime.handlers import REGISTRY, Registered
from duetime.ports.queues import Delivery
from duetime_local import emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

_BATCH = 10
_TYPE = "bench.nothing"


def comparisons() -> Iterator[Comparison]:
    """Compare accepting and running batches of ten empty tasks."""
    with on_engine() as bare:
        ten, thirty = "ten bare puts, in threads", "thirty bare puts, in threads"
        yield compare("accept ten tasks in a batch", _accept, ten, bare.put_ten)
        yield compare("accept and run ten tasks", accept_and_run, thirty, bare.put_thirty)
        yield compare_cpu("processor time of accepting ten tasks", _accept, ten, bare.put_ten)
        yield compare_cpu("processor time of accepting and running ten", accept_and_run, thirty, bare.put_thirty)


@contextmanager
def on_engine() -> Iterator[BareWrites]:
    """Compose the services over an embedded engine, and yield the bare writes for comparison."""
    with emulator.running(port=0) as engine:
        os.environ.update(engine.environ)
        client = engine.client("dynamodb")
        table = create_table(client)
        urls: dict[str, str] = {
            variable: engine.client("sqs").create_queue(QueueName=priority.value)["QueueUrl"]
            for priority, variable in QUEUE_VARIABLES.items()
        }
        composition.use(Platform(environ={Variable.TABLE: table, Variable.BUCKET: "unused", **urls}))
        REGISTRY[_TYPE] = Registered({"run": lambda _context, _payload: None})
        yield BareWrites(client, table)


def create_table(client: DynamoDBClient) -> str:
    """Create a table without indexes."""
    keys = [
        {"AttributeName": schema.PARTITION_KEY, "KeyType": "HASH"},
        {"AttributeName": schema.SORT_KEY, "KeyType": "RANGE"},
    ]
    client.create_table(
        TableName="bench",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key["AttributeName"], "AttributeType": "S"} for key in keys],
        KeySchema=keys,  # type: ignore[arg-type]  # the key types are the two literals
    )
    return "bench"


class BareWrites:
    """Makes the minimum number of writes that tasks need, without any of duetime's code."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._pool = ThreadPoolExecutor(_BATCH)

    def put_ten(self) -> None:
        """Write ten records."""
        self.put(_BATCH)

    def put_thirty(self) -> None:
        """Make thirty writes, which is the number for ten records, ten claims and ten outcomes."""
        for _ in range(3):
            self.put_ten()

    def put(self, count: int) -> None:
        """Make a number of writes, ten at a time."""
        list(self._pool.map(self._put, range(count)))

    def _put(self, _number: int) -> None:
        key = {schema.PARTITION_KEY: {"S": "bench"}, schema.SORT_KEY: {"S": uuid4().hex}}
        self._client.put_item(TableName=self._table, Item={**key, "payload": {"S": "x" * 200}})


def _accept() -> list[object]:
    return list(
        composed(TaskServices).batch_creator.create_many("bench", [Order(TaskSpec(_TYPE)) for _ in range(_BATCH)])
    )


def accept_and_run() -> None:
    """Accept ten tasks in a batch, and run them in one delivery."""
    creations = composed(TaskServices).batch_creator.create_many(
        "bench", [Order(TaskSpec(_TYPE)) for _ in range(_BATCH)]
    )
    tasks = [each.value for each in creations if not isinstance(each, Exception)]
    composed(WorkerServices).batch_worker.work(
        [
            Delivery(Message(task.id, 0, task.next_at, Priority.NORMAL, "bench"), json.dumps(index), str(index))
            for index, task in enumerate(tasks)
        ],
        "bench",
    )
