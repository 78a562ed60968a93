"""Sends tasks with Celery, runs them in one worker, and prints the CPU seconds; runs in Celery's own environment.

Usage: python celery_program.py PORT COUNT
"""

import contextlib
import json
import logging
import sys
import time

from celery import Celery
from celery.exceptions import WorkerShutdown
from celery.signals import task_postrun
from celery.worker import state

REGION = "us-east-1"
PORT, COUNT = int(sys.argv[1]), int(sys.argv[2])
app = Celery(
    "bench",
    broker=f"sqs://key:secret@127.0.0.1:{PORT}//",
    backend=f"dynamodb://key:secret@localhost:{PORT}/celery_results",
)
# As in duetime, a message is deleted only after its task has ended, so that a crash does not lose the task.
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=10,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    broker_transport_options={"region": REGION, "is_secure": False, "visibility_timeout": 60},
)
ended: list[object] = []


@app.task(name="nothing")
def nothing(payload: object) -> None:
    """Do nothing."""


@task_postrun.connect
def count(task_id: str, **_: object) -> None:
    """Stop the worker after the last task."""
    ended.append(task_id)
    if len(ended) == COUNT:
        state.should_stop = 0


def main() -> None:
    """Send, run, print."""
    logging.disable(logging.WARNING)
    began, clock = time.process_time(), time.perf_counter()
    for number in range(COUNT):
        nothing.delay({"n": number})
    sent = time.process_time()
    worker = app.Worker(pool="solo", concurrency=1, without_gossip=True, without_mingle=True, without_heartbeat=True)
    with contextlib.suppress(SystemExit, WorkerShutdown):
        worker.start()
    cpu = time.process_time() - began
    figures = {"sent": sent - began, "cpu": cpu, "wall": time.perf_counter() - clock, "ended": len(ended)}
    sys.stderr.write(f"\n{json.dumps(figures)}\n")


main()
