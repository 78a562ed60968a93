"""Gates: what a task passes on its way to its end, and what holds it there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.schedule import ScheduleState
    from duetime.domain.switches import Switch
    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.tasks.states import State
    from duetime.domain.times import Millis


class GateName(StrEnum):
    """What a task waits for, or is in.

    Attributes:
        CREATION: it was due before it was created.
        DUE: its due time.
        PARENTS: its parents in a topology.
        PAUSED: its user, who has paused it.
        TRIGGER: the trigger, which has not put it on its queue yet.
        QUEUE: its queue, from which no worker has claimed it yet.
        DISPATCH: its way to a worker: the trigger, the queue and the worker.
        SCHEDULE: its schedule, which does not want it to run.
        OVERLAP: an earlier run of its schedule.
        SWITCH: a switch that stops its type, its owner or all tasks.
        HANDLERS: the handlers, which cannot be imported.
        LOCK: its lock.
        RATE: its rate: as many attempts of its key have started as may.
        CONCURRENCY_LIMIT: the limit of running tasks of its type or of its owner.
        CIRCUIT: the host that it calls, which keeps failing.
        TARGET: its target, which does not accept more calls.
        WORKER: a free worker.
        APPROVAL: a person who approves or rejects it.
        TOPOLOGY: the state machine of its topology, or nodes of an earlier run.
        OTHER: something else, which the text names.
        RETRY: the pause before its next attempt.
        RUN: an attempt, which runs.
        NOTIFICATION: its target, which has accepted the work and will report the outcome.
        RECOVERY: another worker, for the one that ran it was lost.
        FOLLOW_UP: what follows its outcome: cleaning up, creating its callback, releasing the nodes after it.
        ENDED: nothing: it had ended, before its user had it tried again or rolled back.
        NOT_RECORDED: the record does not tell.
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
    RATE = "rate"
    CONCURRENCY_LIMIT = "concurrency_limit"
    CIRCUIT = "circuit"
    TARGET = "target"
    WORKER = "worker"
    APPROVAL = "approval"
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
    """How a task stands to a gate.

    Attributes:
        PASSED: it is behind it.
        WAITING: it waits there now, or is in it.
        AHEAD: it has not come to it yet; it would wait there, as things are now.
        UNKNOWN: the record does not tell.
    """

    PASSED = "passed"
    WAITING = "waiting"
    AHEAD = "ahead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OtherTask:
    """Another task that a task waits for.

    Attributes:
        node: its name in the topology; empty for a task that is none of its nodes.
        since: since when it holds what is waited for; `None` if that is not known.
        expires_at: when its hold ends by itself, unless a heartbeat renews it; `None` for no hold.
    """

    task_id: TaskId
    state: State
    node: str = ""
    since: Millis | None = None
    expires_at: Millis | None = None


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that is held by others.

    Attributes:
        key: of the lock.
        max_holders: most tasks that may hold it at once.
        holders: those who hold it now.
        position: place in its line, from 1; `None` if it is not in it, or behind all that were read.
    """

    key: str
    max_holders: int
    holders: tuple[OtherTask, ...]
    position: int | None


@dataclass(frozen=True, slots=True)
class SetSwitch:
    """A switch that stops a task, or limits how many run.

    Attributes:
        running: how many tasks count towards its limit now; `None` for a switch that stops.
        position: as of `HeldLock`.
    """

    switch: Switch
    running: int | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    """The circuit of a host that is not called, or by one call at a time."""

    circuit: Circuit


@dataclass(frozen=True, slots=True)
class HoldingSchedule:
    """A schedule that keeps its occurrence from running.

    Attributes:
        reason: why it is paused.
        since: when it was last changed, paused or resumed.
    """

    name: str
    state: ScheduleState
    reason: str
    since: Millis


@dataclass(frozen=True, slots=True)
class OtherTasks:
    """Tasks that must end first."""

    tasks: tuple[OtherTask, ...]


@dataclass(frozen=True, slots=True)
class LeasedBy:
    """A worker that has the task.

    Attributes:
        heartbeat_at: of its last heartbeat, about; `None` if that is not known.
    """

    worker: str
    expires_at: Millis
    heartbeat_at: Millis | None = None


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """An attempt that is to come after a failed one."""

    attempt: int
    max_attempts: int
    error: TaskError | None


@dataclass(frozen=True, slots=True)
class OnQueue:
    """The queue of a task.

    Attributes:
        queue: its name: a priority, or a type that pull workers lease.
        is_pulled: whether pull workers lease from it.
        sent_again_at: when the task's message is sent again at the latest, should it be lost.
    """

    queue: str
    is_pulled: bool
    sent_again_at: Millis


Blocker: TypeAlias = (
    HeldLock | SetSwitch | OpenCircuit | HoldingSchedule | OtherTasks | LeasedBy | NextAttempt | OnQueue
)
"""What a task waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate of a task.

    Attributes:
        since: when it came to it; `None` if it has not yet.
        until: when it passed it; where it waits, when it will at the latest or is checked again; `None` if unknown.
        duration: how long it has been there, in milliseconds; `None` if it has not come to it.
        text: what holds it there, in words.
        waits_for: the same as data.
    """

    name: GateName
    state: GateState
    text: str
    since: Millis | None = None
    until: Millis | None = None
    duration: Millis | None = None
    waits_for: Blocker | None = None
