"""Converts explanations to responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.explanations.operations import (
    GateResponse,
    ScheduleExplanationResponse,
    StartPreviewResponse,
    TaskExplanationResponse,
    WaitedCircuitResponse,
    WaitedLeaseResponse,
    WaitedLockResponse,
    WaitedOrderResponse,
    WaitedQueueResponse,
    WaitedRateResponse,
    WaitedRetryResponse,
    WaitedScheduleResponse,
    WaitedSwitchResponse,
    WaitedTaskResponse,
    WaitsForResponse,
)
from duetime.contract.mapping import response_of
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.responses import TaskErrorResponse
from duetime.domain.explanations.gate import (
    EarlierTasks,
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
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.explanations.gate import Blocker, Gate, OtherTask
    from duetime.domain.explanations.schedule_explanation import ScheduleExplanation
    from duetime.domain.explanations.task_explanation import StartPreview, TaskExplanation


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
    """Set the field of a limit that tasks share by its key."""
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
