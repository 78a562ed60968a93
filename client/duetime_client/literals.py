"""The values of enumerated fields, as listed in the API's OpenAPI document.

A newer API can have other values; responses with unknown values are accepted.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

ActorType: TypeAlias = Literal["user", "schedule", "topology", "system"]
"""The kind of actor that caused an event."""
AttemptOutcome: TypeAlias = Literal["succeeded", "retried", "failed", "lost", "paused", "cancelled", "rolled_back"]
"""How an attempt ended."""
BulkOperationKind: TypeAlias = Literal[
    "cancel", "update", "retry", "pause", "resume", "end", "delete", "signal", "purge"
]
"""The action of a bulk operation."""
BulkOperationState: TypeAlias = Literal["running", "succeeded", "cancelled"]
"""Whether a bulk operation has ended."""
CalendarMode: TypeAlias = Literal["excludes", "includes"]
"""Whether tasks run outside or inside a calendar's times."""
EventType: TypeAlias = Literal[
    "created",
    "updated",
    "paused",
    "pause_requested",
    "resumed",
    "run_requested",
    "retried",
    "rollback_requested",
    "cancelled",
    "cancel_requested",
    "approved",
    "rejected",
    "attempt_started",
    "attempt_ended",
    "expired",
    "finished",
]
"""What happened to a task."""
GateName: TypeAlias = Literal[
    "creation",
    "due",
    "parents",
    "paused",
    "trigger",
    "queue",
    "dispatch",
    "schedule",
    "overlap",
    "switch",
    "handlers",
    "lock",
    "order",
    "rate",
    "unique_key",
    "quota",
    "concurrency_limit",
    "circuit",
    "target",
    "worker",
    "approval",
    "event",
    "group",
    "topology",
    "other",
    "retry",
    "run",
    "notification",
    "recovery",
    "follow_up",
    "ended",
    "not_recorded",
]
"""What a task waits for."""
GateState: TypeAlias = Literal["passed", "waiting", "ahead", "unknown"]
"""Whether the task has passed a gate, is waiting at it, or has not reached it yet."""
OccurrenceOutcome: TypeAlias = Literal[
    "ran",
    "open",
    "planned",
    "late",
    "skipped",
    "excluded",
    "clock_change",
    "missed",
    "paused",
    "no_runs_left",
    "ended",
    "not_scheduled",
    "before_start",
    "after_end",
    "before_creation",
    "not_recorded",
]
"""What happened at one scheduled time."""
RequestedAction: TypeAlias = Literal["pause", "cancel"]
"""The action that a running attempt is asked to take."""
RunStatus: TypeAlias = Literal[
    "planned", "waiting", "running", "succeeded", "failed", "cancelled", "skipped", "missed", "expired"
]
"""The status of an occurrence."""
ScheduleCause: TypeAlias = Literal["schedule", "catch_up", "manual", "backfill"]
"""Why a schedule created a task."""
ScheduleState: TypeAlias = Literal["active", "paused", "ended"]
"""Whether a schedule creates tasks."""
TaskLockMode: TypeAlias = Literal["exclusive", "shared"]
"""Whether tasks can hold a lock together."""
TaskPriority: TypeAlias = Literal["high", "normal", "low"]
"""Which of several tasks due at the same time starts first."""
TaskState: TypeAlias = Literal[
    "blocked",
    "scheduled",
    "preparing",
    "running",
    "waiting",
    "paused",
    "succeeded",
    "failed",
    "rolling_back",
    "rolled_back",
    "cancelled",
]
"""The state of a task."""
TopologyFailurePolicy: TypeAlias = Literal["stop", "continue", "rollback"]
"""How a topology treats its other nodes when one has failed."""
UniqueKeyConflictPolicy: TypeAlias = Literal["keep", "replace", "refuse"]
"""How a create request is handled when another task holds its unique key."""
UniqueKeyScope: TypeAlias = Literal["started", "ended"]
"""How long a task holds its unique key."""
WaitReason: TypeAlias = Literal[
    "lock",
    "concurrency_limit",
    "order",
    "rate",
    "switch",
    "circuit",
    "overlap",
    "handlers",
    "worker",
    "target",
    "approval",
    "event",
    "group",
    "topology",
    "other",
]
"""The reason why a due task has not started."""
