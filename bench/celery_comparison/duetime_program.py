"""Creates tasks with duetime's API function, runs them in its worker function, and prints the CPU seconds.

The code that calls the functions replaces API Gateway and Lambda's poller, and its CPU time is included.
Usage: python -m bench.celery_comparison.duetime_program COUNT A_REQUEST
"""

from __future__ import annotations

import json
import sys
import time

import boto3

from duetime.domain.tasks.task_options import Priority
from duetime.handlers import REGISTRY, Registered
from tests.adapters.clouds import Cloud
from tests.functions.api.gateway import Gateway
from tests.functions.stack import Stack

_TYPE = "bench.nothing"


def main() -> None:
    """Create, run, print."""
    count, together = int(sys.argv[1]), int(sys.argv[2])
    REGISTRY[_TYPE] = Registered({"run": lambda _context, _payload: None})
    session = boto3.Session()
    cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
    stack, gateway = Stack(cloud, None), Gateway()
    began, clock = time.process_time(), time.perf_counter()
    for first in range(0, count, together):
        tasks = [{"type": _TYPE, "payload": {"n": first + number}} for number in range(together)]
        path, body = ("/v1/tasks/batch", {"tasks": tasks}) if together > 1 else ("/v1/tasks", tasks[0])
        gateway.send("POST", path, body)
    sent = time.process_time()
    ended = 0
    while (event := stack.receive(Priority.NORMAL))["Records"]:
        ended += len(event["Records"]) - len(stack.run(Priority.NORMAL, event))
    cpu = time.process_time() - began
    figures = {"sent": sent - began, "cpu": cpu, "wall": time.perf_counter() - clock, "ended": ended}
    sys.stderr.write(f"\n{json.dumps(figures)}\n")


if __name__ == "__main__":
    main()
