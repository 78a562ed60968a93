"""One attempt: what its target is given, how it may end, and what is written then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import (
    LEDGER_LINES_INLINE,
    MAX_CLOCK_DIFFERENCE,
    MAX_ERROR_CLASS_LENGTH,
    MAX_ERROR_MESSAGE_LENGTH,
)
from duetime.domain.states import Move
from duetime.domain.task import AttemptOutcome, LedgerLine, Task, TaskError
from duetime.domain.writes import Guard, Write

if TYPE_CHECKING:
    from duetime.domain.dispatch import Message
    from duetime.domain.times import Millis

_CUT = " [cut]"


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The target returned; `result` is JSON text in UTF-8."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The target failed.

    Attributes:
        retriable: another attempt might help.
        wait_at_least: the target asked not to be tried again for so long.
    """

    error: TaskError
    retriable: bool = True
    wait_at_least: Millis = 0


Ending = Succeeded | Failed


def failure(kind: str, message: str, *, retriable: bool = True, wait_at_least: Millis = 0) -> Failed:
    """A failure whose error fits the record: a longer text is cut, and says so."""
    if len(message) > MAX_ERROR_MESSAGE_LENGTH:
        message = message[: MAX_ERROR_MESSAGE_LENGTH - len(_CUT)] + _CUT
    return Failed(TaskError(kind[:MAX_ERROR_CLASS_LENGTH], message), retriable, wait_at_least)


def claim(message: Message, *, holder: str, start: Millis, now: Millis, lease: Millis, nonce: str) -> Write:
    """The write that takes a task up: of this turn and due, or left by a worker whose lease is over.

    Args:
        message: the message that asks for it.
        holder: who claims.
        start: the planned start, the due time or now if that is later.
        now: the time by the claimer's clock.
        lease: length of the lease, counted from the planned start.
        nonce: unique to this write.
    """
    return Write(
        task_id=message.task_id,
        move=Move.CLAIM,
        nonce=nonce,
        guard=Guard(turn=message.turn, due_by=start, leased_until_before=now - MAX_CLOCK_DIFFERENCE),
        sets={"lease_holder": holder, "lease_ends_at": start + lease},
        sets_once={"started_at": start},
        adds={"fence": 1, "attempt": 1},
    )


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a target, as it is entered in the ledger."""

    task: Task
    started_at: Millis
    ended_at: Millis

    def line(self, outcome: AttemptOutcome) -> LedgerLine:
        """The ledger line of this run."""
        task = self.task
        return LedgerLine(
            attempt=task.attempt,
            holder=task.lease_holder or "",
            started_at=self.started_at,
            late=max(0, self.started_at - task.next_at),
            took=self.ended_at - self.started_at,
            outcome=outcome,
        )

    def ledger(self, outcome: AttemptOutcome) -> tuple[LedgerLine, ...]:
        """The whole ledger after this run; attempts that left no line were lost with their workers."""
        kept = {line.attempt: line for line in self.task.ledger}
        first = max(kept, default=0) + 1
        for attempt in range(first, self.task.attempt):
            kept[attempt] = LedgerLine(attempt, "", 0, 0, 0, AttemptOutcome.LOST)
        return (*kept.values(), self.line(outcome))

    def changes(self, outcome: AttemptOutcome) -> dict[str, Any]:
        """What every end of a run writes: its ledger, and the true start of a first attempt."""
        changes: dict[str, Any] = {"ledger": self.ledger(outcome)[-LEDGER_LINES_INLINE:]}
        if self.task.attempt == 1:
            changes["started_at"] = self.started_at
        return changes
