"""The detail view of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.cost_views import show_estimate
from duetime_client.commands.formatting import shown_json, shown_progress, shown_state, timed
from duetime_client.commands.output_streams import console, printable, show_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.task import Task


def show(task: Task, clock: Clock, *, as_json: bool, starts: str = "") -> None:
    """Print one task as a detail view or as JSON.

    Args:
        task: the task.
        clock: for times in the reader's zone.
        as_json: whether to print the API's JSON.
        starts: when it starts, if not at its due time.
    """
    if as_json:
        show_json(task.document)
    else:
        show_task(task, clock, starts)
        if task.estimate is not None:
            show_estimate(task.estimate)


def show_task(task: Task, clock: Clock, starts: str = "") -> None:
    """Print one task, a line for each field that is set."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in lines(task, clock):
        grid.add_row(label, value)
        if label == "state" and starts and not task.is_terminal:
            grid.add_row("starts", Text(starts))
    console().print(grid)


def lines(task: Task, clock: Clock) -> Iterator[tuple[str, Text]]:
    """The lines of one task's detail view."""
    yield "id", Text(task.id)
    yield "state", shown_state(task)
    yield "type", printable(task.type)
    if task.name:
        yield "name", printable(task.name)
    if task.tags:
        yield "tags", printable(" ".join(f"{key}={value}" for key, value in task.tags.items()))
    yield "priority", printable(task.priority)
    now = clock.now()
    for label, moment in moments(task):
        yield label, timed(moment, clock, now)
    yield from lease_lines(task, clock, now)
    yield from run_lines(task)
    for name in task.content_expired:
        yield name, Text("expired")


def moments(task: Task) -> Iterator[tuple[str, datetime]]:
    """The times of a task that are known."""
    yield "due", task.due_at
    yield "created", task.created_at
    if task.started_at:
        yield "started", task.started_at
    if task.finished_at:
        yield "finished", task.finished_at


def lease_lines(task: Task, clock: Clock, now: datetime) -> Iterator[tuple[str, Text]]:
    """Lines for the worker of a task, the requested action, and what the task waits for."""
    if task.lease is not None:
        held = timed(task.lease.expires_at, clock, now)
        yield "lease", Text.assemble(printable(task.lease.worker), " until ", held)
    if task.awaiting_notification:
        yield "awaiting notification", Text("the target has accepted the task and will notify")
    if task.job:
        yield "job", printable(str(task.job.get("console_url")))
    if task.requested_action:
        yield "requested", printable(task.requested_action, "yellow")
    if task.schedule:
        yield "schedule", printable(str(task.schedule.get("name")))
    if task.waiting_for:
        yield "waiting for", printable(task.waiting_for.text, "yellow")


def address_lines(task: Task) -> Iterator[tuple[str, Text]]:
    """Lines for the addresses that a task notifies."""
    if task.callback_url is not None:
        yield "callback", printable(task.callback_url)
    if task.notify_on is not None:
        yield "notify on", shown_json(task.notify_on)


def start_lines(task: Task) -> Iterator[tuple[str, Text]]:
    """Lines for everything but the due time that decides when a task starts."""
    if task.lock is not None:
        yield "lock", shown_json(task.lock)
    if task.rate is not None:
        yield "rate", shown_json(task.rate)
    if task.unique is not None:
        yield "unique", shown_json(task.unique)
    if task.debounce is not None:
        yield "debounce", shown_json(task.debounce)
    if task.expires_seconds is not None:
        yield "expires", Text(f"{task.expires_seconds} s after its due time, if it has not started")


def run_lines(task: Task) -> Iterator[tuple[str, Text]]:
    """Lines for the target, payload and outcome of a task."""
    if task.target is not None:
        yield "target", shown_json(task.target)
    yield from start_lines(task)
    yield from address_lines(task)
    if task.payload is not None:
        yield "payload", shown_json(task.payload)
    if task.attempt:
        of = (task.retry or {}).get("max_attempts")
        yield "attempt", Text(f"{task.attempt} of {of}" if of else str(task.attempt))
    if task.progress is not None:
        yield "progress", printable(shown_progress(task.progress))
    if task.lateness_ms is not None:
        yield "late", Text(f"{task.lateness_ms:g} ms")
    if task.result is not None:
        yield "result", shown_json(task.result)
    if task.error is not None:
        yield "error", printable(f"{task.error.type}: {task.error.message}".removeprefix(": "), "red")
