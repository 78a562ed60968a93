"""Processes pull workers' reports on leased tasks: heartbeats, step results, and the ends of attempts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import (
    AttemptOverdue,
    FenceMismatch,
    LeaseNotFound,
    LockLost,
    NotifiedOtherwise,
    StateConflict,
    Unavailable,
)
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.domain.tasks.attempt_results import Ending, Failed, Postponed, Stopped, Yielded
from duetime.domain.tasks.attempt_run import Run, acknowledged, late_start
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.targets import PullTarget
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND
from duetime.ports.queues import Delivery
from duetime.services.content_retention import write_checkpoint
from duetime.services.enqueue import message_for
from duetime.services.outcomes.outcome import says_the_same
from duetime.services.pull.lease import RUN_ONLY
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.pull_leases import LeaseKey, Pullers
    from duetime.domain.tasks.task import Progress, Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.queues import PullQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.outcomes.completion_steps import TracebackRecorder
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.pull.lease import PullLocks
    from duetime_common.steps import StepKeeper

RELEASED = "a worker: the last one released it"
"""The wait reason of a task that its worker has released."""


@frozen
class LeaseReports:
    """Processes reports on leases.

    Every method raises `TypeNotPulled` if the caller may not pull the lease's type, `LeaseNotFound` if the task does
    not exist, and `FenceMismatch` if the lease has ended and the task no longer belongs to this worker.
    """

    stores: Stores
    queues: PullQueues
    outcome_writer: OutcomeWriter
    pull_locks: PullLocks
    pullers: Pullers
    traceback_recorder: TracebackRecorder
    attempt_steps: Callable[[Task], StepKeeper]
    runtime: Runtime

    def heartbeat(
        self, caller: str, key: LeaseKey, progress: Progress | None = None, checkpoint: bytes | None = None
    ) -> Task:
        """Renew a lease, at most until its attempt's timeout. The worker must obey the task's `requested_action`.

        Args:
            caller: the caller.
            key: key of the lease.
            progress: progress of the work, or `None`.
            checkpoint: checkpoint for the next attempt, as JSON text in UTF-8, or `None`.

        Raises:
            AttemptOverdue: the attempt has exceeded its timeout.
            LockLost: a lock of the task was released by force.
        """
        task = self._read(caller, key)
        if task.fence != key.fence or task.state is not State.RUNNING:
            raise FenceMismatch(task)
        now = self.runtime.now()
        overdue_at = task.overdue_at(task.run_at or now)
        if now >= overdue_at:
            raise AttemptOverdue(task)
        until = min(now + key.length, overdue_at)
        # A lease that is longer than the attempt's timeout keeps its end.
        until = max(until, task.lease_expires_at or 0)
        if not self.pull_locks.renew(task, until):
            raise LockLost(task)
        sets: TaskChanges = {"lease_expires_at": until, **acknowledged(task)}
        if progress is not None:
            sets["progress"] = progress
        sets |= late_start(task, task.started_at)
        # A delayed renewal must not shorten a lease that a later renewal has extended.
        guard = Guard(fence=key.fence, leased_until_before=until)
        result = self._write(task, Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), guard, sets), checkpoint)
        if result.task is None or result.task.fence != key.fence or result.task.state is not State.RUNNING:
            raise FenceMismatch(result.task or task)
        self._keep_away(task, key, until + LEASE_RETURN_MARGIN)
        return result.task

    def _write(self, task: Task, write: Write, checkpoint: bytes | None) -> WriteResult:
        tasks = self.stores.tasks
        if checkpoint is None:
            return tasks.apply(write)
        result = write_checkpoint((tasks, self.stores.contents), self.runtime, task, checkpoint, write)
        if isinstance(result, Applied):
            return result
        # A concurrent heartbeat may have extended the lease again; the checkpoint must still be kept.
        write = replace(write, nonce=self.runtime.nonce(), guard=Guard(fence=task.fence), sets={})
        return write_checkpoint((tasks, self.stores.contents), self.runtime, task, checkpoint, write)

    def steps(self, caller: str, key: LeaseKey) -> dict[str, bytes]:
        """The stored step results of a leased task, by step name."""
        return dict(self._steps(self._read(caller, key), key).load_run())

    def store_step(self, caller: str, key: LeaseKey, name: str, result: bytes, took: Millis) -> bytes:
        """Store a step's result, unless a result is already stored; returns the stored result.

        Raises:
            FenceMismatch: the task has ended.
        """
        task = self._read(caller, key)
        if task.is_terminal:
            raise FenceMismatch(task)
        return self._steps(task, key).keep(name, result, self.runtime.now() - took)

    def _steps(self, task: Task, key: LeaseKey) -> StepKeeper:
        # The lease's attempt may no longer be the current attempt.
        return self.attempt_steps(replace(task, fence=key.fence))

    def finish(self, caller: str, key: LeaseKey, ending: Ending) -> Task:
        """Record the end of an attempt. An identical repeat changes nothing and gets the same response.

        A report after the end of the lease is also accepted, unless another worker has taken the task.

        Raises:
            NotifiedOtherwise: a different end was reported earlier.
            StateConflict: the worker reports a pause or cancellation that no user has requested.
        """
        task = self._read(caller, key)
        if task.fence != key.fence or task.state is not State.RUNNING:
            return self._repeated(task, key, ending)
        _check_asked(task, ending)
        now = self.runtime.now()
        started = task.run_at or now
        end = self.outcome_writer.finish(Run(task, started, max(now, started)), ending, RUN_ONLY)
        if not isinstance(end, Applied):
            return self._repeated(self._read(caller, key), key, ending)
        if isinstance(ending, Failed):
            self.traceback_recorder.record(task, ending)
        self.runtime.telemetry.measure("duration", max(0, now - started), type=task.type)
        is_open = end.task.is_terminal and end.task.finished_at is None
        if is_open:
            self.outcome_writer.completion.close(end.task)
        self.pull_locks.give_back(task, limited_by=key.limited_by, closes_elsewhere=is_open)
        self._delete(task, key)
        return end.task

    def release(self, caller: str, key: LeaseKey) -> Task:
        """Release a task at once, so that any worker may lease it; no attempt is counted."""
        return self.finish(caller, key, Postponed(self.runtime.now(), RELEASED))

    def leased_task(self, caller: str, key: LeaseKey) -> Task:
        """The task that a worker runs under a lease."""
        task = self._read(caller, key)
        if task.fence != key.fence or task.state is not State.RUNNING:
            raise FenceMismatch(task)
        return task

    def _read(self, caller: str, key: LeaseKey) -> Task:
        self.pullers.check(caller, [key.pull_queue])
        task = self.stores.tasks.read(key.task_id)
        if task is None or task.type != key.pull_queue or not isinstance(task.target, PullTarget):
            raise LeaseNotFound
        if not key.is_of(task):
            raise LeaseNotFound
        return task

    def _repeated(self, task: Task, key: LeaseKey, ending: Ending) -> Task:
        """Handle a report on a lease that has ended; the report is accepted only if the same report was made before."""
        if isinstance(ending, Postponed):
            is_waiting = task.state is State.WAITING and task.waiting_for == ending.reason
            if task.fence == key.fence and (is_waiting or task.state is State.CANCELLED):
                return task
        elif task.attempt_history and task.attempt_history[-1].fence == key.fence:
            if says_the_same(self.stores.contents, task, ending):
                return task
            raise NotifiedOtherwise(task)
        raise FenceMismatch(task)

    def _keep_away(self, task: Task, key: LeaseKey, until: Millis) -> None:
        wait = -(-(until - self.runtime.now()) // SECOND)
        try:
            self.queues.come_back([_delivery(task, key)], [wait])
        except Unavailable as error:
            # The message returns too early, and is hidden again when its claim is rejected.
            self.runtime.telemetry.note("visibility was not changed", error=str(error))

    def _delete(self, task: Task, key: LeaseKey) -> None:
        try:
            self.queues.delete([_delivery(task, key)])
        except Unavailable as error:
            # The message returns after the lease, and is deleted then.
            self.runtime.telemetry.note("messages were not deleted", error=str(error))


def _delivery(task: Task, key: LeaseKey) -> Delivery:
    return Delivery(message_for(task), key.receipt, "")


def _check_asked(task: Task, ending: Ending) -> None:
    """Reject a worker's report of a pause or cancellation that no user has requested."""
    if isinstance(ending, Yielded) and task.requested_action is None:
        raise StateConflict(task, "paused by its worker: no pause was requested")
    if isinstance(ending, Stopped) and task.requested_action is not RequestedAction.CANCEL:
        raise StateConflict(task, "cancelled by its worker: no cancel was requested")
