"""The states of a task, and the table of legal moves.

Every write to a record is a move in this table, made by one conditional write that names the states it may leave. The
diagram in the docs is generated from this table.
"""

from __future__ import annotations

from enum import StrEnum

from duetime_common.frozen_classes import frozen


class State(StrEnum):
    """The state of a task.

    Attributes:
        BLOCKED: waits for its parents in a topology, or for the tasks in its `after`.
        SCHEDULED: waits for its due time, or is on a queue.
        PREPARING: leased; the target's `prepare` runs.
        RUNNING: leased; the target runs, or has accepted the work and will report the outcome.
        WAITING: waits for its next attempt, or for something that an attempt needs.
        PAUSED: paused by its owner.
        SUCCEEDED: ended with success.
        FAILED: ended with a failure, after its last attempt.
        ROLLING_BACK: leased; the target's `rollback` runs.
        ROLLED_BACK: the target's `rollback` has run.
        CANCELLED: cancelled before any other outcome.
    """

    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    PREPARING = "preparing"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"
    CANCELLED = "cancelled"


STARTABLE = frozenset({State.SCHEDULED, State.WAITING})
"""States in which a task can be claimed when its time comes."""
LEASED = frozenset({State.PREPARING, State.RUNNING, State.ROLLING_BACK})
"""States in which an attempt holds a lease."""
NOT_STARTED = frozenset({State.BLOCKED, State.SCHEDULED, State.WAITING, State.PAUSED})
"""States in which a task may still be changed or cancelled."""
TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.ROLLED_BACK, State.CANCELLED})
"""States in which a task has an outcome."""


_ATTEMPTED = frozenset({State.PREPARING, State.RUNNING})
"""States in which an attempt holds a lease and runs the work itself, not its rollback."""
GOING_ON = STARTABLE | _ATTEMPTED
"""States of a task that is neither blocked nor paused, and either waits for its time or has a running attempt."""


@frozen
class Rule:
    """A rule for a move: the states that the move may leave, and the resulting state (`None` if unchanged)."""

    sources: frozenset[State]
    to: State | None
    meaning: str


class Move(StrEnum):
    """The moves of a task; `LEGAL` defines the rule for each move."""

    CLAIM = "claim"
    PREPARE = "prepare"
    BEGIN = "begin"
    HEARTBEAT = "heartbeat"
    DEFER = "defer"
    SUCCEED = "succeed"
    RETRY = "retry"
    FAIL = "fail"
    YIELD = "yield"
    STOP = "stop"
    POSTPONE = "hold_back"
    SKIP = "skip"
    CLAIM_FOLLOW_UP = "claim_follow_up"
    CLOSE = "close"
    UNDO = "undo"
    CLAIM_ROLLBACK = "claim_rollback"
    ROLL_BACK = "roll_back"
    RETRY_ROLLBACK = "retry_rollback"
    FAIL_ROLLBACK = "fail_rollback"
    CHANGE = "change"
    EXPEDITE = "expedite"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    REQUEST_STOP = "ask"
    REOPEN = "reopen"
    RERUN = "rerun"
    REQUEST_ROLLBACK = "request_rollback"
    REPLACE = "replace"
    GIVE_UP = "give_up"
    RELEASE = "release"
    BLOCK = "block"
    LINK = "link"
    HOLD = "hold"
    DISMISS = "dismiss"
    FAIL_CONDITION = "fail_condition"
    APPROVE = "approve"
    REJECT = "reject"
    RETAIN = "retain"
    ERASE = "erase"


LEGAL: dict[Move, Rule] = {
    Move.CLAIM: Rule(
        STARTABLE | _ATTEMPTED, State.RUNNING, "a worker claims the task, or takes it over from a lost worker"
    ),
    Move.PREPARE: Rule(frozenset({State.RUNNING}), State.PREPARING, "the target's `prepare` starts"),
    Move.BEGIN: Rule(frozenset({State.PREPARING}), State.RUNNING, "the target is prepared; its `run` starts"),
    Move.HEARTBEAT: Rule(LEASED | TERMINAL, None, "the attempt renews its lease and reports its progress"),
    Move.DEFER: Rule(frozenset({State.RUNNING}), None, "the target accepted the work and will notify"),
    Move.SUCCEED: Rule(frozenset({State.RUNNING}), State.SUCCEEDED, "the target returned"),
    Move.RETRY: Rule(_ATTEMPTED, State.WAITING, "the attempt failed, and another will follow"),
    Move.FAIL: Rule(_ATTEMPTED, State.FAILED, "the last attempt failed, or the error is not retriable"),
    Move.YIELD: Rule(_ATTEMPTED, State.PAUSED, "the attempt stopped because its user requested a pause"),
    Move.STOP: Rule(_ATTEMPTED, State.CANCELLED, "the attempt stopped because its user requested a cancellation"),
    Move.POSTPONE: Rule(
        _ATTEMPTED, State.WAITING, "something that the attempt needs is not available; it does not count as an attempt"
    ),
    Move.SKIP: Rule(_ATTEMPTED, State.CANCELLED, "its schedule no longer needs it, or the previous run is still open"),
    Move.CLAIM_FOLLOW_UP: Rule(TERMINAL, None, "another worker takes over the follow-ups of the outcome"),
    Move.CLOSE: Rule(TERMINAL, None, "all follow-ups of the outcome are done"),
    Move.UNDO: Rule(_ATTEMPTED, State.ROLLING_BACK, "the last attempt failed, and its effects must be rolled back"),
    Move.CLAIM_ROLLBACK: Rule(frozenset({State.ROLLING_BACK}), State.ROLLING_BACK, "a worker claims the rollback"),
    Move.ROLL_BACK: Rule(frozenset({State.ROLLING_BACK}), State.ROLLED_BACK, "the target's `rollback` returned"),
    Move.RETRY_ROLLBACK: Rule(frozenset({State.ROLLING_BACK}), None, "the rollback failed, and will be retried"),
    Move.FAIL_ROLLBACK: Rule(frozenset({State.ROLLING_BACK}), State.FAILED, "the rollback failed for the last time"),
    Move.CHANGE: Rule(NOT_STARTED, None, "its user changed it before it started"),
    Move.EXPEDITE: Rule(STARTABLE | {State.PAUSED}, State.SCHEDULED, "its user requested to run it now"),
    Move.CANCEL: Rule(NOT_STARTED, State.CANCELLED, "its user cancelled it before it started"),
    Move.PAUSE: Rule(STARTABLE | {State.BLOCKED}, State.PAUSED, "its user paused it before it started"),
    Move.RESUME: Rule(frozenset({State.PAUSED}), State.SCHEDULED, "its user resumed it"),
    Move.REQUEST_STOP: Rule(_ATTEMPTED, None, "its user requested the running attempt to pause or stop"),
    Move.REOPEN: Rule(frozenset({State.FAILED}), State.SCHEDULED, "its user retried the failed task"),
    Move.RERUN: Rule(
        frozenset({State.SUCCEEDED, State.FAILED}),
        State.SCHEDULED,
        "its user requested to run chosen nodes of the ended topology again",
    ),
    Move.REQUEST_ROLLBACK: Rule(
        frozenset({State.SUCCEEDED, State.FAILED}),
        State.ROLLING_BACK,
        "its user requested a rollback of the ended task",
    ),
    Move.REPLACE: Rule(
        STARTABLE | {State.ROLLING_BACK},
        None,
        "it is enqueued again: its message was dead-lettered, or its lock is free",
    ),
    Move.GIVE_UP: Rule(_ATTEMPTED, State.FAILED, "its worker was lost, and no attempts are left"),
    Move.RELEASE: Rule(
        frozenset({State.BLOCKED}),
        State.SCHEDULED,
        "its parents in the topology, or the tasks in its `after`, let it start",
    ),
    Move.BLOCK: Rule(
        frozenset({State.PAUSED, State.CANCELLED}),
        State.BLOCKED,
        "its user resumed or retried it, and it waits for the tasks in its `after` again",
    ),
    Move.LINK: Rule(
        frozenset(State) - TERMINAL, None, "another task waits for its end, or it stores how another task has ended"
    ),
    Move.HOLD: Rule(
        frozenset({State.BLOCKED}), None, "its topology is paused: earlier decisions to release it are void"
    ),
    Move.DISMISS: Rule(
        NOT_STARTED, State.CANCELLED, "its topology no longer needs it, or the tasks in its `after` never let it start"
    ),
    Move.FAIL_CONDITION: Rule(
        frozenset({State.BLOCKED}), State.FAILED, "its condition in the topology cannot be evaluated"
    ),
    Move.APPROVE: Rule(STARTABLE, State.SUCCEEDED, "its user approved it"),
    Move.REJECT: Rule(STARTABLE, State.FAILED, "its user rejected it"),
    Move.RETAIN: Rule(
        TERMINAL, None, "its topology no longer needs it, or needs it again: its expiry is set or removed"
    ),
    Move.ERASE: Rule(TERMINAL, None, "its user deleted it: its content is removed"),
}
