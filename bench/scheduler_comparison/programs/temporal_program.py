"""Measures Temporal, with delayed workflows on its in-memory development server."""

import asyncio
import sys
from datetime import UTC, datetime

import scheduled_tasks
import server_processes
from temporal_workflow import QUEUE, Task
from temporalio.client import Client

_AT_ONCE = 10


async def _create(address, tasks) -> None:
    client = await Client.connect(address)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def start(number, due) -> None:
        async with limit:
            delay = due - datetime.now(UTC)
            await client.start_workflow(Task.run, number, id=str(number), task_queue=QUEUE, start_delay=delay)

    await asyncio.gather(*(start(number, due) for number, due in tasks))


def main() -> None:
    """Start the server and a worker, and measure the workflows."""
    port = server_processes.free_port()
    address = f"127.0.0.1:{port}"
    server = (server_processes.installed("temporal"), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port))
    worker = (sys.executable, "temporal_workflow.py", address)
    # Without this setting, the server would check the internet for a newer version.
    alone = {"TEMPORAL_VERSION_CHECK_DISABLED": "1"}
    with server_processes.running(*server, "--headless", "--log-level", "error", **alone):
        server_processes.wait_for(port)
        with server_processes.running(*worker):
            scheduled_tasks.measure(lambda tasks: asyncio.run(_create(address, tasks)))


if __name__ == "__main__":
    main()
