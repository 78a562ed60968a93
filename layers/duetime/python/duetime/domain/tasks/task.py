"""The record of a task and its values. All values are frozen; every change creates a new value."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.json_values import most_characters, writable
from duetime.domain.limits import ATTEMPTS_INLINE, INLINE_CONTENT_BYTES, ITEM_CONTENT_BYTES, MAX_PROGRESS_MESSAGE_LENGTH
from duetime.domain.operating_parameters import CONTENT_OUTLIVES_RECORD, FENCES_PER_EPOCH, UNREFERENCED_CONTENT_LIFE
from duetime.domain.tasks.action_history import NO_ACTIONS, Action
from duetime.domain.tasks.attempt_records import EXPIRED, SKIPPED, AttemptOutcome
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.targets import HandlerTarget, Target, TopologyTarget, definition_of, pull_queue_of
from duetime.domain.tasks.task_options import TaskOptions, fair_share
from duetime.domain.tasks.wait_reasons import GROUP_AWAITED
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import ActionHistory, ActionRecord
    from duetime.domain.tasks.attempt_records import AttemptRecord, TaskError, Wait
    from duetime.domain.tasks.dependencies import Dependencies
    from duetime.domain.tasks.task_options import Debounce, OrderKey, Unique
    from duetime.domain.times import Millis


_UPLOADED = "upload"


class ContentPlace(StrEnum):
    """Where content is stored, which depends on its compressed size."""

    RECORD = "record"
    ITEM = "item"
    OBJECT = "object"

    @classmethod
    def for_size(cls, compressed: int, inline: int = INLINE_CONTENT_BYTES) -> ContentPlace:
        """Chooses the record, an item or S3 by compressed size; up to `inline` bytes are stored in the record."""
        if compressed <= inline:
            return cls.RECORD
        return cls.ITEM if compressed <= ITEM_CONTENT_BYTES else cls.OBJECT


@frozen
class UploadedBytes:
    """The facts about an uploaded payload that are known without reading it.

    Attributes:
        size: its size in bytes.
        content_type: its content type.
    """

    size: int
    content_type: str

    @property
    def name(self) -> str:
        """The content's name, which contains the size and the content type.

        The type is encoded because it can have characters that S3 keys should not have.
        """
        return f"{_UPLOADED}.{self.size}.{urlsafe_b64encode(self.content_type.encode()).decode().rstrip('=')}"

    @classmethod
    def of_name(cls, name: str) -> UploadedBytes | None:
        """Parses the name of an uploaded payload; `None` for any other name."""
        kind, _, rest = name.partition(".")
        if kind != _UPLOADED:
            return None
        size, _, encoded = rest.partition(".")
        return cls(int(size), urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


@frozen
class Content:
    """A payload or a result, which is opaque bytes (JSON text in UTF-8) stored in the record or outside it.

    Attributes:
        place: where the bytes are stored: in the record, in a separate item, or in S3.
        name: name of the bytes outside the record: `payload`, `payload.<nonce>`, `result.<nonce>`, or the name of an
            uploaded payload. A writer whose write may be rejected, such as a change or an attempt, uses a separate name
            so that it does not overwrite other content.
        data: the bytes; `None` if they are stored outside the record and have not been fetched.
    """

    place: ContentPlace
    name: str
    data: bytes | None = None

    @property
    def is_outside(self) -> bool:
        """Whether the bytes are stored outside the record."""
        return self.place != ContentPlace.RECORD

    @property
    def uploaded(self) -> UploadedBytes | None:
        """Size and type of an uploaded payload, which is stored as bytes, not JSON; `None` for any other content."""
        return UploadedBytes.of_name(self.name) if self.place is ContentPlace.OBJECT else None


@frozen
class Expiry:
    """When content may be removed.

    Attributes:
        at: when the content expires; TTL may remove it at any later time, in any order.
        provisional: whether the content may be unreferenced, because its record may not be written yet or may be gone.
            For S3 objects, which have no individual expiry, this flag selects the lifecycle rule.
    """

    at: Millis
    provisional: bool = False


def after_record(expires_at: Millis) -> Expiry:
    """The expiry of a record's content, which is later than the record's, because TTL removes items in any order."""
    return Expiry(expires_at + CONTENT_OUTLIVES_RECORD)


def unless_referenced(since: Millis) -> Expiry:
    """The expiry that content has until a record is known to refer to it.

    Args:
        since: when the content was written, or its task's due time if that is later. If the writer fails after writing
            the record and before removing the expiry, the content is still kept for the task's likely lifetime.
    """
    return Expiry(since + UNREFERENCED_CONTENT_LIFE, provisional=True)


class Cause(StrEnum):
    """Why a schedule created a task.

    Attributes:
        SCHEDULE: the schedule's timing.
        CATCH_UP: the schedule's timing, for a missed run.
        MANUAL: a request for a run.
        BACKFILL: a backfill of a past period.
    """

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
    BACKFILL = "backfill"


@frozen
class ScheduleRef:
    """A task's reference to the schedule that created it.

    Attributes:
        schedule: the schedule's name.
        revision: revision of the schedule when the task was placed.
        nominal: the occurrence's instant.
        cause: why the task was placed.
        mark: distinguishes the schedule from an earlier schedule with the same name.
        reports: whether the schedule must be notified of the task's end.
        previous: the instant of the timing before `nominal`; `None` if there is none.
        next: the instant of the timing after `nominal`.
        is_buffered: whether the task is a backfill run that waits for the schedule's other runs to end.
    """

    schedule: str
    revision: int
    nominal: Millis
    cause: Cause = Cause.SCHEDULE
    mark: str = ""
    reports: bool = False
    previous: Millis | None = None
    next: Millis | None = None
    is_buffered: bool = False

    @property
    def is_by_timing(self) -> bool:
        """Whether the task was created by the schedule's timing, not by a request."""
        return self.cause in {Cause.SCHEDULE, Cause.CATCH_UP}


@frozen
class NodeRef:
    """A task's reference to its node in a topology.

    Attributes:
        topology: the id of the topology's task.
        run: number of the topology's run, counted from 1.
        key: the node's name.
        inputs: whether the node receives its parents' results.
        note: why the node was cancelled, unless its user cancelled it, or a note that its rollback has failed for good;
            see `domain.topologies.run_state.status_of`.
    """

    topology: TaskId
    run: int
    key: str
    inputs: bool = False
    note: str = ""


@frozen
class Progress:
    """Progress of an attempt, as a number from 0 to 100 and a short message.

    Characters that UTF-8 cannot encode are escaped.
    """

    percent: int
    message: str = ""

    def __post_init__(self) -> None:
        """Escape the characters that cannot be stored, and truncate the message."""
        message = writable(self.message)
        object.__setattr__(self, "message", message[: most_characters(message, MAX_PROGRESS_MESSAGE_LENGTH)])


class RequestedAction(StrEnum):
    """A request to a running attempt."""

    PAUSE = "pause"
    CANCEL = "cancel"


@frozen
class Task(TaskOptions):
    """The record of a task, which is the single source of truth about the task.

    Attributes:
        due_at: when its user wants it to run.
        order: its ordered key; `None` if it has no ordered key.
        order_number: its number in the line of its ordered key.
        schedule_ref: the schedule occurrence that it runs; `None` if it has none.
        node_ref: the node of a topology that it runs; `None` if it is not a node.
        parent_task_id: the task that started it, if any; not the topology of a node.
        group: id of the group that it is a member of; `None` if it is in no group.
        completes: id of the group whose members must end before it runs; `None` if it does not wait for a group.
        after: the tasks that must end before it starts; `None` if there are none.
        has_dependents: whether other tasks wait for its end.
        topology_schedule_ref: for a node, the schedule occurrence that its topology runs; `None` if there is no such
            occurrence.
        next_at: time of its next check, which is the planned start of its next attempt.
        generation: incremented only when a new check is set; timers, messages and claims contain the generation.
        version: incremented by every write; serves as the ETag and orders events.
        fence: incremented by every claim; checked by every write of an attempt. Its high digits are the epoch.
        attempt: number of started attempts, of the work or of its rollback; a pause subtracts one.
        sent: whether this generation's message was sent by the process that enqueued the task, and not left to the
            trigger.
        nonce: nonce of the last write; if a writer finds its own nonce after a rejection, its write was applied.
        lease_worker: the holder of the lease; kept after the lease's end, to show the last worker.
        lease_expires_at: end of the lease, which may be taken over after the largest assumed clock difference.
        unacknowledged: number of consecutive pull worker leases, including the current one, that no client has
            acknowledged; `None` after an acknowledgement, and for leases of worker functions.
        lease_nonce: nonce of the latest claim by a pull worker, which only the lease's id contains, or by a worker that
            runs handler packages; `None` if there was no such claim.
        deferred_fence: the fence of the last attempt whose target accepted the work and will report its end later.
        job: the ARN of the AWS job of the current or latest attempt.
        requested_action: the action that its user requests of the running attempt.
        waiting_for: description of why its last check did not start an attempt; removed when an attempt ends.
        waits: reasons and start times of its waits, except the wait for its due time, oldest first; kept after its end.
        rate_places: its places in the lines of its rates by key, in the units of `duetime.domain.rates`.
        checkpoint: checkpoint that a paused attempt left for the next attempt; JSON text in UTF-8.
        started_at: when the first attempt started.
        started_late: whether it started late enough for an event, and its target was called. The flag is written after
            the call and not by a claim, because a claim may be undone.
        run_at: planned start of the current or last attempt.
        finished_at: when the outcome had been stored and all follow-ups were done.
        expires_at: when the record may be removed; set by terminal writes only.
        attempt_history: the last attempts, oldest first.
        reopened_fence: for a topology, the fence at which it was last retried after its end; runs that started under
            this fence or an older fence are over. `None` if it was never retried.
        rerun_nodes: for a topology, the nodes that its last retry named; they run again with all their dependents.
        reopened_at: when it was last retried after its end; its attempts and waits are counted from this time.
        traceparent: trace of its creation, which its attempts continue; `None` if the request had no trace.
        erased: whether its user deleted it; users no longer see it, and everything else treats it as ended.
        actions: history of actions on it, except a cancellation before its start.
        cancellation: who cancelled it before its start; after this cancellation, no action is possible.
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
    order: OrderKey | None = None
    order_number: int | None = None
    schedule_ref: ScheduleRef | None = None
    node_ref: NodeRef | None = None
    parent_task_id: TaskId | None = None
    group: str | None = None
    completes: str | None = None
    after: Dependencies | None = None
    has_dependents: bool = False
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
    lease_nonce: str | None = None
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
        """Whether the task exists and belongs to an owner."""
        return self.owner == owner and not self.erased

    @property
    def claims(self) -> int:
        """The number of the task's claims, which is its fence without the epoch."""
        return self.fence % FENCES_PER_EPOCH

    @property
    def fair_share(self) -> str:
        """The part of its fair key to which the task belongs; empty if it has no fair key."""
        return fair_share(self.id, self.fair_key, self.fair_weight)

    @property
    def late_at(self) -> Millis | None:
        """When a late start is reported; `None` if no report was requested.

        For a task that was due before its creation, the time is measured from its creation.
        """
        if self.notify_on is None or self.notify_on.late_seconds is None or self.waits_for_group:
            return None
        return max(self.due_at, self.created_at) + self.notify_on.late_seconds * SECOND

    @property
    def long_at(self) -> Millis | None:
        """When the attempt is reported as a long run; `None` if no report is requested or no attempt has started."""
        if self.notify_on is None or self.notify_on.running_seconds is None or self.run_at is None:
            return None
        return self.run_at + self.notify_on.running_seconds * SECOND

    @property
    def start_by(self) -> Millis | None:
        """The latest time at which the task's first attempt may start; `None` if there is no limit, or no limit yet.

        For a task that was due before its creation, the time limit starts at its creation. For a node, the time limit
        starts at the due time, which depends on the node's parents. A group's following task has no limit yet while it
        waits for the members.
        """
        if self.expires_seconds is None or self.state is State.BLOCKED or self.waits_for_group:
            return None
        return max(self.due_at, self.created_at) + self.expires_seconds * SECOND

    @property
    def retry_by(self) -> Millis | None:
        """The latest time at which another attempt may start; `None` if there is no limit, or no limit yet."""
        seconds = self.retry.max_duration_seconds
        if seconds is None or self.started_at is None:
            return None
        return max(self.started_at, self.reopened_at or 0) + seconds * SECOND

    def overdue_at(self, started_at: Millis) -> Millis:
        """When an attempt with the given start exceeds its time limit."""
        return started_at + self.timeout_seconds * SECOND

    @property
    def has_expired(self) -> bool:
        """Whether the task has failed because its first attempt did not start in time."""
        is_so = self.state is State.FAILED and self.started_at is None
        return is_so and self.error is not None and self.error.type == EXPIRED

    @property
    def was_dropped(self) -> bool:
        """Whether the task was dropped by its schedule or group, not by its user, before its target was called."""
        if self.error is None or self.error.type != SKIPPED:
            return False
        # The error of an attempt can have the same name. A dropped task may have attempts whose workers were lost.
        return all(each.outcome is AttemptOutcome.LOST for each in self.attempt_history)

    @property
    def schedule_run(self) -> ScheduleRef | None:
        """The schedule occurrence that the task, or its node's topology, runs; `None` if there is none."""
        return self.schedule_ref or self.topology_schedule_ref

    @property
    def scheduled_at(self) -> Millis:
        """The nominal time of the task's run: the schedule occurrence's instant, or the due time of any other task."""
        return self.due_at if self.schedule_run is None else self.schedule_run.nominal

    @property
    def is_topology(self) -> bool:
        """Whether the task runs a topology."""
        return isinstance(self.target, TopologyTarget)

    @property
    def waits_for_tasks(self) -> bool:
        """Whether the task may not start until the tasks in its `after` let it start."""
        return self.after is not None and not self.after.is_met

    @property
    def waits_for_group(self) -> bool:
        """Whether the task's last check found open members of the group that must end before it runs."""
        return self.completes is not None and (self.waiting_for or "").startswith(GROUP_AWAITED)

    @property
    def is_postponed(self) -> bool:
        """Whether the task's last check postponed it, and its user has not changed its due time since then.

        If the task was run before its due time, its next check may also come before the due time.
        """
        return self.waiting_for is not None and self.next_at != self.due_at

    @property
    def was_never_let_start(self) -> bool:
        """Whether the task ended because the tasks in its `after` never let it start."""
        return self.waits_for_tasks and self.state is State.CANCELLED and self.cancellation is None

    @property
    def definition(self) -> str | None:
        """Name of the definition that the task runs; `None` for a graph without a definition, or for other tasks."""
        return None if (ref := definition_of(self.target)) is None else ref.name

    @property
    def is_terminal(self) -> bool:
        """Whether an outcome is stored."""
        return self.state in TERMINAL

    @property
    def outcome_at(self) -> Millis:
        """When the task ended; this time does not change if follow-ups are repeated."""
        last = self.attempt_history[-1] if self.attempt_history else None
        is_of_last = last is not None and last.started_at and last.started_at >= (self.reopened_at or 0)
        return last.started_at + last.took if last and is_of_last else self.next_at

    @property
    def outcome_id(self) -> str:
        """Identifies the outcome of an ended task.

        The attempt number is not enough, because the next outcome can have the same attempt number.
        """
        # This is the fence of the attempt that led to the outcome; repeated follow-ups have later fences.
        fence = self.attempt_history[-1].fence if self.attempt_history else 0
        return f"{self.id}-{fence}" if self.reopened_at is None else f"{self.id}-{fence}-{self.reopened_at}"

    @property
    def awaiting_notification(self) -> bool:
        """Whether the current attempt's target has accepted the work, so the lease lasts until its notification."""
        return self.deferred_fence == self.fence

    @property
    def pull_queue(self) -> str:
        """The pulled type on whose queue the task waits; empty for the queues of the worker functions."""
        return pull_queue_of(self.type, self.target, self.state)

    @property
    def lateness(self) -> Millis | None:
        """How long after the due time the first attempt started (see `lateness_of`); `None` before the start."""
        return lateness_of(self.started_at, self.due_at, self.created_at, self.schedule_ref, self.actions)

    @property
    def contents_outside(self) -> tuple[Content, ...]:
        """The content that is stored outside the record."""
        return tuple(
            content for content in (self.payload, self.result, self.checkpoint) if content and content.is_outside
        )

    @property
    def contents_without_expiry(self) -> tuple[Content, ...]:
        """The content whose expiry must be set once the task has ended.

        The result of a successful task has an expiry from the start. Only a node's result has no expiry at first,
        because it is kept as long as its topology.
        """
        has_one = self.state is State.SUCCEEDED and self.node_ref is None
        kept = (self.payload, self.checkpoint, None if has_one else self.result)
        return tuple(content for content in kept if content and content.is_outside)

    @property
    def may_have_attempts_outside(self) -> bool:
        """Whether some of the task's oldest attempts may be stored outside its record."""
        return len(self.attempt_history) >= ATTEMPTS_INLINE and self.claims > ATTEMPTS_INLINE

    @property
    def has_contents_to_expire(self) -> bool:
        """Whether anything outside the task's record needs an expiry once the task has ended."""
        return bool(self.contents_without_expiry) or self.may_have_attempts_outside


def fence_of_epoch(fence: int, epoch: int) -> int:
    """A fence raised to an epoch, with the same number of claims; unchanged if it is in this or a later epoch."""
    return max(fence, epoch * FENCES_PER_EPOCH + fence % FENCES_PER_EPOCH)


def lateness_of(
    started_at: Millis | None,
    due_at: Millis,
    created_at: Millis,
    schedule_ref: ScheduleRef | None,
    actions: ActionHistory,
) -> Millis | None:
    """How long after its due time a task's first attempt started, in milliseconds; `None` before the start.

    If the task was due before its creation, before a change to its due time, or before it was resumed, lateness counts
    from that action, as in the metric, because the task could not start earlier. For a schedule's run, lateness counts
    from the due time, no matter how late the schedule creates the run.
    """
    if started_at is None:
        return None
    since = due_at if schedule_ref is not None else max(due_at, created_at)
    for each in actions.records:
        is_new_time = each.action is Action.RESUMED or (each.action is Action.UPDATED and "due_at" in each.fields)
        if is_new_time and each.at <= started_at:
            since = max(since, each.at)
    return max(0, started_at - since)
