"""Metrics of starts, waits and ends of attempts, for all kinds of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import ON_TIME
from duetime.domain.tasks.attempt_run import Run
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import CallbackTarget
from duetime.domain.tasks.wait_reasons import wait_reason

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Postponed
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime, Telemetry

RETRY, QUEUE, LEASE = "retry", "queue", "lease"
"""Waits of tasks that no gate holds back; the other gates are named by the codes of wait reasons."""


def count_start(telemetry: Telemetry, task: Task, started: Millis) -> None:
    """Count the start of an attempt.

    Args:
        telemetry: receives the metrics.
        task: the claimed record.
        started: start of the attempt.
    """
    late = max(0, started - task.next_at)
    telemetry.measure("lateness", late, type=task.type)
    telemetry.count("started_on_time", int(late <= ON_TIME))


def count_claim(telemetry: Telemetry, task: Task, received: Millis) -> None:
    """Count the claim of a task.

    Args:
        telemetry: receives the metrics.
        task: the claimed record.
        received: when its message arrived, possibly before its due time.
    """
    lost = len(Run(task, received, received).history_before) - len(task.attempt_history)
    telemetry.count("attempts_lost", lost)
    if (waited := received - task.next_at) > 0:
        telemetry.measure("wait", waited, gate=LEASE if lost else QUEUE)


def count_postponed(runtime: Runtime, held: Postponed) -> None:
    """Count a check that found that the task cannot start yet."""
    runtime.telemetry.count("tasks_postponed")
    _measure_wait(runtime, held.until, wait_reason(held.reason))


def count_retry(runtime: Runtime, at: Millis) -> None:
    """Count an attempt scheduled for the given time."""
    runtime.telemetry.count("tasks_retried")
    _measure_wait(runtime, at, RETRY)


def count_outcome(telemetry: Telemetry, task: Task) -> None:
    """Count the outcome of a task."""
    if task.state is State.FAILED:
        telemetry.count("tasks_failed", owner=task.owner)
        telemetry.count("callbacks_failed", int(isinstance(task.target, CallbackTarget)))
    else:
        telemetry.count(f"tasks_{task.state}")


def _measure_wait(runtime: Runtime, until: Millis, gate: str) -> None:
    runtime.telemetry.measure("wait", max(0, until - runtime.now()), gate=gate)
