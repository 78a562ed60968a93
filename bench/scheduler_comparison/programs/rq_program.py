"""Measures RQ, with tasks created by `enqueue_at` and a worker that runs the built-in scheduler."""

import scheduled_tasks
import server_processes
from redis import Redis
from rq import Queue


def main() -> None:
    """Start Redis and a worker, and measure the tasks."""
    with server_processes.redis_server() as address:
        worker = (server_processes.installed("rq"), "worker", "--with-scheduler", "--quiet", "--url", address)
        queue = Queue(connection=Redis.from_url(address))

        def create(tasks):
            for number, due in tasks:
                queue.enqueue_at(due, "scheduled_tasks.note", number)

        with server_processes.running(*worker):
            scheduled_tasks.measure(create)


if __name__ == "__main__":
    main()
