"""The names of `literals` for fields of responses: to type checkers the known values, at run time any text.

So a response of a newer API, which may have more values, can be read.
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
