"""Gates, which are a task's stages with the reasons for waiting there, and the facts from which they are derived."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.switches import SYSTEM, Switches
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.ids import TaskId
    from duetime.domain.locks import Lock, LockClaim, Waiter
    from duetime.domain.schedules.schedule import ScheduleState
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.switches import Switch
    from duetime.domain.tasks.attempt_records import AttemptRecord, TaskError
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task_options import LockMode, Rate
    from duetime.domain.times import Millis


class GateName(StrEnum):
    """The reason for a task's wait, or its current stage.

    Attributes:
        CREATION: the task was due before it was created.
        DUE: the task's due time.
        PARENTS: the task's parents in a topology, or the tasks in its `after`.
        PAUSED: the task's user has paused it.
        TRIGGER: the trigger, which has not put the task on its queue yet.
        QUEUE: the task's queue, from which no worker has claimed the task yet.
        DISPATCH: the delivery of the task to a worker, through the trigger and the queue.
        SCHEDULE: the task's schedule, which currently prevents the task from running.
        OVERLAP: an earlier run of the task's schedule.
        SWITCH: a switch that stops the task's type, the task's owner or all tasks.
        HANDLERS: the handlers cannot be imported.
        LOCK: the task's lock.
        ORDER: an earlier task of the task's ordered key.
        RATE: the task's rate limit, which is used up.
        UNIQUE_KEY: the task's unique key, which another task holds, so that the task is not created.
        QUOTA: a quota of the task's owner.
        CONCURRENCY_LIMIT: the concurrency limit of the task's type or owner.
        CIRCUIT: the circuit breaker of the task's host, because calls to the host keep failing.
        TARGET: the task's target, which accepts no more calls for now.
        WORKER: a free worker.
        APPROVAL: a person who approves or rejects it.
        EVENT: a signal for the event that the task waits for.
        GROUP: the members of the group after which the task runs.
        TOPOLOGY: the state machine of the task's topology, or nodes of an earlier run.
        OTHER: another reason, given in the text.
        RETRY: the wait before the task's next attempt.
        RUN: a running attempt.
        NOTIFICATION: the task's target, which has accepted the work and will report the outcome.
        RECOVERY: another worker, because the task's worker was lost.
        FOLLOW_UP: the follow-ups of the task's outcome: cleanup, the callback, and the release of child nodes.
        ENDED: no wait, because the task had ended until its user retried it or rolled it back.
        NOT_RECORDED: unknown, because the record does not say.
    """

    CREATION = "creation"
    DUE = "due"
    PARENTS = "parents"
    PAUSED = "paused"
    TRIGGER = "trigger"
    QUEUE = "queue"
    DISPATCH = "dispatch"
    SCHEDULE = "schedule"
    OVERLAP = "overlap"
    SWITCH = "switch"
    HANDLERS = "handlers"
    LOCK = "lock"
    ORDER = "order"
    RATE = "rate"
    UNIQUE_KEY = "unique_key"
    QUOTA = "quota"
    CONCURRENCY_LIMIT = "concurrency_limit"
    CIRCUIT = "circuit"
    TARGET = "target"
    WORKER = "worker"
    APPROVAL = "approval"
    EVENT = "event"
    GROUP = "group"
    TOPOLOGY = "topology"
    OTHER = "other"
    RETRY = "retry"
    RUN = "run"
    NOTIFICATION = "notification"
    RECOVERY = "recovery"
    FOLLOW_UP = "follow_up"
    ENDED = "ended"
    NOT_RECORDED = "not_recorded"


class GateState(StrEnum):
    """Where a task is in relation to a gate.

    Attributes:
        PASSED: the task has passed the gate.
        WAITING: the task is at the gate now.
        AHEAD: the task has not reached the gate, and would wait there under current conditions.
        UNKNOWN: the record does not show whether the task has passed the gate.
    """

    PASSED = "passed"
    WAITING = "waiting"
    AHEAD = "ahead"
    UNKNOWN = "unknown"


@frozen
class OtherTask:
    """Another task that a task waits for.

    Attributes:
        node: the other task's name in its topology; empty if that task is not a node.
        since: when the other task began to hold the resource; `None` if unknown.
        expires_at: when this hold expires unless a heartbeat renews it; `None` if the hold does not expire.
    """

    task_id: TaskId
    state: State
    node: str = ""
    since: Millis | None = None
    expires_at: Millis | None = None


@frozen
class HeldLock:
    """A lock held by other tasks.

    Attributes:
        key: key of the lock.
        mode: the mode in which the task needs the lock.
        max_holders: maximum number of concurrent holders.
        holders: the current holders.
        position: the task's position in line, counted from 1; `None` if the task is not among the entries read.
    """

    key: str
    mode: LockMode
    max_holders: int
    holders: tuple[OtherTask, ...]
    position: int | None


@frozen
class EarlierTasks:
    """The line of an ordered key in which a task waits.

    Attributes:
        key: the ordered key.
        position: place in line, where the first open task is 1; `None` if the task is too far behind.
        tasks: the task whose turn it is, or the first in line, and the task just before the waiting task.
        is_stopped: whether the first task in the line has failed and stops the line.
    """

    key: str
    position: int | None
    tasks: tuple[OtherTask, ...]
    is_stopped: bool


@frozen
class SpentRate:
    """A rate that is paused or used up.

    Attributes:
        rate: the limit in force.
        is_pinned: whether the rate's owner, not the task, has set the limit.
        paused_at: when the rate was paused; `None` if it is not paused.
    """

    rate: Rate
    is_pinned: bool = False
    paused_at: Millis | None = None


@frozen
class SetSwitch:
    """A switch that stops a task, or limits concurrency.

    Attributes:
        running: number of tasks that count towards the limit; `None` for a switch that stops tasks.
        position: as in `HeldLock`.
    """

    switch: Switch
    running: int | None = None
    position: int | None = None


@frozen
class OpenCircuit:
    """The circuit of a host that gets no calls, or only one probe call at a time."""

    circuit: Circuit


@frozen
class HoldingSchedule:
    """A schedule that prevents its occurrence from running.

    Attributes:
        reason: why the schedule is paused.
        since: when the schedule was last changed, paused or resumed.
    """

    name: str
    state: ScheduleState
    reason: str
    since: Millis


@frozen
class OtherTasks:
    """Other tasks that must end before the task can continue."""

    tasks: tuple[OtherTask, ...]


@frozen
class LeasedBy:
    """A worker that holds the task's lease.

    Attributes:
        heartbeat_at: approximate time of the last heartbeat; `None` if unknown.
    """

    worker: str
    expires_at: Millis
    heartbeat_at: Millis | None = None


@frozen
class NextAttempt:
    """The next attempt after a failed attempt.

    Attributes:
        function_version: the version of the Lambda function that ran the failed attempt; empty if unknown.
    """

    attempt: int
    max_attempts: int
    error: TaskError | None
    function_version: str


@frozen
class OnQueue:
    """The queue of a task.

    Attributes:
        queue: the queue's name, which is a priority or a pulled type.
        is_pulled: whether pull workers lease from it.
        sent_again_at: the latest time at which a lost message is sent again.
    """

    queue: str
    is_pulled: bool
    sent_again_at: Millis


Blocker: TypeAlias = (
    HeldLock
    | EarlierTasks
    | SpentRate
    | SetSwitch
    | OpenCircuit
    | HoldingSchedule
    | OtherTasks
    | LeasedBy
    | NextAttempt
    | OnQueue
)
"""What a task waits for."""


@frozen(kw_only=True)
class Gate:
    """One gate in a task's life.

    Attributes:
        since: when the task reached the gate; `None` if not reached yet.
        until: when the task passed the gate; for the current gate, the latest time at which the task passes it or is
            checked again; `None` if unknown.
        duration: time spent at the gate, in milliseconds; `None` if not reached.
        text: explanation for people.
        waits_for: what the task waits for, as structured data.
    """

    name: GateName
    state: GateState
    text: str
    since: Millis | None = None
    until: Millis | None = None
    duration: Millis | None = None
    waits_for: Blocker | None = None


@frozen
class LockFacts:
    """A lock that a task needs.

    Attributes:
        claim: the task's request.
        lock: the lock with its current holders.
        line: the first tasks waiting for the lock.
        holders: the lock's holders that are tasks of the same owner.
    """

    claim: LockClaim
    lock: Lock
    line: tuple[Waiter, ...]
    holders: tuple[OtherTask, ...]

    @property
    def is_cap(self) -> bool:
        """Whether the lock enforces a switch's concurrency limit."""
        return self.claim.name.owner == SYSTEM

    def position(self, task_id: TaskId) -> int | None:
        """A task's position in line, counted from 1; `None` if the task is not among the first tasks."""
        return next((place for place, waiter in enumerate(self.line, 1) if waiter.task_id == task_id), None)

    def is_closed_for(self, task_id: TaskId) -> bool:
        """Whether a task would not get the lock now."""
        ahead = (self.position(task_id) or len(self.line) + 1) - 1
        return self.lock.is_closed_for(self.claim, task_id, self.line[:ahead])


@frozen
class RateFacts:
    """A rate that limits a task's starts.

    Attributes:
        rate: the limit in force, which is the task's or switch's own limit, or the pinned limit.
        is_own: whether the task names the rate; otherwise a switch has set it.
        is_pinned: whether its owner has pinned the limit.
        paused_at: when the rate was paused; `None` if it is not paused.
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


@frozen(kw_only=True)
class Facts:
    """The state of everything that a task can wait for.

    Attributes:
        now: when the facts were read.
        lease: length of a worker's lease, in milliseconds.
        older: the attempts that no longer fit into the record.
        switches: all switches.
        locks: the locks that the task needs, including concurrency limits.
        earlier: the line of the task's ordered key; `None` if it is the task's turn.
        rates: the rates that limit the task's starts.
        circuit: circuit of the host that the task calls; `None` if the task calls no host, or the host has no circuit.
        schedule: the schedule that created the task; `None` if no schedule did, or the schedule was deleted.
        earlier_runs: open runs of that schedule with which the task must not overlap.
        parents: the parents that the task waits for in its topology, or the tasks in its `after` that have not ended.
        occurrences: descriptions of the schedule occurrences in the task's `after` that have no task yet.
        nodes: the open nodes, for a running topology.
        is_enqueued: whether the task's message was sent; `None` if unknown.
        steps: names of the completed steps of `run`.
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
