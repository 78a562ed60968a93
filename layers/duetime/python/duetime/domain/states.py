"""The states of a task and the one table of its legal moves.

Every write to a record is a move of this table: one conditional write that names the states it leaves.
The docs draw their picture from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a task stands; the first design's word follows in brackets."""

    BLOCKED = "blocked"
    """Waits for parents in a topology. [Init]"""
    SCHEDULED = "scheduled"
    """Waits for its time, or is on a queue. [Create]"""
    PREPARING = "preparing"
    """Leased; the target's `prepare` runs. [Prepare]"""
    RUNNING = "running"
    """Leased; the target runs, or has accepted and will notify. [Running]"""
    POSTPONED = "postponed"
    """Waits for its next attempt, or for a lock. [Postpose]"""
    PAUSED = "paused"
    """Held by its user. [Pause]"""
    SUCCEEDED = "succeeded"
    """Ended well. [Success, then Finish]"""
    FAILED = "failed"
    """Ended badly, after its last attempt. [Fail, then Finish]"""
    ROLLING_BACK = "rolling_back"
    """Leased; the target's `rollback` runs. [Rollback]"""
    ROLLED_BACK = "rolled_back"
    """The target's `rollback` has run. [Rollback]"""
    CANCELLED = "cancelled"
    """Taken back before it ran. [None]"""


WAITING = frozenset({State.SCHEDULED, State.POSTPONED})
"""States in which a task is taken up when its time comes."""
LEASED = frozenset({State.PREPARING, State.RUNNING, State.ROLLING_BACK})
"""States in which an attempt holds a lease."""
NOT_STARTED = frozenset({State.BLOCKED, State.SCHEDULED, State.POSTPONED, State.PAUSED})
"""States in which a task may still be changed or cancelled."""
TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.ROLLED_BACK, State.CANCELLED})
"""States that hold an outcome."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one move does: the states it may leave and the state it leads to (`None`: it stays)."""

    sources: frozenset[State]
    to: State | None
    meaning: str


class Move(StrEnum):
    """The moves of a task; `LEGAL` says what each may do."""

    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    SUCCEED = "succeed"
    RETRY = "retry"
    FAIL = "fail"
    CLOSE = "close"
    CHANGE = "change"
    CANCEL = "cancel"
    REPLACE = "replace"
    GIVE_UP = "give_up"


LEGAL: dict[Move, Rule] = {
    Move.CLAIM: Rule(
        WAITING | {State.RUNNING}, State.RUNNING, "a worker takes the task up, or takes it over from a lost worker"
    ),
    Move.HEARTBEAT: Rule(frozenset({State.RUNNING}), None, "the attempt renews its lease and tells its progress"),
    Move.SUCCEED: Rule(frozenset({State.RUNNING}), State.SUCCEEDED, "the target returned"),
    Move.RETRY: Rule(frozenset({State.RUNNING}), State.POSTPONED, "the attempt failed and another will follow"),
    Move.FAIL: Rule(frozenset({State.RUNNING}), State.FAILED, "the last attempt failed, or no other would help"),
    Move.CLOSE: Rule(TERMINAL, None, "everything that follows the outcome is done"),
    Move.CHANGE: Rule(NOT_STARTED, None, "its user changed what has not started"),
    Move.CANCEL: Rule(NOT_STARTED, State.CANCELLED, "its user took it back before it started"),
    Move.REPLACE: Rule(WAITING, None, "its message was dead-lettered although attempts are left; it is placed again"),
    Move.GIVE_UP: Rule(frozenset({State.RUNNING}), State.FAILED, "its worker was lost, and its attempts are spent"),
}
