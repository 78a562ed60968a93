"""Runs the steps that follow an outcome. Any step may run twice, because all steps are repeated after a crash."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.dispatch.enqueue_plan import LateTimer
from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.limits import INLINE_EVENT_BYTES
from duetime.domain.operating_parameters import NOTICE_PAUSE, NOTICE_TRIES
from duetime.domain.tasks.attempt_results import Failed, NotSent
from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.notices import callback_spec, failure_notice, long_run_notice, outcome_origin, timed_notice
from duetime.domain.tasks.placeholders import filled_payload
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.targets import (
    ApprovalTarget,
    AwsTarget,
    CallbackTarget,
    EventTarget,
    HandlerTarget,
    HttpTarget,
    Phase,
    PullTarget,
    TopologyTarget,
)
from duetime.domain.tasks.task import after_record, unless_referenced
from duetime.domain.times import SECOND
from duetime.domain.tracebacks import AttemptTraceback
from duetime.ports.queues import Outgoing
from duetime.ports.targets import Work
from duetime.services.content_retention import let_expire, retain_open
from duetime.services.enqueue import message_for
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.notices import ConsolePages, Notice
    from duetime.domain.tasks.task import Progress, Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores, TracebackStore
    from duetime.ports.targets import (
        Callbacks,
        DependencyListener,
        NodeListener,
        OccurrenceListener,
        StepKeepers,
        TargetRunner,
    )
    from duetime.ports.tasks import TaskStore
    from duetime.services.enqueue import Enqueuer, Shards
    from duetime.services.order_lines import OrderLines


_NOT_SENT_PAUSES = (SECOND, 2 * SECOND, 4 * SECOND)
"""Pauses between attempts to reach a target for its cleanup."""


class CompletionSteps(Protocol):
    """Runs the steps that follow an outcome."""

    @property
    def is_here(self) -> bool:
        """Whether the writer of the outcome runs these steps, under the attempt's lease."""
        ...

    def is_needed(self, task: Task) -> bool:
        """Whether any steps follow this task's outcome; if not, `finished_at` is written with the outcome."""
        ...

    def close(self, task: Task) -> None:
        """Run the steps until the task is finished, or delegate them."""
        ...


@frozen
class InlineCompletion:
    """Runs the steps that follow an outcome in this process, under the attempt's lease, as workers do.

    Attributes:
        retention: how long a finished task is kept.
        attempt_steps: creates the store for the steps of a cleanup.
        occurrence_listener: notified when a schedule occurrence has ended.
        node_listener: notified when a topology or one of its nodes has ended.
        dependency_listener: notified when a task that other tasks wait for has ended.
        order_lines: lets in the next task of an ordered key, before the target cleans up.
    """

    stores: Stores
    targets: TargetRunner
    runtime: Runtime
    retention: RetentionPolicy
    callback_tasks: CallbackTasks
    notice_sender: NoticeSender
    attempt_steps: StepKeepers
    occurrence_listener: Callable[[], OccurrenceListener]
    node_listener: Callable[[], NodeListener]
    dependency_listener: Callable[[], DependencyListener]
    order_lines: Callable[[], OrderLines]

    @property
    def is_here(self) -> bool:
        """Always true, because the steps run under the attempt's own lease."""
        return True

    def is_needed(self, task: Task) -> bool:
        """Whether the target cleans up, contents are stored outside the record, or a notification is requested."""
        return Phase.CLEAN in self.targets.phases(task) or _is_followed(task)

    def close(self, task: Task) -> None:
        """Let the target clean up, send notifications, let contents outside the record expire, and finish the task."""
        if task.order is not None:
            self.order_lines().release(task)
        if Phase.CLEAN in self.targets.phases(task) and not _never_began(task):
            self._clean(task)
        self.callback_tasks.create(task)
        self.notice_sender.send_failure(task)
        self._finish(task)

    def finish(self, task: Task) -> None:
        """Finish the task without cleanup and without a notice, because time is short."""
        if task.order is not None:
            self.order_lines().release(task)
        self.callback_tasks.create(task)
        self.notice_sender.leave_out(task)
        self._finish(task)

    def _finish(self, task: Task) -> None:
        now = self.runtime.now()
        if _reports(task):
            self.occurrence_listener().follow(task)
        if task.has_dependents:
            self.dependency_listener().follow(task)
        sets: TaskChanges = {"finished_at": now}
        earliest = self.node_listener().follow(task) if _is_of_a_topology(task) else 0
        if earliest is not None:
            # A node expires after its topology: `earliest` exceeds the topology's expiry by more than the largest clock
            # difference.
            expires = task.expires_at or max(earliest, now + self.retention.of(task.type))
            let_expire(self.stores.contents, task, expires)
            if task.expires_at is None:
                sets["expires_at"] = expires
        self.stores.tasks.apply(Write(task.id, Move.CLOSE, self.runtime.nonce(), Guard(fence=task.fence), sets))

    def _clean(self, task: Task) -> None:
        """Let the target clean up; a failed cleanup is reported but not retried, and does not change the outcome."""
        try:
            payload = filled_payload(self.stores.contents.fetch(task.id, task.payload), task)
        except ContentExpired as error:
            self._not_cleaned(task, type(error).__name__)
            return
        seconds = task.timeout_seconds
        deadline = self.runtime.now() + seconds * SECOND
        steps = partial(self.attempt_steps, lambda: True, task, Phase.CLEAN)
        work = Work(Phase.CLEAN, task, payload, None, deadline, seconds, _say_nothing, _ask_nothing, step_keeper=steps)
        ending = self.targets.run(work)
        for pause in _NOT_SENT_PAUSES:
            if not isinstance(ending, NotSent):
                break
            self.runtime.clock.sleep_until(self.runtime.now() + pause)
            ending = self.targets.run(work)
        if isinstance(ending, NotSent):
            self._not_cleaned(task, ending.reason)
        if isinstance(ending, Failed):
            self._not_cleaned(task, ending.error.type, traceback=ending.traceback)

    def _not_cleaned(self, task: Task, why: str, traceback: str = "") -> None:
        # The message may quote the endpoint's response.
        self.runtime.telemetry.count("cleanups_failed")
        self.runtime.telemetry.note(
            "a target could not clean up",
            task=task.id.text,
            error=why,
            **({"traceback": traceback} if traceback else {}),
        )


@frozen
class DelegatedCompletion:
    """Leaves the steps that follow an outcome to a worker; used in functions that cannot call targets."""

    queues: WorkQueues

    @property
    def is_here(self) -> bool:
        """Always false, because a worker runs the steps under its own lease."""
        return False

    def is_needed(self, task: Task) -> bool:
        """Whether a worker must check the task; always true for a handler, because only a worker knows its phases."""
        match task.target:
            case HandlerTarget():
                return True
            case HttpTarget(phases=phases):
                return Phase.CLEAN in phases or _is_followed(task)
            case PullTarget() | AwsTarget() | TopologyTarget() | ApprovalTarget() | EventTarget() | CallbackTarget():
                return _is_followed(task)

    def close(self, task: Task) -> None:
        """Send a message; if it is lost, a recovery scan finds the unfinished outcome."""
        self.queues.send([Outgoing(message_for(task), 0)])


def _is_followed(task: Task) -> bool:
    """Whether steps follow a task's outcome, regardless of the phases that its target offers."""
    is_notified = task.callback_url is not None or failure_notice(task) is not None
    is_linked = _is_of_a_topology(task) or task.has_dependents or task.order is not None
    return bool(task.has_contents_to_expire or is_notified or is_linked or _reports(task))


def _is_of_a_topology(task: Task) -> bool:
    """Whether the task is a topology or a topology node."""
    return task.node_ref is not None or isinstance(task.target, TopologyTarget)


def _never_began(task: Task) -> bool:
    """Whether the target was never called, for example because the node was cancelled, so no cleanup is needed."""
    return task.started_at is None


def _reports(task: Task) -> bool:
    return task.schedule_ref is not None and task.schedule_ref.reports


def _say_nothing(_progress: Progress | None) -> None:
    """Ignores progress, because a target that cleans up reports no progress."""


def _ask_nothing() -> None:
    """Answers no requests, because a target that cleans up receives no requests."""


_PAYLOAD = "payload"


@frozen
class CallbackTasks:
    """Creates the task that posts an outcome; each outcome has only one such task, even if the call is repeated."""

    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    shards: Shards
    callbacks: Callbacks

    def create(self, task: Task) -> None:
        """Create the callback task of an ended task that has a callback URL.

        Raises:
            Unavailable: the table did not answer.
        """
        if (url := task.callback_url) is None:
            return
        origin = outcome_origin(task)
        task_id = origin.task_id(origin.at, self.shards.at(origin.at))
        if self.stores.tasks.read(task_id) is not None:
            return
        event, expiry = self.callbacks.outcome_event(task), unless_referenced(origin.at)
        content = self.stores.contents.keep(task_id, _PAYLOAD, event, expiry, INLINE_EVENT_BYTES)
        made = new_task(
            task_id, callback_spec(task, url, event), task.owner, origin.at, origin.at, content, self.runtime.epoch
        )
        made = replace(made, next_at=max(made.next_at, self.runtime.now()), traceparent=task.traceparent)
        if not self.enqueuer.create(made):
            return
        if content.is_outside:
            retain_open(self.stores.tasks, self.stores.contents, made, expiry)
        self.enqueuer.send_due([made])


@frozen
class Repeater:
    """Repeats a call a few times, with pauses that double, until the other side accepts or rejects the call."""

    runtime: Runtime

    def repeat(self, call: Callable[[], Failed | None]) -> Failed | None:
        """Repeat a call until it succeeds, fails for good, or the tries run out; returns the last error, or `None`."""
        pause = NOTICE_PAUSE
        failed = call()
        for _ in range(NOTICE_TRIES - 1):
            if failed is None or not failed.retriable:
                break
            self.runtime.clock.sleep_until(self.runtime.now() + pause)
            pause *= 2
            failed = call()
        return failed


@frozen
class NoticeSender:
    """Sends each notice at least once, unless the receiver rejects it or no try succeeds; the task continues anyway."""

    callbacks: Callbacks
    repeater: Repeater
    runtime: Runtime

    def send_failure(self, task: Task) -> None:
        """Send a notice of a final failure, if the task asks for it."""
        if (notice := failure_notice(task)) is not None:
            self.send(task, notice)

    def leave_out(self, task: Task) -> None:
        """If a failure notice is due, log and count that it was not sent for lack of time."""
        if failure_notice(task) is not None:
            self.runtime.telemetry.count("notices_failed")
            self.runtime.telemetry.note("a notice was not sent: cleaning up took all the time", task=task.id.text)

    def send(self, task: Task, notice: Notice) -> Failed | None:
        """Send a notice; returns the last error, or `None`."""
        address = task.notify_on.to if task.notify_on else ""
        failed = self.repeater.repeat(lambda: self.callbacks.notify(task, address, notice))
        if failed is None:
            self.runtime.telemetry.count("notices_sent")
            return None
        self.runtime.telemetry.count("notices_failed")
        self.runtime.telemetry.note(
            "a notice was given up", task=task.id.text, notice=notice.kind.value, error=failed.error.type
        )
        return failed


@frozen
class LateNotices:
    """Sends one notice for each task that has not started in time, and for each attempt that has not ended in time."""

    tasks: TaskStore
    sender: NoticeSender
    runtime: Runtime

    def send(self, message: Message, late_at: Millis) -> None:
        """Send a notice that the trigger has found due, if the task is still late and has had no notice.

        If sending fails temporarily, the recovery scans of the timer's minute check the task again.

        Raises:
            Unavailable: the table did not answer.
        """
        task = self.tasks.read(message.task_id)
        if task is None or (notice := timed_notice(task, late_at, self.runtime.now())) is None:
            return
        timer = LateTimer(task.id, task.owner, late_at, message.due)
        if self.tasks.is_notified(timer):
            return
        failed = self.sender.send(task, notice)
        if failed is None or not failed.retriable:
            self.tasks.mark_notified(timer)

    def send_long_run(self, task: Task, long_at: Millis) -> None:
        """Send the notice of an attempt that runs in this process, and has not ended by `long_at`."""
        self.sender.send(task, long_run_notice(task, long_at))


@frozen
class TracebackRecorder:
    """Logs and stores tracebacks.

    Attributes:
        is_kept: whether tracebacks are stored, which costs one more write for each failed attempt, or only logged.
        retention: how long a finished task, and so its traceback, is kept.
        pages: links from log lines to the console.
    """

    store: TracebackStore
    runtime: Runtime
    is_kept: bool
    retention: RetentionPolicy
    pages: ConsolePages

    def record(self, task: Task, failed: Failed) -> None:
        """Log a traceback, and store it if the store responds; the outcome does not wait for the store."""
        if not failed.traceback:
            return
        telemetry = self.runtime.telemetry
        telemetry.note(
            "an attempt failed", error=failed.error.type, traceback=failed.traceback, **self.pages.link(task)
        )
        if not self.is_kept:
            return
        expiry = after_record(self.runtime.now() + self.retention.of(task.type))
        try:
            self.store.keep(task.id, AttemptTraceback(task.fence, failed.traceback), expiry)
        except Unavailable as error:
            telemetry.note("a traceback was not kept", error=str(error))
