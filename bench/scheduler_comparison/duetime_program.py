"""Measures duetime on a local stack that is started for the comparison, using the start times in task results."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console

from bench.lateness import WARM_TASKS, run_tasks
from bench.scheduler_comparison.scheduled_tasks import Outcome, Progress, processor_seconds, read_plan, send
from duetime_client import Client
from duetime_local import stack
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scheduler_comparison.scheduled_tasks import Plan
    from duetime_client import Task


def main() -> None:
    """Carry out the plan."""
    plan = read_plan()
    with stack.running(Display(Console(quiet=True)), port=0) as running, Client(running.ready.api_url) as client:
        run_tasks(client, [timedelta()] * WARM_TASKS)
        for case, offsets in plan.cases.items():
            send(Progress(case, 0))
            outcome = _outcome(client, case, offsets, plan)
            send(Progress(case, len(offsets) - outcome.started_ms.count(None)))
            send(outcome)


def _outcome(client: Client, case: str, offsets: Sequence[int], plan: Plan) -> Outcome:
    before = processor_seconds()
    tasks = run_tasks(client, [timedelta(milliseconds=offset) for offset in offsets], plan.ahead_seconds)
    seconds = round(processor_seconds() - before, 2)
    due_ms = [round(1_000 * task.due_at.timestamp()) for task in tasks]
    return Outcome(case, due_ms, [_started_ms(client, task) for task in tasks], seconds)


def _started_ms(client: Client, task: Task) -> int | None:
    """Return the time when the handler started, which the handler reports in the task's result."""
    result = client.tasks.get(task.id).result if task.is_terminal else None
    return int(result["started_at_ms"]) if isinstance(result, dict) else None


if __name__ == "__main__":
    main()
