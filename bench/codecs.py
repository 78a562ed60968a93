"""Compares the cost of decoding requests and of encoding and decoding records with the simplest implementation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from bench.paired_timing import Comparison, compare_cpu
from duetime.adapters.dynamodb.task_items import item_of, task_of
from duetime.contract.http import request_json
from duetime.contract.tasks.decoding import batch_items, task_spec
from duetime.domain.limits import MAX_BATCH
from duetime.domain.tasks.creation import new_id, new_task
from duetime.domain.tasks.task import Content, ContentPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task

_TIMES = 300
_NOW = 1_795_228_387_250
BODY = json.dumps(
    {
        "type": "report",
        "payload": {"table": "public.orders", "action": "vacuum", "notify": ["dba@example.org"], "n": 17},
        "due_at": "2026-12-01T09:00:00.250+09:00",
        "retry": {"max_attempts": 3},
        "tags": {"team": "dba"},
    }
)
BATCH = f'{{"tasks": [{", ".join([BODY] * MAX_BATCH)}]}}'


def comparisons() -> Iterator[Comparison]:
    """Measure decoding a request's body, decoding a batch of tasks, and encoding and decoding a record."""
    yield compare_cpu("read a request's body", _repeated(read_body), "json.loads", _repeated(lambda: json.loads(BODY)))
    yield compare_cpu(
        "read a batch of a hundred tasks",
        lambda: batch_items(request_json.read(BATCH)),
        "json.loads of it",
        _load_batch,
    )
    task = _task()
    item = item_of(task)
    plain = {name: TypeDeserializer().deserialize({**value}) for name, value in item.items()}  # type: ignore[typeddict-item]  # any type descriptor is allowed
    yield compare_cpu(
        "a record to an item and back",
        _repeated(lambda: task_of(item_of(task))),
        "boto3's serializer and deserializer",
        _repeated(lambda: _by_boto3(plain)),
    )


def _task() -> Task:
    spec = task_spec(request_json.read(BODY))
    task = new_task(new_id(_NOW, _NOW, 7, 1), spec, "me", _NOW, _NOW, Content(ContentPlace.RECORD, "payload", b"{}"))
    return replace(task, nonce="nonce", payload=replace(task.payload, data=spec.payload))


def read_body() -> object:
    """Decode the body of a request to create a task."""
    return task_spec(request_json.read(BODY))


def _load_batch() -> object:
    return json.loads(BATCH)


def _by_boto3(plain: dict[str, object]) -> object:
    serializer, deserializer = TypeSerializer(), TypeDeserializer()
    stored = {name: serializer.serialize(value) for name, value in plain.items()}
    return {name: deserializer.deserialize(value) for name, value in stored.items()}


def _repeated(work: Callable[[], object]) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(_TIMES):
            work()

    return repeated
