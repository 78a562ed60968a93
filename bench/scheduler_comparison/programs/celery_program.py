"""Measures Celery with `eta` tasks, which are stored in Redis until the worker loads them into its memory."""

import os

import scheduled_tasks
import server_processes
from celery import Celery

BROKER = "COMPARISON_BROKER"
app = Celery("comparison", broker=os.environ.get(BROKER))


@app.task(name="note")
def note(number: int) -> None:
    """Record the start."""
    scheduled_tasks.note(number)


def main() -> None:
    """Start Redis and a worker with one process, and measure the tasks."""
    worker = (server_processes.installed("celery"), "-A", "celery_program", "worker", "--concurrency", "1")
    with (
        server_processes.redis_server() as address,
        server_processes.running(*worker, "--loglevel", "ERROR", **{BROKER: address}),
    ):
        app.conf.broker_url = address

        def create(tasks):
            for number, due in tasks:
                note.apply_async((number,), eta=due)

        scheduled_tasks.measure(create)


if __name__ == "__main__":
    main()
