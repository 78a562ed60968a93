"""Facts for an explanation besides the task's record: the state of all gates at one instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.switches import SYSTEM, Switches
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.explanations.gate import EarlierTasks, OtherTask
    from duetime.domain.ids import TaskId
    from duetime.domain.locks import Lock, LockClaim, Waiter
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class LockFacts:
    """A lock that a task needs.

    Attributes:
        claim: the task's request.
        lock: its current holders.
        line: the first tasks waiting for it.
        holders: its holders that are tasks of the same owner.
    """

    claim: LockClaim
    lock: Lock
    line: tuple[Waiter, ...]
    holders: tuple[OtherTask, ...]

    @property
    def is_cap(self) -> bool:
        """Whether it enforces the concurrency limit of a switch."""
        return self.claim.name.owner == SYSTEM

    def position(self, task_id: TaskId) -> int | None:
        """Position of a task in the line, from 1; `None` if it is not among the first."""
        return next((place for place, waiter in enumerate(self.line, 1) if waiter.task_id == task_id), None)

    def is_closed_for(self, task_id: TaskId) -> bool:
        """Whether a task would not get the lock now."""
        ahead = (self.position(task_id) or len(self.line) + 1) - 1
        return self.lock.is_closed_for(self.claim, task_id, self.line[:ahead])


@dataclass(frozen=True, slots=True)
class RateFacts:
    """A rate that limits a task's starts.

    Attributes:
        rate: the limit that holds: its own, or the pinned one.
        is_own: whether the task names it; otherwise a switch has set it.
        is_pinned: whether its owner has pinned the limit.
        paused_at: since when it is paused; `None` if it is not.
        turn: when the task could start if it joined the line at its next check.
    """

    rate: Rate
    is_own: bool
    is_pinned: bool
    paused_at: Millis | None
    turn: Millis

    @property
    def text(self) -> str:
        """The limit for people."""
        pinned = "pinned to " if self.is_pinned else ""
        return f"{pinned}{self.rate.limit} per {self.rate.per_seconds} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state of everything that a task may wait for.

    Attributes:
        now: when the facts were read.
        lease: length of a worker's lease, in milliseconds.
        older: the attempts that no longer fit into the record.
        switches: all switches.
        locks: the locks that it needs, including concurrency limits.
        earlier: the line of its ordered key, if it is not its turn.
        rates: the rates that limit its starts.
        circuit: of the host that it calls; `None` if there is none.
        schedule: the schedule that created it; `None` if there is none, or it was deleted.
        earlier_runs: open runs of that schedule with which it must not overlap.
        parents: the parents that it waits for in its topology, or the tasks in its `after` that have not ended.
        occurrences: occurrences in its `after` that have no task yet, in words.
        nodes: the open nodes, for a running topology.
        is_enqueued: whether its message was sent; `None` if unknown.
        steps: names of the steps of `run` that are done.
    """

    now: Millis
    lease: Millis = 0
    older: tuple[AttemptRecord, ...] = ()
    switches: Switches = field(default_factory=Switches)
    locks: tuple[LockFacts, ...] = ()
    earlier: EarlierTasks | None = None
    rates: tuple[RateFacts, ...] = ()
    circuit: Circuit | None = None
    schedule: StoredSchedule | None = None
    earlier_runs: tuple[OtherTask, ...] = ()
    parents: tuple[OtherTask, ...] = ()
    occurrences: tuple[str, ...] = ()
    nodes: tuple[OtherTask, ...] = ()
    is_enqueued: bool | None = None
    steps: tuple[str, ...] = ()


_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def span(length: Millis) -> str:
    """A duration in its two largest units, rounded: `2 h 5 min`, `42 s`, `350 ms`."""
    if length < SECOND:
        return f"{length} ms"
    largest = next(index for index, (size, _) in enumerate(_UNITS) if length >= size)
    shown = _UNITS[largest : largest + 2]
    smallest = shown[-1][0]
    rounded = rest = (length + smallest // 2) // smallest * smallest
    if rounded != length:
        # Rounding may reach the next unit: 59 min 59.6 s becomes 1 h.
        return span(rounded)
    parts = []
    for size, unit in shown:
        number, rest = divmod(rest, size)
        parts.append(f"{number} {unit}" if number else "")
    return " ".join(part for part in parts if part)
