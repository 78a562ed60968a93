"""How the embedded AWS runs functions side by side: when the pin moves, these say what broke."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import uuid4

from bench.engine_functions import create_function
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

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
    """A function of its own for a test; it has been told a folder to leave signs in."""
    name = f"probe-{uuid4()}"
    create_function(engine, name, "index.handler", {"index.py": source}, {"FOLDER": str(folder)})
    return name


def test_a_queue_is_served_while_a_function_works_on_a_stream(engine: Emulator, tmp_path: Path) -> None:
    """A message comes before the function of the stream is released; the emulator alone would make it wait."""
    dynamodb, sqs, functions = engine.client("dynamodb"), engine.client("sqs"), engine.client("lambda")
    table, url = f"probe-{uuid4()}", sqs.create_queue(QueueName=f"probe-{uuid4()}")["QueueUrl"]
    stream = dynamodb.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )["TableDescription"]["LatestStreamArn"]
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


def test_each_invocation_has_its_own_log_and_all_of_it(engine: Emulator, tmp_path: Path) -> None:
    """Of processes side by side, whether they print nothing, a line or many."""
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
