"""The types of `literals` for responses. Type checkers know the listed values, but any text is accepted at run time.

Responses of a newer API can therefore have additional values.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime_client.literals import (
        ActorType,
        AttemptOutcome,
        BulkOperationKind,
        BulkOperationState,
        CalendarMode,
        EventType,
        GateName,
        GateState,
        OccurrenceOutcome,
        RequestedAction,
        RunStatus,
        ScheduleCause,
        ScheduleState,
        TaskPriority,
        TaskState,
        TopologyFailurePolicy,
        WaitReason,
    )
else:
    ActorType = str
    AttemptOutcome = str
    BulkOperationKind = str
    BulkOperationState = str
    CalendarMode = str
    EventType = str
    GateName = str
    GateState = str
    OccurrenceOutcome = str
    RequestedAction = str
    RunStatus = str
    ScheduleCause = str
    ScheduleState = str
    TaskPriority = str
    TaskState = str
    TopologyFailurePolicy = str
    WaitReason = str

__all__ = [
    "ActorType",
    "AttemptOutcome",
    "BulkOperationKind",
    "BulkOperationState",
    "CalendarMode",
    "EventType",
    "GateName",
    "GateState",
    "OccurrenceOutcome",
    "RequestedAction",
    "RunStatus",
    "ScheduleCause",
    "ScheduleState",
    "TaskPriority",
    "TaskState",
    "TopologyFailurePolicy",
    "WaitReason",
]
