"""The REST API for explanations of why a task waits or was late, and why a schedule did not run at a given time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.http.timestamps import instant_of
from duetime.contract.mapping import response_of
from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.fields import TIME_SCHEMA
from duetime.contract.tasks.responses import Instant, TaskErrorResponse
from duetime.domain.callers import Role
from duetime.domain.explanations.gate import (
    EarlierTasks,
    GateName,
    GateState,
    HeldLock,
    HoldingSchedule,
    LeasedBy,
    NextAttempt,
    OnQueue,
    OpenCircuit,
    OtherTasks,
    SetSwitch,
    SpentRate,
)
from duetime.domain.explanations.schedule_explanation import OccurrenceOutcome
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.switches import SwitchScope
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import LockMode
from duetime.domain.times import Millis, to_iso

if TYPE_CHECKING:
    from duetime.domain.explanations.gate import Blocker, Gate, OtherTask
    from duetime.domain.explanations.schedule_explanation import ScheduleExplanation
    from duetime.domain.explanations.task_explanation import StartPreview, TaskExplanation


class WaitedTaskResponse(TypedDict):
    """Another task that a task waits for."""

    task_id: str
    state: State
    node: Annotated[str | None, Field(description="Name of the node; null if the task is not a node.")]
    since: Annotated[
        Instant | None,
        Field(
            description="Approximate start of the current or last attempt; null if there is no attempt or the start "
            "is unknown."
        ),
    ]
    expires_at: Annotated[
        Instant | None,
        Field(description="When the task loses the lock unless a heartbeat renews it; null if it holds no lock."),
    ]


class WaitedLockResponse(TypedDict):
    """A lock that other tasks hold."""

    key: str
    mode: Annotated[LockMode, Field(description="The mode in which the task needs the lock.")]
    max_holders: Annotated[int, Field(description="Maximum number of simultaneous holders.")]
    holders: Annotated[Sequence[WaitedTaskResponse], Field(description="The tasks that hold the lock.")]
    position: Annotated[
        int | None,
        Field(description="Position in the queue, starting at 1; null if the task is not in the queue or is far back."),
    ]


class WaitedOrderResponse(TypedDict):
    """The queue for the task's ordered key."""

    key: str
    position: Annotated[
        int | None,
        Field(
            description="Position in the queue, where 1 is the first task that has not ended; null if the task is far "
            "back."
        ),
    ]
    tasks: Annotated[
        Sequence[WaitedTaskResponse],
        Field(description="The task that must end first, and the task directly before this task."),
    ]
    is_stopped: Annotated[
        bool,
        Field(description="Whether the first task has failed and blocks the queue. If so, retry or delete that task."),
    ]


class WaitedRateResponse(TypedDict):
    """A rate that is paused or used up."""

    key: str
    limit: Annotated[int, Field(description="The limit in force.")]
    per_seconds: int
    burst: int
    is_pinned: Annotated[bool, Field(description="Whether the limit is pinned, and replaces the task's own limit.")]
    paused_at: Annotated[Instant | None, Field(description="When the rate was paused; null if it is not paused.")]


class WaitedSwitchResponse(TypedDict):
    """A switch that stops the task, or limits how many tasks run."""

    scope: SwitchScope
    name: Annotated[str, Field(description="Name of the type or the owner; `all` for all tasks.")]
    stopped: Annotated[bool, Field(description="Whether the switch stops tasks from starting.")]
    max_concurrent: Annotated[
        int | None, Field(description="Maximum number of tasks that run at once; null for no limit.")
    ]
    running: Annotated[
        int | None,
        Field(description="Tasks that currently count towards the limit; null for a switch that stops tasks."),
    ]
    position: Annotated[int | None, Field(description="Position in the queue, starting at 1; null if unknown.")]
    reason: str | None
    updated_at: Annotated[Instant, Field(description="When the switch was set.")]
    updated_by: Annotated[str | None, Field(description="Who set the switch.")]


class WaitedCircuitResponse(TypedDict):
    """The circuit breaker of a host that kept failing."""

    host: str
    opened_at: Annotated[Instant, Field(description="When the circuit opened; failed tests do not change this time.")]
    open_until: Annotated[Instant, Field(description="When a single call will test whether the host works again.")]
    reason: Annotated[str | None, Field(description="The latest failure.")]


class WaitedScheduleResponse(TypedDict):
    """The schedule of a run that is no longer allowed to start."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    state: ScheduleState
    reason: Annotated[
        str | None, Field(description="Why the schedule is paused; null if it is not paused, or no reason was given.")
    ]
    since: Annotated[Instant, Field(description="When the schedule was last changed, paused or resumed.")]


class WaitedLeaseResponse(TypedDict):
    """The lease of the task's current or last worker."""

    worker: str
    expires_at: Instant
    heartbeat_at: Annotated[
        Instant | None, Field(description="Approximate time of the last renewal by the worker; null if unknown.")
    ]


class WaitedRetryResponse(TypedDict):
    """The next attempt after a failed attempt."""

    attempt: Annotated[int, Field(description="Number of the next attempt.")]
    max_attempts: Annotated[int, Field(description="Attempts that the retry policy allows.")]
    error: Annotated[TaskErrorResponse | None, Field(description="Why the last attempt failed.")]
    function_version: Annotated[
        str | None, Field(description="Version of the Lambda function that ran the last attempt; null if unknown.")
    ]


class WaitedQueueResponse(TypedDict):
    """The queue that a due task is on."""

    name: Annotated[str, Field(description="Name of the queue: a priority, or a type that pull workers lease.")]
    is_pulled: Annotated[bool, Field(description="Whether pull workers lease tasks from the queue.")]
    sent_again_at: Annotated[
        Instant, Field(description="Latest time at which a lost message of the task is sent again.")
    ]


class WaitsForResponse(TypedDict):
    """Why a task waits at a gate, as structured data. At most one field is not null."""

    lock: Annotated[WaitedLockResponse | None, Field(description="The lock that other tasks hold.")]
    order: Annotated[WaitedOrderResponse | None, Field(description="The queue for the task's ordered key.")]
    rate: Annotated[WaitedRateResponse | None, Field(description="The rate that is paused or used up.")]
    switch: Annotated[WaitedSwitchResponse | None, Field(description="The switch that stops or limits the task.")]
    circuit: Annotated[
        WaitedCircuitResponse | None, Field(description="The circuit breaker of the host that the task calls.")
    ]
    schedule: Annotated[
        WaitedScheduleResponse | None, Field(description="The schedule that prevents the task from running.")
    ]
    tasks: Annotated[
        Sequence[WaitedTaskResponse] | None,
        Field(description="Other tasks: parents, nodes, or earlier runs of the schedule."),
    ]
    lease: Annotated[WaitedLeaseResponse | None, Field(description="The lease of the worker that has the task.")]
    retry: Annotated[WaitedRetryResponse | None, Field(description="The next attempt.")]
    queue: Annotated[WaitedQueueResponse | None, Field(description="The queue that the task is on.")]


class GateResponse(TypedDict):
    """One stage in a task's life at which the task may wait."""

    name: GateName
    state: GateState
    text: Annotated[str, Field(description="Description in words.")]
    since: Annotated[
        Instant | None, Field(description="When the task reached the gate; null if the task has not reached it yet.")
    ]
    until: Annotated[
        Instant | None,
        Field(
            description="When the task passed the gate. While the task waits, the latest time at which it passes the "
            "gate or is checked again. Null if unknown."
        ),
    ]
    duration_ms: Annotated[
        int | None,
        Field(
            description=(
                "How long the task was at the gate, or has been there so far; null if the task has not reached the "
                "gate yet."
            )
        ),
    ]
    waits_for: Annotated[
        WaitsForResponse | None,
        Field(description="What blocks the task at the gate; null if nothing specific blocks it."),
    ]


class TaskExplanationResponse(TypedDict):
    """Why a task has not run yet, or how it spent its time."""

    task_id: str
    state: State
    as_of: Annotated[Instant, Field(description="Time of this answer.")]
    text: Annotated[str, Field(description="The answer in words.")]
    since: Annotated[Instant, Field(description="The task's creation or due time, whichever is earlier.")]
    due_at: Instant
    until: Annotated[Instant, Field(description="The task's end; `as_of` while it has not ended.")]
    total_ms: Annotated[
        int, Field(description="Time from `since` to `until`, which is exactly the sum of `duration_ms` of all gates.")
    ]
    overdue_ms: Annotated[int, Field(description="The part of `total_ms` that lies after the due time.")]
    gates: Annotated[
        Sequence[GateResponse],
        Field(
            description="The gates that the task has passed, in order; then the current gate; then other gates that "
            "would prevent the task from starting now."
        ),
    ]
    steps: Annotated[
        Sequence[str],
        Field(description="Names of the handler's completed steps, which the next attempt does not repeat."),
    ]


class ScheduleExplanationResponse(TypedDict):
    """Why a schedule did or did not run at a given time."""

    schedule: Annotated[str, Field(description="Name of the schedule.")]
    at: Annotated[Instant, Field(description="The time in question. The default is the latest past occurrence.")]
    outcome: OccurrenceOutcome
    text: Annotated[str, Field(description="The answer in words.")]
    scheduled_at: Annotated[Instant | None, Field(description="The occurrence at that time; null if there is none.")]
    local_time: Annotated[
        str | None, Field(description="Local time of the occurrence, with its offset; null if there is none.")
    ]
    due_at: Annotated[
        Instant | None,
        Field(
            description="When the occurrence is due, including jitter; null if there is no occurrence or it does not "
            "run."
        ),
    ]
    task_id: Annotated[
        str | None, Field(description="The occurrence's task, which has its own explanation; null if there is none.")
    ]
    state: Annotated[State | None, Field(description="State of the task; null if there is none.")]
    error: Annotated[
        TaskErrorResponse | None, Field(description="Why the task failed or did not start; null if it did not fail.")
    ]
    previous_at: Annotated[
        Instant | None, Field(description="The previous occurrence; null if there is none or it is unknown.")
    ]
    next_at: Annotated[
        Instant | None, Field(description="The next occurrence; null if there is none or it is unknown.")
    ]


class StartPreviewResponse(TypedDict):
    """When a task created now would start."""

    as_of: Annotated[Instant, Field(description="Time of this answer.")]
    due_at: Annotated[Instant, Field(description="When the task would be due.")]
    expected_start_at: Annotated[
        Instant | None,
        Field(
            description="When the task would start under current conditions; null if the start depends on something "
            "without a known end, or if the task would not be created: see `reasons`."
        ),
    ]
    text: Annotated[str, Field(description="The answer in words.")]
    reasons: Annotated[
        Sequence[GateResponse],
        Field(
            description="What the task would wait for, in order: gates as in an explanation of the task, all in state "
            "`ahead`."
        ),
    ]


class ScheduleExplanationQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/explain`."""

    at: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(
            description="The time in question. A time whose seconds are 0 means the entire minute, and any other time "
            "means one second. The default is the latest past occurrence."
        ),
    ] = None


EXPLAIN_TASK = Operation(
    "explainTask",
    "GET /v1/tasks/{task_id}/explain",
    "Explain why a task waits, or how it spent its time",
    Returns(TaskExplanationResponse, "The explanation."),
    description="Shows, in words and as data, everything that the task has waited for, with durations, and what the "
    "task waits for now: its due time, a lock and its holders, a switch and who set it, a retry, a worker, its "
    "schedule or its parents. The durations add up to the task's total lifetime. The explanation is derived from "
    "stored data, and the request changes nothing.",
)
PREVIEW_TASK = Operation(
    "previewTask",
    "POST /v1/tasks/preview",
    "Preview when a task would start",
    Returns(StartPreviewResponse, "When the task would start, and why."),
    description="The request takes the body of `createTask` but creates nothing. The answer considers the current "
    "state: due time, unique key, quotas, switches, concurrency limits, lock, rate, the host's circuit breaker and "
    "the queue's backlog. Other tasks can change the result in the meantime. The errors are the same as for "
    "`createTask`.",
    body=TaskCreate,
    is_question=True,
    role=Role.WRITER,
)
EXPLAIN_SCHEDULE = Operation(
    "explainSchedule",
    "GET /v1/schedules/{name}/explain",
    "Explain why a schedule did or did not run at a given time",
    Returns(ScheduleExplanationResponse, "The explanation."),
    description="Returns the occurrence at that time and its outcome: it ran, was skipped, was excluded by a "
    "calendar, was missed, fell into a pause or a clock change, or is in the future. If there is no occurrence at "
    "that time, the nearest occurrences are returned.",
    query=ScheduleExplanationQuery,
)


def task_explanation(explanation: TaskExplanation) -> TaskExplanationResponse:
    """The response for the explanation of a task."""
    return TaskExplanationResponse(
        task_id=explanation.task.id.text,
        state=explanation.task.state,
        as_of=to_iso(explanation.as_of),
        text=explanation.text,
        since=to_iso(explanation.since),
        due_at=to_iso(explanation.task.due_at),
        until=to_iso(explanation.until),
        total_ms=explanation.total,
        overdue_ms=explanation.overdue,
        gates=[_gate(gate) for gate in explanation.gates],
        steps=explanation.steps,
    )


def start_preview(preview: StartPreview) -> StartPreviewResponse:
    """The response for a preview of a task's start."""
    return StartPreviewResponse(
        as_of=to_iso(preview.as_of),
        due_at=to_iso(preview.task.due_at),
        expected_start_at=instant(preview.expected_start),
        text=preview.text,
        reasons=[_gate(gate) for gate in preview.reasons],
    )


def schedule_explanation(explanation: ScheduleExplanation) -> ScheduleExplanationResponse:
    """The response for the explanation of a schedule."""
    occurrence, task = explanation.occurrence, explanation.task
    return ScheduleExplanationResponse(
        schedule=explanation.schedule,
        at=to_iso(explanation.at),
        outcome=explanation.outcome,
        text=explanation.text,
        scheduled_at=None if occurrence is None else to_iso(occurrence.nominal),
        local_time=None if occurrence is None else occurrence.key,
        due_at=None if occurrence is None or not occurrence.runs else to_iso(occurrence.due_at),
        task_id=None if task is None else task.id.text,
        state=None if task is None else task.state,
        error=None if task is None else response_of(TaskErrorResponse, task.error),
        previous_at=instant(explanation.previous),
        next_at=instant(explanation.following),
    )


def _gate(gate: Gate) -> GateResponse:
    return response_of(
        GateResponse,
        gate,
        since=instant(gate.since),
        until=instant(gate.until),
        duration_ms=gate.duration,
        waits_for=None if gate.waits_for is None else _waits_for(gate.waits_for),
    )


def _waits_for(blocker: Blocker) -> WaitsForResponse:
    found = WaitsForResponse(
        lock=None,
        order=None,
        rate=None,
        switch=None,
        circuit=None,
        schedule=None,
        tasks=None,
        lease=None,
        retry=None,
        queue=None,
    )
    match blocker:
        case HeldLock() | EarlierTasks() | SpentRate():
            _set_shared_limit(found, blocker)
        case SetSwitch():
            found["switch"] = _switch(blocker)
        case OpenCircuit():
            found["circuit"] = _circuit(blocker)
        case HoldingSchedule():
            found["schedule"] = _schedule(blocker)
        case OtherTasks(tasks):
            found["tasks"] = [_task(each) for each in tasks]
        case LeasedBy(worker, expires_at, heartbeat_at):
            found["lease"] = WaitedLeaseResponse(
                worker=worker, expires_at=to_iso(expires_at), heartbeat_at=instant(heartbeat_at)
            )
        case NextAttempt():
            found["retry"] = _retry(blocker)
        case OnQueue(queue, is_pulled, sent_again_at):
            found["queue"] = WaitedQueueResponse(name=queue, is_pulled=is_pulled, sent_again_at=to_iso(sent_again_at))
    return found


def _set_shared_limit(found: WaitsForResponse, limit: HeldLock | EarlierTasks | SpentRate) -> None:
    """Sets the field for a limit that tasks with the same key share."""
    match limit:
        case HeldLock():
            found["lock"] = _lock(limit)
        case EarlierTasks():
            found["order"] = _order(limit)
        case SpentRate():
            found["rate"] = _rate(limit)


def _lock(held: HeldLock) -> WaitedLockResponse:
    return response_of(WaitedLockResponse, held, holders=[_task(each) for each in held.holders])


def _order(earlier: EarlierTasks) -> WaitedOrderResponse:
    return response_of(WaitedOrderResponse, earlier, tasks=[_task(each) for each in earlier.tasks])


def _rate(spent: SpentRate) -> WaitedRateResponse:
    rate = spent.rate
    return response_of(
        WaitedRateResponse, spent, key=rate.key, limit=rate.limit, per_seconds=rate.per_seconds, burst=rate.burst
    )


def _switch(set_switch: SetSwitch) -> WaitedSwitchResponse:
    switch = set_switch.switch
    return response_of(
        WaitedSwitchResponse,
        set_switch.switch,
        scope=switch.key.scope,
        name=switch.key.name,
        running=set_switch.running,
        position=set_switch.position,
        reason=switch.reason or None,
        updated_by=switch.updated_by or None,
    )


def _circuit(found: OpenCircuit) -> WaitedCircuitResponse:
    return response_of(WaitedCircuitResponse, found.circuit, reason=found.circuit.reason or None)


def _schedule(holding: HoldingSchedule) -> WaitedScheduleResponse:
    return response_of(WaitedScheduleResponse, holding, reason=holding.reason or None, since=to_iso(holding.since))


def _retry(following: NextAttempt) -> WaitedRetryResponse:
    return response_of(
        WaitedRetryResponse,
        following,
        error=response_of(TaskErrorResponse, following.error),
        function_version=following.function_version or None,
    )


def _task(task: OtherTask) -> WaitedTaskResponse:
    return response_of(
        WaitedTaskResponse, task, task_id=task.task_id.text, node=task.node or None, since=instant(task.since)
    )
