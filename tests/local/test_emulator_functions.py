"""Tests functions that the embedded AWS runs in parallel, so that an upgrade shows what broke."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from bench.engine_functions import create_function
from duetime.adapters.dynamodb.batches import insertion
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime_local.emulator import Emulator

_INVOCATIONS, _AT_ONCE = 30, 3
_BUSY = """
import os, pathlib, time

def handler(event, context):
    folder = pathlib.Path(os.environ["FOLDER"])
    (folder / "stream-began").touch()
    end = time.monotonic() + 25
    while not (folder / "release").exists() and time.monotonic() < end:
        time.sleep(0.02)
"""
_QUICK = """
import os, pathlib

def handler(event, context):
    (pathlib.Path(os.environ["FOLDER"]) / "message-came").touch()
"""
_LOGGING = """
def handler(event, context):
    for line in range(event["lines"]):
        print(event["name"], line)
"""


def function(engine: Emulator, source: str, folder: Path) -> str:
    """Create a function for a test, with a folder in which it can leave marks."""
    name = f"probe-{uuid4()}"
    create_function(engine, name, "index.handler", {"index.py": source}, {"FOLDER": str(folder)})
    return name


def streamed_table(engine: Emulator, name: str) -> str:
    """Create a table with a stream of its changes and return the stream's ARN."""
    table = engine.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    return table["TableDescription"]["LatestStreamArn"]


def test_a_queue_is_processed_while_a_stream_function_runs(engine: Emulator, tmp_path: Path) -> None:
    """A message is received while the stream's function still runs; the emulator itself would delay the message."""
    dynamodb, sqs, functions = engine.client("dynamodb"), engine.client("sqs"), engine.client("lambda")
    table, url = f"probe-{uuid4()}", sqs.create_queue(QueueName=f"probe-{uuid4()}")["QueueUrl"]
    stream = streamed_table(engine, table)
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    functions.create_event_source_mapping(
        EventSourceArn=stream, FunctionName=function(engine, _BUSY, tmp_path), StartingPosition="LATEST"
    )
    functions.create_event_source_mapping(EventSourceArn=arn, FunctionName=function(engine, _QUICK, tmp_path))

    dynamodb.put_item(TableName=table, Item={"p": {"S": "changed"}})
    assert until((tmp_path / "stream-began").exists)
    sqs.send_message(QueueUrl=url, MessageBody="come")

    try:
        assert until((tmp_path / "message-came").exists, 15)
    finally:
        (tmp_path / "release").touch()


def test_batch_insertions_reach_the_stream_and_overwrite_nothing(engine: Emulator) -> None:
    """A batch makes a conditional write for each of its statements, and each write is charged by its size."""
    dynamodb, table = engine.client("dynamodb"), f"probe-{uuid4()}"
    stream = streamed_table(engine, table)
    dynamodb.put_item(TableName=table, Item={"p": {"S": "there"}})
    items: list[Item] = [{"p": {"S": "new"}, "d": {"S": "x" * 3_000}}, {"p": {"S": "there"}, "d": {"N": "1.5"}}]

    answer = dynamodb.batch_execute_statement(
        Statements=[insertion(table, item) for item in items], ReturnConsumedCapacity="INDEXES"
    )

    assert [each.get("Error", {}).get("Code") for each in answer["Responses"]] == [None, "DuplicateItem"]
    assert [each["CapacityUnits"] for each in answer["ConsumedCapacity"]] == [3, 1]
    assert dynamodb.get_item(TableName=table, Key={"p": {"S": "there"}})["Item"] == {"p": {"S": "there"}}
    streams: Any = cast("Any", engine).client("dynamodbstreams")
    shard = streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
    start = streams.get_shard_iterator(StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    records = streams.get_records(ShardIterator=start["ShardIterator"])["Records"]
    assert [record["dynamodb"]["Keys"]["p"]["S"] for record in records] == ["there", "new"]


def test_each_invocation_has_a_complete_separate_log(engine: Emulator, tmp_path: Path) -> None:
    """Each invocation's log is complete, also for parallel processes that print nothing, one line or many lines."""
    functions = engine.client("lambda")
    name = function(engine, _LOGGING, tmp_path)

    def log_of(number: int) -> list[str]:
        payload = json.dumps({"name": number, "lines": number}).encode()
        response = functions.invoke(FunctionName=name, LogType="Tail", Payload=payload)
        return base64.b64decode(response.get("LogResult", "")).decode().splitlines()

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        logs = list(threads.map(log_of, range(_INVOCATIONS)))

    for number, log in enumerate(logs):
        lines = [line for line in log if line.startswith(f"{number} ")]
        assert lines == [f"{number} {line}" for line in range(number)]
        assert not [line for line in log if line[:1].isdigit() and line not in lines]
