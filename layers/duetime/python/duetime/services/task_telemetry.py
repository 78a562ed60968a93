"""Records spans and metrics of tasks: creation, dispatch, starts, waits, ends of attempts, and schedule expansions.

Span attributes follow OpenTelemetry's semantic conventions for messaging (1.44, in development). An attempt's span
links to the span of the task's creation instead of being its child, because the attempt may begin days later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied
from duetime.domain.tasks.attempt_results import Failed
from duetime.domain.tasks.attempt_run import Run
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import CallbackTarget
from duetime.domain.tasks.wait_reasons import wait_reason
from duetime.ports.runtime import Span, SpanKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.attempt_results import Ending, Postponed
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import OpenSpan, Runtime, Telemetry


MESSAGE_ID = "messaging.message.id"
_SYSTEM, _OPERATION, _TYPE = "messaging.system", "messaging.operation.name", "messaging.operation.type"
_DESTINATION = "messaging.destination.name"
_FAILED = frozenset({State.FAILED, State.ROLLING_BACK})
_MOST_LINKS = 128
"""Source: OpenTelemetry SDK specification, default of OTEL_SPAN_LINK_COUNT_LIMIT."""


def creation_span(task_type: str, requested_in: str | None) -> Span:
    """A span for the creation of a task, within the trace of its request."""
    attributes = {_SYSTEM: "duetime", _OPERATION: "create", _TYPE: "create", _DESTINATION: task_type}
    return Span(f"create {task_type}", SpanKind.PRODUCER, attributes, parent=requested_in)


def expansion_span(schedules: int) -> Span:
    """A span in which one tick of the trigger creates the runs of the given number of schedules."""
    return Span("expand schedules", SpanKind.INTERNAL, {"duetime.schedules": schedules}, begins_trace=True)


def run_span(task_type: str, schedule: str, links: Sequence[str | None], requested_in: str | None) -> Span:
    """A span for the creation of a schedule's run.

    The span begins a separate trace, so that each run is sampled on its own; a manual run joins its request's trace.

    Args:
        task_type: type of the run's task.
        schedule: name of the schedule.
        links: links to the tick that creates the run, and to the creation of the schedule.
        requested_in: trace context of the request for a manual run.
    """
    attributes = {_SYSTEM: "duetime", _OPERATION: "create", _TYPE: "create", _DESTINATION: task_type}
    attributes["duetime.schedule.name"] = schedule
    return Span(f"create {task_type}", SpanKind.PRODUCER, attributes, links, requested_in, begins_trace=True)


def dispatch_span(messages: Sequence[Message]) -> Span:
    """A span for sending due tasks to their queues, with links to the creation of each task."""
    links = [message.traceparent for message in messages if message.traceparent][:_MOST_LINKS]
    attributes: dict[str, str | int] = {_SYSTEM: "aws_sqs", _OPERATION: "send", _TYPE: "send"}
    return Span("send tasks", SpanKind.PRODUCER, {**attributes, "messaging.batch.message_count": len(messages)}, links)


def attempt_span(task: Task) -> Span:
    """A span for an attempt of a task, with a link to the task's creation."""
    attributes: dict[str, str | int] = {_SYSTEM: "duetime", _OPERATION: "process", _TYPE: "process"}
    attributes |= {_DESTINATION: task.type, MESSAGE_ID: task.id.text, "faas.trigger": "pubsub"}
    attributes |= {"duetime.task.attempt": task.attempt, "duetime.task.fence": task.fence}
    return Span(f"process {task.type}", SpanKind.CONSUMER, attributes, [task.traceparent])


def note_end(span: OpenSpan, end: WriteResult) -> None:
    """Record in an attempt's span the state of the task after the attempt, and the error of a failure."""
    if isinstance(end, Applied):
        task = end.task
        has_failed = task.state in _FAILED or (task.state is State.WAITING and task.waiting_for is None)
        error = task.error.type if task.error and has_failed else ""
        span.end_with({"duetime.task.state": task.state.value}, error)


RETRY, QUEUE, LEASE = "retry", "queue", "lease"
"""Names for waits that no gate causes; other waits are named by the code of the gate's wait reason."""


def count_start(telemetry: Telemetry, task: Task, started: Millis) -> None:
    """Count the start of an attempt.

    Args:
        telemetry: receives the metrics.
        task: the claimed record.
        started: start of the attempt.
    """
    telemetry.measure("lateness", max(0, started - task.next_at), type=task.type)


def count_claim(telemetry: Telemetry, task: Task, received: Millis) -> None:
    """Count the claim of a task.

    Args:
        telemetry: receives the metrics.
        task: the claimed record.
        received: when the task's message arrived, possibly before the due time.
    """
    lost = len(Run(task, received, received).history_before) - len(task.attempt_history)
    telemetry.count("attempts_lost", lost)
    if (waited := received - task.next_at) > 0:
        telemetry.measure("wait", waited, gate=LEASE if lost else QUEUE)


def count_version(telemetry: Telemetry, executed: str, ending: Ending) -> None:
    """Count an attempt that called a handler, by the function version that ran it.

    Args:
        telemetry: receives the metrics.
        executed: name and version of the Lambda function, as `name:version`.
        ending: the end of the attempt.
    """
    telemetry.count("version_attempts", version=executed)
    telemetry.count("version_failures", int(isinstance(ending, Failed)), version=executed)


def count_postponed(runtime: Runtime, held: Postponed) -> None:
    """Count a check that found that a task cannot start yet."""
    runtime.telemetry.count("tasks_postponed")
    _measure_wait(runtime, held.until, wait_reason(held.reason))


def count_retry(runtime: Runtime, at: Millis) -> None:
    """Count a retry that is scheduled for the given time."""
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
