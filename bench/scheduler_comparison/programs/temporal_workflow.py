"""Defines Temporal's workflow and activity, and runs a worker: `python temporal_workflow.py ADDRESS`."""

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    import scheduled_tasks

QUEUE = "comparison"


@activity.defn
async def note(number: int) -> None:
    """Record the start."""
    scheduled_tasks.note(number)


@workflow.defn
class Task:
    """A workflow with one activity, which does the work, because workflows must not have side effects."""

    @workflow.run
    async def run(self, number: int) -> None:
        """Run the workflow's activity."""
        await workflow.execute_activity(note, number, start_to_close_timeout=timedelta(seconds=30))


async def work(address: str) -> None:
    """Run workflows and activities until the process is terminated."""
    client = await Client.connect(address)
    await Worker(client, task_queue=QUEUE, workflows=[Task], activities=[note]).run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
