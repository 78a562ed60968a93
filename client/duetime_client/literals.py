"""The values of fields that have a fixed set of them, as the API's document lists them.

A newer API may have more: responses are not rejected for that.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

ActorType: TypeAlias = Literal["user", "schedule", "topology", "system"]
"""Who did something to a task."""
AttemptOutcome: TypeAlias = Literal["succeeded", "retried", "failed", "lost", "paused", "cancelled", "rolled_back"]
"""How an attempt ended."""
BulkOperationKind: TypeAlias = Literal["cancel", "update", "retry", "pause", "resume", "end", "delete"]
"""What a bulk operation does to tasks."""
BulkOperationState: TypeAlias = Literal["running", "succeeded", "cancelled"]
"""Whether a bulk operation has ended."""
CalendarMode: TypeAlias = Literal["excludes", "includes"]
"""Whether tasks run outside the times of a calendar, or inside."""
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
    "rate",
    "concurrency_limit",
    "circuit",
    "target",
    "worker",
    "approval",
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
"""Whether it is past that."""
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
"""What became of a time of a schedule."""
RequestedAction: TypeAlias = Literal["pause", "cancel"]
"""What was requested of a running attempt."""
RunStatus: TypeAlias = Literal[
    "planned", "waiting", "running", "succeeded", "failed", "cancelled", "skipped", "missed", "expired"
]
"""What became of an occurrence."""
ScheduleCause: TypeAlias = Literal["schedule", "catch_up", "manual", "backfill"]
"""Why a schedule's task exists."""
ScheduleState: TypeAlias = Literal["active", "paused", "ended"]
"""Whether a schedule creates tasks."""
TaskPriority: TypeAlias = Literal["high", "normal", "low"]
"""Which of the tasks that are due at the same time goes first."""
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
"""Where a task is in its life."""
TopologyFailurePolicy: TypeAlias = Literal["stop", "continue", "rollback"]
"""What happens to other nodes when one has failed."""
UniqueKeyConflictPolicy: TypeAlias = Literal["keep", "replace", "refuse"]
"""What happens to a creation whose unique key another task holds."""
UniqueKeyScope: TypeAlias = Literal["started", "ended"]
"""How long a task holds its unique key."""
WaitReason: TypeAlias = Literal[
    "lock",
    "concurrency_limit",
    "rate",
    "switch",
    "circuit",
    "overlap",
    "handlers",
    "worker",
    "target",
    "approval",
    "topology",
    "other",
]
"""What a task waits for besides its time."""
