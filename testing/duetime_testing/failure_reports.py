"""Formats a failed assertion's report, which lists executed and unfinished tasks, skipped occurrences, and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duetime_client import Client
    from duetime_client.schedule_models import ScheduleRun
    from duetime_client.task import Task

_MOST = 20
_NOT_RUN = frozenset({"skipped", "missed"})


def skipped_runs(client: Client, schedule: str) -> list[ScheduleRun]:
    """The occurrences of a schedule that did not run, oldest first."""
    runs = [each for each in client.schedules.list_runs(schedule) if each.status in _NOT_RUN]
    return sorted(runs, key=lambda each: each.scheduled_at)


def report(client: Client, now: object, executions: Sequence[object], errors: Sequence[str]) -> str:
    """Return a string with everything that could explain a failed assertion."""
    lines = [f"It is {now}."]
    lines += _section("What ran", executions, "Nothing ran.")
    lines += _section("Tasks that are not finished", _read(lambda: [_task_line(each) for each in _unfinished(client)]))
    lines += _section("Occurrences that did not run", _read(lambda: _skip_lines(client)))
    lines += _section("Errors of functions", errors)
    return "\n".join(lines)


def _read(lines: Callable[[], list[str]]) -> list[str]:
    """Read lines from the API.

    If that fails, return the error as a line, so that the error does not hide the failed assertion.
    """
    try:
        return lines()
    except ClientError as error:
        return [f"unknown: {error}"]


def _unfinished(client: Client) -> list[Task]:
    return [task for task in client.tasks.list() if task.finished_at is None]


def _task_line(task: Task) -> str:
    waits = f", waits for {task.waiting_for.text}" if task.waiting_for else ""
    error = f", last error {task.error.type}: {task.error.message}" if task.error else ""
    return f"{task.type} {task.state}, due {task.due_at.isoformat()}{waits}{error}  (task {task.id})"


def _skip_lines(client: Client) -> list[str]:
    return [
        f"{schedule.name}: {run.local_time} {run.status}: {run.reason}"
        for schedule in client.schedules.list()
        for run in skipped_runs(client, schedule.name)
    ]


def _section(title: str, entries: Iterable[object], otherwise: str = "") -> list[str]:
    lines = [f"  {each}" for each in entries]
    if not lines:
        return [otherwise] if otherwise else []
    more = [f"  and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return [f"{title}:", *lines[:_MOST], *more]
