"""Counts a plain task's units and requests on the embedded engine, and calculates the cost in dollars."""

from __future__ import annotations

import os
from collections import Counter

import boto3

from duetime import composition
from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.tasks.creation import Order
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.handlers import REGISTRY, Registered
from duetime_common.prices import DEFAULT_REGION, MILLION, PRICES
from duetime_local import emulator
from tests.adapters.clouds import Cloud
from tests.functions.meter import Meter
from tests.functions.stack import OWNER, Stack

_BATCH = 10
_TYPE = "bench.nothing"
_OF_QUEUES = ("SendMessage", "SendMessageBatch", "ReceiveMessage", "ChangeMessageVisibilityBatch", "DeleteMessageBatch")


def counted() -> dict[str, float]:
    """Return a task's write units and requests, and the dollars per million tasks.

    Tasks are created and run in batches of ten.
    """
    with emulator.running(port=0) as engine:
        os.environ.update(engine.environ)
        REGISTRY[_TYPE] = Registered({"run": lambda _context, _payload: None})
        session = boto3.Session()
        meter = Meter(session)
        stack = Stack(Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs")), session)
        try:
            meter.reset()
            composed(TaskServices).batch_creator.create_many(OWNER, [Order(TaskSpec(_TYPE)) for _ in range(_BATCH)])
            stack.work(Priority.NORMAL)
        finally:
            composition.use(None)
    return {
        "write_units_per_task": (meter.table_units + meter.index_units) / _BATCH,
        "requests_per_task": meter.total_requests / _BATCH,
        "dollars_per_million_data_plane": round(dollars(meter) / _BATCH * MILLION, 2),
    }


def dollars(meter: Meter) -> float:
    """Return a batch's cost in dollars, without the duration charge for its only worker invocation."""
    sqs = sum(count for name, count in Counter(meter.requests).items() if name in _OF_QUEUES)
    prices = PRICES[DEFAULT_REGION]
    writes = (meter.table_units + meter.index_units) * prices.write_unit
    return writes + meter.read_units * prices.read_unit + sqs * prices.queue_request + prices.function_request
