"""How long the embedded AWS takes to deliver messages to a function that does nothing: the floor of a burst.

The function is called by its queue as the stack's worker is: as many messages at once, as many processes at once. It
writes down when it was called with each message, and nothing else.
"""

from __future__ import annotations

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

_NAME, _STARTS = "bench-empty", "STARTS"
_CODE = f"""
import os
import time


def handler(event, context):
    line = f"{{time.time()}}\\n"
    with open(os.environ["{_STARTS}"], "a") as starts:
        starts.write(line * len(event["Records"]))
"""
_BATCH, _SENDERS = 10, 10
_PAUSE, _PATIENCE = 0.5, 300.0


def latenesses(engine: Emulator, worker: str, count: int) -> list[int]:
    """Milliseconds from the first request that sends a message to each call of the function with one.

    Args:
        engine: that delivers.
        worker: the function whose way of being called is taken over.
        count: of the messages.

    Raises:
        TimeoutError: some have not been delivered in time.
    """
    queues, functions = engine.client("sqs"), engine.client("lambda")
    with TemporaryDirectory() as folder:
        starts = Path(folder) / "starts"
        starts.touch()
        create_function(engine, _NAME, "empty.handler", {"empty.py": _CODE}, {_STARTS: str(starts)})
        mapping = _busiest(functions.list_event_source_mappings(FunctionName=worker)["EventSourceMappings"])
        at_once = mapping["ScalingConfig"]["MaximumConcurrency"]
        lambda_warm_up.start_many(engine, {_NAME: at_once})
        url = queues.create_queue(QueueName=_NAME)["QueueUrl"]
        arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        functions.create_event_source_mapping(
            EventSourceArn=arn,
            FunctionName=_NAME,
            BatchSize=mapping["BatchSize"],
            ScalingConfig={"MaximumConcurrency": at_once},
        )
        began = time.time()
        with ThreadPoolExecutor(_SENDERS) as threads:
            batches = [range(first, min(first + _BATCH, count)) for first in range(0, count, _BATCH)]
            list(threads.map(lambda batch: queues.send_message_batch(QueueUrl=url, Entries=_entries(batch)), batches))
        return [round((each - began) * 1_000) for each in _all(starts, count)]


def _busiest(mappings: Sequence[Any]) -> Any:  # noqa: ANN401 - as boto3 types it
    return max(mappings, key=lambda each: each.get("ScalingConfig", {}).get("MaximumConcurrency", 1))


def _entries(batch: range) -> list[Any]:
    return [{"Id": str(number), "MessageBody": "{}"} for number in batch]


def _all(starts: Path, count: int) -> list[float]:
    end = time.monotonic() + _PATIENCE
    while len(lines := starts.read_text().split()) < count:
        if time.monotonic() > end:
            raise TimeoutError(f"{count - len(lines)} of {count} messages have not been delivered")
        time.sleep(_PAUSE)
    return [float(each) for each in lines]
