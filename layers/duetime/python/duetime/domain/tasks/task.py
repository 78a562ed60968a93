"""The record of a task and the values it is made of. All frozen; a new value is made for every change."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.json_values import writable
from duetime.domain.limits import ATTEMPTS_INLINE, MAX_PROGRESS_MESSAGE_LENGTH
from duetime.domain.tasks.action_history import NO_ACTIONS, Action
from duetime.domain.tasks.attempt_records import EXPIRED
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.targets import HandlerTarget, Target, TopologyTarget, definition_of, pull_queue_of
from duetime.domain.tasks.task_options import TaskOptions
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import ActionHistory, ActionRecord
    from duetime.domain.tasks.attempt_records import AttemptRecord, TaskError, Wait
    from duetime.domain.tasks.content import Content
    from duetime.domain.tasks.parent_references import NodeRef, ScheduleRef
    from duetime.domain.tasks.task_options import Debounce, Unique
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt has come: 0 to 100, and a short message, in which what UTF-8 cannot write is escaped."""

    percent: int
    message: str = ""

    def __post_init__(self) -> None:
        """Escape what cannot be written, and keep the message short."""
        object.__setattr__(self, "message", writable(self.message)[:MAX_PROGRESS_MESSAGE_LENGTH])


class RequestedAction(StrEnum):
    """What a running attempt has been asked to do."""

    PAUSE = "pause"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Task(TaskOptions):
    """The record of a task: the single source of truth about it.

    Attributes:
        due_at: when its user wants it to run.
        schedule_ref: the schedule's occurrence that it is; `None` for a task that no schedule placed.
        node_ref: the node of a topology that it is; `None` for a task that is none.
        topology_schedule_ref: of a node: the schedule's occurrence that its topology is; `None` if it is none.
        next_at: when it is checked next: the planned start of its next attempt.
        generation: grows only when a new check is set; timers, messages and claims carry it.
        version: grows with every write; the ETag and the order of events.
        fence: grows with every claim; every write of an attempt is checked against it.
        attempt: how many attempts have begun, of the work or of its rollback; a pause takes one back.
        sent: the message of this generation was sent by whoever enqueued it, not left to the trigger.
        nonce: of the last write; finding one's own after a rejection means that the write had been applied.
        lease_worker: who may run the task; kept after the end, to say who ran it last.
        lease_expires_at: until when; a lease is over once it is past by more than clocks may differ.
        unacknowledged: how many leases of pull workers in a row, the present one included, no client has acknowledged;
            `None` once it has, and for leases of worker functions.
        deferred_fence: the fence of the last attempt whose target accepted the work, to notify of its end later.
        job: the ARN of the job that AWS runs for the present attempt, or ran for the last one that had one.
        requested_action: what its user asks of the running attempt.
        waiting_for: why its last check did not begin an attempt, in words; an attempt forgets it when it ends.
        waits: what it has waited for besides its time, and since when, oldest first; kept after its end.
        rate_places: its places in the lines of its rates by their keys, as `duetime.domain.rates` counts.
        checkpoint: what a paused attempt left for the one that goes on; JSON text in UTF-8.
        started_at: when the first attempt started.
        started_late: it started so late that an event says so, and its target was called: written after the call, never
            by a claim, which may be put back.
        run_at: when the present attempt, or the last one, was to start.
        finished_at: when the outcome was stored and everything that follows it was done.
        expires_at: when the record may be removed; set by terminal writes only.
        attempt_history: the last attempts, oldest first.
        reopened_fence: of a topology: the fence at which it was last retried after its end. Runs that were begun under
            it or an older one are over. `None` if it never was.
        rerun_nodes: of a topology: the nodes that its last retry named, to run again with all that depends on them.
        reopened_at: when it was last to be tried again after its end; its attempts and its waits count anew from then.
        traceparent: the trace in which it was created, which its attempts continue; `None` if the request named none.
        erased: its user had it deleted: to users it is not there any more, to all else it has ended.
        actions: what its user and others did to it, apart from cancelling it before it started.
        cancellation: who cancelled it before it started; nothing can be done to it after that.
    """

    id: TaskId
    owner: str
    type: str
    state: State
    due_at: Millis
    next_at: Millis
    created_at: Millis
    payload: Content
    target: Target = field(default_factory=HandlerTarget)
    unique: Unique | None = None
    debounce: Debounce | None = None
    schedule_ref: ScheduleRef | None = None
    node_ref: NodeRef | None = None
    topology_schedule_ref: ScheduleRef | None = None
    generation: int = 0
    version: int = 1
    fence: int = 0
    attempt: int = 0
    sent: bool = False
    nonce: str = ""
    lease_worker: str | None = None
    lease_expires_at: Millis | None = None
    unacknowledged: int | None = None
    deferred_fence: int | None = None
    job: str | None = None
    requested_action: RequestedAction | None = None
    waiting_for: str | None = None
    waits: tuple[Wait, ...] = ()
    rate_places: Mapping[str, int] = field(default_factory=dict)
    checkpoint: Content | None = None
    progress: Progress | None = None
    result: Content | None = None
    error: TaskError | None = None
    started_at: Millis | None = None
    started_late: bool = False
    run_at: Millis | None = None
    finished_at: Millis | None = None
    expires_at: Millis | None = None
    attempt_history: tuple[AttemptRecord, ...] = ()
    reopened_fence: int | None = None
    rerun_nodes: tuple[str, ...] = ()
    reopened_at: Millis | None = None
    traceparent: str | None = None
    erased: bool = False
    actions: ActionHistory = NO_ACTIONS
    cancellation: ActionRecord | None = None

    def exists_for(self, owner: str) -> bool:
        """Whether an owner has this task."""
        return self.owner == owner and not self.erased

    @property
    def late_at(self) -> Millis | None:
        """When it is told that the task has not started; `None` if nobody is to be told.

        A task that was due before it was created cannot have started any earlier than that.
        """
        if self.notify_on is None or self.notify_on.late_seconds is None:
            return None
        return max(self.due_at, self.created_at) + self.notify_on.late_seconds * SECOND

    @property
    def start_by(self) -> Millis | None:
        """The last instant at which its first attempt may start; `None` if there is none, or none yet.

        A task that was due before it was created has its whole time, and a node's begins with its due time, which its
        parents decide.
        """
        if self.expires_seconds is None or self.state is State.BLOCKED:
            return None
        return max(self.due_at, self.created_at) + self.expires_seconds * SECOND

    @property
    def retry_by(self) -> Millis | None:
        """The last instant at which another attempt may start; `None` if there is none, or none yet."""
        seconds = self.retry.max_duration_seconds
        if seconds is None or self.started_at is None:
            return None
        return max(self.started_at, self.reopened_at or 0) + seconds * SECOND

    def overdue_at(self, started_at: Millis) -> Millis:
        """When an attempt that started then has taken as long as it may."""
        return started_at + self.timeout_seconds * SECOND

    @property
    def has_expired(self) -> bool:
        """Whether it has failed because its first attempt had not started in time."""
        is_so = self.state is State.FAILED and self.started_at is None
        return is_so and self.error is not None and self.error.type == EXPIRED

    @property
    def schedule_run(self) -> ScheduleRef | None:
        """The schedule's occurrence that it, or the topology that it is a node of, is; `None` for neither."""
        return self.schedule_ref or self.topology_schedule_ref

    @property
    def scheduled_at(self) -> Millis:
        """The time that its run stands for: of a schedule's occurrence; of any other task, when it is due."""
        return self.due_at if self.schedule_run is None else self.schedule_run.nominal

    @property
    def is_topology(self) -> bool:
        """Whether it runs a topology."""
        return isinstance(self.target, TopologyTarget)

    @property
    def definition(self) -> str | None:
        """The name of the definition that its topology is a run of; `None` for a graph of its own and other tasks."""
        return None if (ref := definition_of(self.target)) is None else ref.name

    @property
    def is_terminal(self) -> bool:
        """Whether an outcome is stored."""
        return self.state in TERMINAL

    @property
    def outcome_at(self) -> Millis:
        """Of a task that has ended: when it did; the same however often what follows its outcome is done."""
        last = self.attempt_history[-1] if self.attempt_history else None
        is_of_last = last is not None and last.started_at and last.started_at >= (self.reopened_at or 0)
        return last.started_at + last.took if last and is_of_last else self.next_at

    @property
    def outcome_id(self) -> str:
        """Of a task that has ended: names this outcome; the next one may come without another attempt."""
        # The fence of the attempt that brought the outcome: whoever follows it up again has a later one.
        fence = self.attempt_history[-1].fence if self.attempt_history else 0
        return f"{self.id}-{fence}" if self.reopened_at is None else f"{self.id}-{fence}-{self.reopened_at}"

    @property
    def awaiting_notification(self) -> bool:
        """Whether the target of the present attempt has accepted the work, and the lease lasts until it notifies."""
        return self.deferred_fence == self.fence

    @property
    def pull_queue(self) -> str:
        """The pulled type on whose queue it waits; empty for the queues of the worker functions."""
        return pull_queue_of(self.type, self.target, self.state)

    @property
    def lateness(self) -> Millis | None:
        """How long after its due time the first attempt started, as `lateness_of` has it; `None` before that."""
        return lateness_of(self.started_at, self.due_at, self.created_at, self.schedule_ref, self.actions)

    @property
    def contents_outside(self) -> tuple[Content, ...]:
        """The contents that lie outside the record."""
        return tuple(
            content for content in (self.payload, self.result, self.checkpoint) if content and content.is_outside
        )

    @property
    def contents_without_expiry(self) -> tuple[Content, ...]:
        """Those that must be let expire once it has ended: the result of a success has had an expiry from the first.

        Not that of a node: it is kept as long as its topology.
        """
        has_one = self.state is State.SUCCEEDED and self.node_ref is None
        kept = (self.payload, self.checkpoint, None if has_one else self.result)
        return tuple(content for content in kept if content and content.is_outside)

    @property
    def may_have_attempts_outside(self) -> bool:
        """Whether its record may have had no more room for its first attempts."""
        return len(self.attempt_history) >= ATTEMPTS_INLINE and self.fence > ATTEMPTS_INLINE

    @property
    def has_contents_to_expire(self) -> bool:
        """Whether anything outside its record must be let expire once it has ended."""
        return bool(self.contents_without_expiry) or self.may_have_attempts_outside


def lateness_of(
    started_at: Millis | None,
    due_at: Millis,
    created_at: Millis,
    schedule_ref: ScheduleRef | None,
    actions: ActionHistory,
) -> Millis | None:
    """How long after its due time the first attempt of a task started; `None` before that.

    As the metric counts it: what was due before it was created, was given that due time or was resumed by its user
    counts from then, for it could not start before. A run of a schedule counts from its due time, however late the
    schedule creates it.
    """
    if started_at is None:
        return None
    since = due_at if schedule_ref is not None else max(due_at, created_at)
    for each in actions.records:
        is_new_time = each.action is Action.RESUMED or (each.action is Action.UPDATED and "due_at" in each.fields)
        if is_new_time and each.at <= started_at:
            since = max(since, each.at)
    return max(0, started_at - since)
