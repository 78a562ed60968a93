"""Measures Huey with `eta` tasks in Redis or SQLite, and passes all other arguments to the consumer.

Usage: python huey_program.py redis|sqlite [OPTION …]
"""

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import scheduled_tasks
import server_processes


def main() -> None:
    """Start a consumer, and measure the tasks."""
    kind, *options = sys.argv[1:]
    with ExitStack() as context:
        if kind == "redis":
            storage = context.enter_context(server_processes.redis_server())
        else:
            storage = str(Path(context.enter_context(tempfile.TemporaryDirectory())) / "huey.db")
        os.environ["COMPARISON_STORAGE"] = storage
        # The module reads the environment variables when it is imported.
        from huey_tasks import note

        consumer = (sys.executable, "-m", "huey.bin.huey_consumer", "huey_tasks.huey", "--quiet")
        context.enter_context(server_processes.running(*consumer, *options))

        def create(tasks):
            for number, due in tasks:
                note.schedule(args=(number,), eta=due)

        scheduled_tasks.measure(create)


if __name__ == "__main__":
    main()
