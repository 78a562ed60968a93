"""Measures a lower bound for bursts: how fast the embedded AWS delivers messages to functions that do minimal work.

Queues invoke the functions in the same way as the stack's worker, with the same batch size and concurrency. One
function does nothing. The other function uses plain boto3 to make the two conditional writes that every task needs, one
before its start and one after its end, for ten messages at a time. Both functions record the time when they start each
message.
"""

from __future__ import annotations

import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bench.engine_functions import create_function
from duetime_local.emulator import lambda_warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_local.emulator import Emulator

EMPTY, WRITING = "bench-empty", "bench-writing"
"""Names for the function that does nothing and the function that writes, and for their queues and the table."""
_STARTS = "STARTS"
_CODE = {
    EMPTY: f"""
import os
import time


def handler(event, context):
    line = f"{{time.time()}}\\n"
    with open(os.environ["{_STARTS}"], "a") as starts:
        starts.write(line * len(event["Records"]))
""",
    WRITING: f"""
import os
import time
from concurrent.futures import ThreadPoolExecutor

import boto3

client = boto3.client("dynamodb")
pool = ThreadPoolExecutor(10)
WORKER = {{"S": "w" * 20}}


def handler(event, context):
    started = list(pool.map(work, [record["body"] for record in event["Records"]]))
    with open(os.environ["{_STARTS}"], "a") as starts:
        starts.write("".join(f"{{each}}\\n" for each in started))


def work(key):
    update(key, "new", "running")
    started = time.time()
    update(key, "running", "done")
    return started


def update(key, before, after):
    client.update_item(
        TableName="{WRITING}",
        Key={{"key": {{"S": key}}}},
        UpdateExpression="SET #state = :after, worker = :worker",
        ConditionExpression="#state = :before",
        ExpressionAttributeNames={{"#state": "state"}},
        ExpressionAttributeValues={{":before": {{"S": before}}, ":after": {{"S": after}}, ":worker": WORKER}},
        ReturnValues="ALL_NEW",
    )
""",
}
_RECORD_BYTES = 250
"""The size of a small task's record, in bytes."""
_BATCH, _SENDERS, _PUTS = 10, 10, 25
_PAUSE, _PATIENCE = 0.5, 300.0


def latenesses(engine: Emulator, worker: str, name: str, count: int) -> list[int]:
    """Return the milliseconds from the first send request to the start of each message's processing.

    Args:
        engine: the embedded AWS that delivers the messages.
        worker: the function whose event source mapping is copied.
        name: `EMPTY` or `WRITING`.
        count: number of messages.

    Raises:
        TimeoutError: some messages were not delivered in time.
    """
    queues, functions = engine.client("sqs"), engine.client("lambda")
    keys = [str(number) for number in range(count)]
    if name == WRITING:
        _fill_table(engine, keys)
    with TemporaryDirectory() as folder:
        starts = Path(folder) / "starts"
        starts.touch()
        environ = {_STARTS: str(starts), "PYTHONPATH": sysconfig.get_path("purelib")}
        create_function(engine, name, "bare.handler", {"bare.py": _CODE[name]}, environ)
        mapping = _busiest(functions.list_event_source_mappings(FunctionName=worker)["EventSourceMappings"])
        at_once = mapping["ScalingConfig"]["MaximumConcurrency"]
        lambda_warm_up.start_many(engine, {name: at_once})
        url = queues.create_queue(QueueName=name)["QueueUrl"]
        arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        functions.create_event_source_mapping(
            EventSourceArn=arn,
            FunctionName=name,
            BatchSize=mapping["BatchSize"],
            ScalingConfig={"MaximumConcurrency": at_once},
        )
        began = time.time()
        with ThreadPoolExecutor(_SENDERS) as threads:
            batches = [keys[first : first + _BATCH] for first in range(0, count, _BATCH)]
            list(threads.map(lambda batch: queues.send_message_batch(QueueUrl=url, Entries=_entries(batch)), batches))
        return [round((each - began) * 1_000) for each in _all(starts, count)]


def _fill_table(engine: Emulator, keys: Sequence[str]) -> None:
    client = engine.client("dynamodb")
    client.create_table(
        TableName=WRITING,
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for first in range(0, len(keys), _PUTS):
        items: list[Any] = [
            {"key": {"S": key}, "state": {"S": "new"}, "rest": {"S": "r" * _RECORD_BYTES}}
            for key in keys[first : first + _PUTS]
        ]
        client.batch_write_item(RequestItems={WRITING: [{"PutRequest": {"Item": item}} for item in items]})


def _busiest(mappings: Sequence[Any]) -> Any:  # noqa: ANN401 - as boto3 types it
    return max(mappings, key=lambda each: each.get("ScalingConfig", {}).get("MaximumConcurrency", 1))


def _entries(keys: Sequence[str]) -> list[Any]:
    return [{"Id": key, "MessageBody": key} for key in keys]


def _all(starts: Path, count: int) -> list[float]:
    end = time.monotonic() + _PATIENCE
    while len(lines := starts.read_text().split()) < count:
        if time.monotonic() > end:
            raise TimeoutError(f"{count - len(lines)} of {count} messages have not been delivered")
        time.sleep(_PAUSE)
    return [float(each) for each in lines]
