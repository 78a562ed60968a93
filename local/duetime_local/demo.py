"""Runs the demo, which creates tasks for up to 300 real CI jobs and counts their executions with a receiver."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from duetime_client import NewTask, Task, TaskFields
from duetime_local import demo_receiver, demo_report
from duetime_local.demo_jobs import plan
from duetime_local.demo_schedules import Recurring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime_client import ApiError, Client
    from duetime_local.demo_jobs import PlannedTask
    from duetime_local.demo_receiver import Receiver
    from duetime_local.demo_report import Figures

TYPE = "ci.job"
"""The task type of the example handler."""
LEAD_MS = 4000
"""Milliseconds between the creation of the tasks and the first due time."""
ONE_IS_SINGLE_OF = 15
"""One in this many tasks is created with a separate request; all other tasks are created in batches."""
PATIENCE_SECONDS = 600.0
"""The number of seconds after the last due time at which a task counts as lost; even a busy machine needs less."""
LOOK_SECONDS = 0.1


class TasksRejected(RuntimeError):
    """The API rejected some of the demo's tasks."""

    def __init__(self, refused: Sequence[ApiError], asked: int) -> None:
        super().__init__(f"{len(refused)} of {asked} tasks were rejected, the first with: {refused[0]}")


@dataclass(frozen=True, slots=True)
class Progress:
    """The demo's progress, as numbers of tasks."""

    accepted: int
    due: int
    succeeded: int
    retried: int


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo's number of tasks, the time span of their due times, and the time when the user started the command."""

    count: int = 300
    spread_ms: int = 30_000
    began_ms: int = 0

    def run(self, client: Client, show: Callable[[Progress], None]) -> Figures:
        """Create the tasks, wait until they have run, and count their executions.

        Raises:
            TasksRejected: The API did not accept all tasks.
        """
        run_id = uuid4().hex[:12]
        with demo_receiver.receiving() as counter:
            recurring = Recurring.begin(client, counter, run_id, _now_ms() + LEAD_MS, self.spread_ms)
            due_ms = self._create(client, counter, run_id)
            states = _watch(client, counter, run_id, due_ms, show)
            # The schedules end when the last tasks are due, so this rarely waits.
            repeated = recurring.figures(client, counter, PATIENCE_SECONDS)
            counted = demo_report.count(due_ms, counter.executions, states, self.began_ms or min(due_ms.values()))
            return replace(counted, recurring=repeated)

    def _create(self, client: Client, counter: Receiver, run_id: str) -> dict[str, int]:
        """Create all tasks, and return their due times by task id."""
        planned = plan(self.count, self.spread_ms)
        start_ms = _now_ms() + LEAD_MS
        singles = planned[::ONE_IS_SINGLE_OF]
        others = [task for index, task in enumerate(planned) if index % ONE_IS_SINGLE_OF]
        created = [
            *(client.tasks.create(TYPE, **_fields(task, start_ms, counter, run_id)) for task in singles),
            *client.tasks.create_batch(
                NewTask(type=TYPE, **_fields(task, start_ms, counter, run_id)) for task in others
            ),
        ]
        refused = [result for result in created if not isinstance(result, Task)]
        if refused:
            raise TasksRejected(refused, len(planned))
        accepted = (result for result in created if isinstance(result, Task))
        due = (start_ms + task.offset_ms for task in (*singles, *others))
        return {task.id: due_ms for task, due_ms in zip(accepted, due, strict=True)}


def _fields(task: PlannedTask, start_ms: int, counter: Receiver, run_id: str) -> TaskFields:
    payload = {"job": task.job, "work_ms": task.work_ms, "fail_times": task.fail_times}
    fields = TaskFields(
        name=task.job,
        due_at=datetime.fromtimestamp((start_ms + task.offset_ms) / 1000, UTC),
        tags={"demo": run_id},
        payload=payload if task.over_http else {**payload, "report_url": counter.report_url},
    )
    if task.over_http:
        fields["target"] = {"kind": "http", "url": counter.run_url}
    return fields


def _watch(
    client: Client, counter: Receiver, run_id: str, due_ms: dict[str, int], show: Callable[[Progress], None]
) -> dict[str, str]:
    """Show progress until every task has an outcome or the time is up, and return the states by task id."""
    give_up_ms = max(due_ms.values()) + PATIENCE_SECONDS * 1000
    for progress in _looks(counter, due_ms):
        show(progress)
        if progress.succeeded == len(due_ms) or _now_ms() > give_up_ms:
            break
    states: dict[str, str] = {}
    while True:
        states = {task.id: task.state for task in client.tasks.list(tags={"demo": run_id})}
        open_tasks = [task_id for task_id in due_ms if states.get(task_id) not in demo_report.OUTCOMES]
        if not open_tasks or _now_ms() > give_up_ms:
            return states
        time.sleep(LOOK_SECONDS)


def _looks(counter: Receiver, due_ms: dict[str, int]) -> Iterator[Progress]:
    while True:
        seen = counter.executions
        succeeded = {one.task_id for one in seen if one.succeeded}
        now_ms = _now_ms()
        yield Progress(
            accepted=len(due_ms),
            due=sum(due <= now_ms for due in due_ms.values()),
            succeeded=len(succeeded & due_ms.keys()),
            retried=len({one.task_id for one in seen if one.attempt > 1}),
        )
        time.sleep(LOOK_SECONDS)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
