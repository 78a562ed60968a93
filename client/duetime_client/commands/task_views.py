"""Prints tasks: the table, and the details and attempts of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.cost_views import show_estimate, shown_dollars
from duetime_client.commands.formatting import shown_error, shown_json, shown_progress, shown_state, timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.tables import Column, one_line, show_lines, show_more, show_table
from duetime_common.payload_codecs import Binary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.task import Attempt, Task, TaskCount, TaskStep

WIDE = 100
"""Minimum width, in characters, for the additional columns."""
OUTCOME_STYLES = {"succeeded": "green", "failed": "bold red", "retried": "yellow", "lost": "red"}


def show_tasks(tasks: Sequence[Task], clock: Clock, *, more: bool = False) -> None:
    """Print tasks as a table; columns that would be empty are left out."""
    now = clock.now()
    columns: list[Column[Task]] = [
        Column("id", lambda task: task.id),
        Column("state", shown_state),
        Column("due", lambda task: timed(task.due_at, clock, now, units=1)),
    ]
    if console().width >= WIDE and any(task.lateness_ms is not None for task in tasks):
        columns.append(Column("late", lambda task: _milliseconds(task.lateness_ms), right=True))
    columns.append(Column("type", lambda task: one_line(task.type), wraps=True))
    if any(task.name for task in tasks):
        columns.append(Column("name", lambda task: one_line(task.name or ""), wraps=True))
    show_table(tasks, columns, "no tasks")
    if more:
        show_more(tasks)


def show_count(found: TaskCount, _clock: Clock) -> None:
    """Print the number of tasks, and what the tasks cost so far."""
    more = "" if found.is_exact else " or more: not all tasks were examined"
    cost = f"; cost so far: {shown_dollars(found.cost_dollars)}" if found.tasks else ""
    console().print(f"{found.tasks:,}{more}{cost}", highlight=False)


def show_task(task: Task, clock: Clock, starts: str = "") -> None:
    """Print one task, with a line for each field that is set.

    Args:
        task: the task.
        clock: for times in the reader's zone.
        starts: when the task starts, if not at its due time.
    """
    now = clock.now()
    show_lines((*_identity_lines(task, starts), *_time_lines(task, clock, now), *_run_lines(task)))
    if task.estimate is not None:
        show_estimate(task.estimate)
    if task.children is not None:
        done = task.children
        asked = f"; asked {done.stopping} running to stop" if done.stopping else ""
        left = f"; left {done.running} running: --force asks them to stop" if done.running else ""
        console().print(f"cancelled {done.cancelled} of the tasks that it started{asked}{left}")


def _identity_lines(task: Task, starts: str) -> Iterator[tuple[str, str | Text | None]]:
    yield "id", task.id
    yield "state", shown_state(task)
    yield "starts", None if task.is_terminal else starts or None
    yield "type", task.type
    yield "name", task.name or None
    yield "tags", " ".join(f"{key}={value}" for key, value in task.tags.items()) or None
    yield "priority", task.priority


def _time_lines(task: Task, clock: Clock, now: datetime) -> Iterator[tuple[str, str | Text | None]]:
    """The task's known times, its worker and related objects, and the reason why it waits, if it does."""
    times = {"due": task.due_at, "created": task.created_at, "started": task.started_at, "finished": task.finished_at}
    for label, moment in times.items():
        yield label, None if moment is None else timed(moment, clock, now)
    yield "kept until", None if task.kept_until is None else f"{clock.local(task.kept_until):%Y-%m-%d %H:%M}"
    if task.lease is not None:
        held = timed(task.lease.expires_at, clock, now)
        yield "lease", Text.assemble(printable(task.lease.worker), " until ", held)
    accepted = "the target has accepted the task and will notify"
    yield "awaiting notification", accepted if task.awaiting_notification else None
    yield "job", str(task.job.get("console_url")) if task.job else None
    yield "requested", printable(task.requested_action, "yellow") if task.requested_action else None
    yield "schedule", str(task.schedule.get("name")) if task.schedule else None
    yield "parent", task.parent_task_id
    yield "group", str(task.group.get("id")) if task.group else None
    yield "after group", task.completes_group
    yield "after", _after(task)
    yield "waiting for", printable(task.waiting_for.text, "yellow") if task.waiting_for else None


def _after(task: Task) -> str | None:
    """The tasks for which a task waits or has waited."""
    names = [each if isinstance(each, str) else f"{each['schedule']}@{each['occurrence']}" for each in task.after or ()]
    return f"{', '.join(names)} ({task.trigger_rule})" if names else None


def _run_lines(task: Task) -> Iterator[tuple[str, str | Text | None]]:
    """The target, the start conditions besides the due time, the payload and the outcome."""
    for label in ("target", "lock", "rate", "unique", "debounce", "order"):
        yield label, _json(getattr(task, label))
    yield "locks", ", ".join(f"{each.get('key')} ({each.get('mode')})" for each in task.locks) or None
    expires = task.expires_seconds
    yield "expires", None if expires is None else f"{expires} s after its due time, if it has not started"
    weight = f" (weight {task.fair_weight})" if task.fair_weight > 1 else ""
    yield "fair key", None if task.fair_key is None else f"{task.fair_key}{weight}"
    yield "callback", task.callback_url
    yield "notify on", _json(task.notify_on)
    yield "payload", shown_payload(task.payload)
    of = (task.retry or {}).get("max_attempts")
    yield "attempt", (f"{task.attempt} of {of}" if of else str(task.attempt)) if task.attempt else None
    yield "progress", None if task.progress is None else shown_progress(task.progress)
    yield "late", _milliseconds(task.lateness_ms) or None
    yield "result", shown_payload(task.result)
    yield "error", printable(shown_error(task.error), "red") if task.error else None
    for name in task.content_expired:
        yield name, "expired"


def show_attempts(attempts: Sequence[Attempt], clock: Clock) -> None:
    """Print attempts as a table, oldest first, with their tracebacks; unknown values of a lost attempt are empty."""
    now = clock.now()
    columns: list[Column[Attempt]] = [
        Column("attempt", lambda each: str(each.attempt), right=True),
        Column("fence", lambda each: str(each.fence), right=True),
        Column("outcome", lambda each: printable(each.outcome, OUTCOME_STYLES.get(each.outcome, ""))),
        Column("started", lambda each: timed(each.started_at, clock, now, units=1) if each.started_at else ""),
        Column("late", lambda each: _milliseconds(each.lateness_ms), right=True),
        Column("took", lambda each: _milliseconds(each.duration_ms), right=True),
        Column("dollars", lambda each: "" if each.cost_dollars is None else f"{each.cost_dollars:.8f}", right=True),
        Column("worker", lambda each: each.worker or "", wraps=True),
    ]
    if any(attempt.function_version for attempt in attempts):
        columns.append(Column("version", lambda each: each.function_version or "", right=True))
    if any(attempt.error for attempt in attempts):
        columns.append(Column("error", _error_of, wraps=True))
    show_table(attempts, columns, "no finished attempts")
    for attempt in attempts:
        if attempt.error and attempt.error.traceback:
            console().print(f"\ntraceback of attempt {attempt.attempt}, fence {attempt.fence}", style="bold")
            for line in attempt.error.traceback.splitlines():
                console().print(printable(line), soft_wrap=True)


def show_steps(steps: Sequence[TaskStep], clock: Clock) -> None:
    """Print steps as a table, in the order in which they ended."""
    now = clock.now()
    columns: list[Column[TaskStep]] = [
        Column("step", lambda each: each.name if each.phase == "run" else f"{each.phase}: {each.name}"),
        Column("attempt", lambda each: str(each.attempt), right=True),
        Column("ended", lambda each: timed(each.finished_at, clock, now, units=1)),
        Column("took", lambda each: _milliseconds(each.duration_ms), right=True),
        Column("result", lambda each: shown_json(each.result), wraps=True),
    ]
    show_table(steps, columns, "no stored steps")


def _error_of(attempt: Attempt) -> Text:
    return printable(shown_error(attempt.error), "red")


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:g} ms"


def shown_payload(payload: object) -> Text | None:
    """A payload: JSON, or the size and the content type of bytes."""
    if isinstance(payload, Binary):
        return Text(f"{len(payload):,} bytes of {payload.content_type}")
    return _json(payload)


def _json(value: object) -> Text | None:
    return None if value is None else shown_json(value)
