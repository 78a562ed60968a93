"""Processes reports on attempts from asynchronous targets, and from running handlers in their own packages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.dispatch.enqueue_plan import on_the_minute
from duetime.domain.errors import FenceMismatch, LockLost, NotifiedOtherwise, StateConflict
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.attempt_run import Run, acknowledged
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.states import LEASED, Move, State
from duetime.domain.tasks.targets import HandlerTarget, HttpTarget, Phase
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.topologies.watchdog_times import deferred_until
from duetime.services.content_retention import write_checkpoint
from duetime.services.outcomes.outcome import says_the_same
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.attempt_run import AttemptToken
    from duetime.domain.tasks.task import Progress, Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.targets import StepKeepers
    from duetime.ports.tasks import ContentStore, TaskStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.locking import LockManager
    from duetime.services.outcomes.completion_steps import CompletionSteps
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.tasks.read import TaskReader
    from duetime_common.steps import StepKeeper

_TIME_IS_OVER = "the attempt's deadline has passed"


@frozen
class AttemptReports:
    """Processes reports from asynchronous targets about the progress and the end of attempts.

    Every method raises `TaskNotFound` if the task does not exist or belongs to another owner.
    """

    task_reader: TaskReader
    stores: Stores
    enqueuer: Enqueuer
    outcome_writer: OutcomeWriter
    completion: CompletionSteps
    lock_manager: LockManager
    runtime: Runtime

    def notify(self, owner: str, task_id: TaskId, fence: int, ending: Ending) -> Task:
        """Record the end of an attempt as reported by its target.

        An identical repeat changes nothing and gets the same response.

        Raises:
            FenceMismatch: the fence does not belong to the running attempt, or the attempt's deadline has passed.
            NotifiedOtherwise: a different end was reported earlier.
            StateConflict: AWS runs a job for the task, and only the end of that job ends the attempt.
        """
        task = self.task_reader.record(owner, task_id)
        if is_job(task.target):
            raise StateConflict(task, "reported as ended: the end of its job in AWS is its outcome")
        return self.end(task, fence, ending)

    def end(self, task: Task, fence: int, ending: Ending) -> Task:
        """Like `notify`, but also ends attempts for which AWS runs a job.

        Args:
            task: the record as just read.
            fence: fence of the attempt.
            ending: how the attempt ended.

        Raises:
            FenceMismatch: as in `notify`.
            NotifiedOtherwise: as in `notify`.
        """
        if task.fence != fence or task.state is not State.RUNNING:
            return self._repeated(task, fence, ending)
        now = self.runtime.now()
        if (task.lease_expires_at or 0) < now:
            raise FenceMismatch(task, _TIME_IS_OVER)
        run = Run(task, task.run_at or now, now)
        end = self.outcome_writer.finish(run, ending, _offered(task))
        if not isinstance(end, Applied):
            return self._repeated(self.task_reader.record(task.owner, task.id), fence, ending)
        if not isinstance(ending, Postponed):
            self.runtime.telemetry.measure("duration", max(0, now - run.started_at), type=task.type)
        scopes = set(LockScope)
        if end.task.is_terminal and end.task.finished_at is None:
            self.completion.close(end.task)
            # The worker that runs the cleanup takes over the lock that covers all phases of the task.
            scopes = {LockScope.RUN}
        for claim in self.lock_manager.claims(task, scopes):
            self.lock_manager.give_back(task, claim)
        return end.task

    def heartbeat(self, owner: str, task_id: TaskId, fence: int, progress: Progress | None) -> Task:
        """Record the progress of a running attempt, and extend the deadline of a deferred attempt.

        Raises:
            FenceMismatch: the fence does not belong to the running attempt, or the attempt's deadline has passed.
        """
        task = self.task_reader.record(owner, task_id)
        now = self.runtime.now()
        if task.fence != fence or task.state not in LEASED:
            raise FenceMismatch(task)
        if (task.lease_expires_at or 0) < now:
            raise FenceMismatch(task, _TIME_IS_OVER)
        sets: TaskChanges = acknowledged(task)
        if progress is not None:
            sets["progress"] = progress
        guard = Guard(owner=owner, fence=fence)
        if task.awaiting_notification:
            deadline = deferred_until(task, now)
            # The time is rounded to the minute, so that all heartbeats within a minute share one check.
            at = on_the_minute(deadline + LEASE_RETURN_MARGIN, now, self.enqueuer.look_ahead)
            self.enqueuer.remind(task, at)
            if not all(self.lock_manager.renew(task, claim, deadline) for claim in self.lock_manager.claims(task)):
                raise LockLost(task)
            sets["lease_expires_at"] = deadline
            # A delayed heartbeat must not shorten the deadline that a later heartbeat has set.
            guard = replace(guard, leased_until_before=deadline)
        result = self.stores.tasks.apply(Write(task_id, Move.HEARTBEAT, self.runtime.nonce(), guard, sets))
        if result.task is None or result.task.fence != fence or result.task.state not in LEASED:
            raise FenceMismatch(result.task or task)
        return result.task

    def _repeated(self, task: Task, fence: int, ending: Ending) -> Task:
        """Handle a report on an ended attempt; the report is accepted if it equals the last attempt's recorded end."""
        if not task.attempt_history or task.attempt_history[-1].fence != fence:
            raise FenceMismatch(task)
        if says_the_same(self.stores.contents, task, ending):
            return task
        raise NotifiedOtherwise(task)


def _offered(task: Task) -> frozenset[Phase]:
    """The rollback, if a target may offer it; a worker knows a handler's phases, and skips a missing rollback."""
    match task.target:
        case HttpTarget(phases=phases):
            return phases
        case HandlerTarget():
            return frozenset({Phase.ROLLBACK})
        case _:
            return frozenset()


@frozen
class PackagedAttempts:
    """Processes reports from handlers in their own packages; the waiting workers renew the attempts' leases.

    Attributes:
        attempt_steps: creates the store for the steps of an attempt's phase.
    """

    tasks: TaskStore
    contents: ContentStore
    attempt_steps: StepKeepers
    runtime: Runtime

    def task_of(self, token: AttemptToken) -> Task | None:
        """The task of an attempt; `None` if the attempt has ended or another attempt has the task."""
        task = self.tasks.read(token.task_id)
        return task if task is not None and token.is_of(task) else None

    def report(self, task: Task, progress: Progress | None) -> Task | None:
        """Store the progress; returns the record, with any requested action, or `None` if the attempt is lost."""
        if progress is None or task.is_terminal:
            return task
        sets: TaskChanges = {"progress": progress}
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence), sets)
        result = self.tasks.apply(write)
        return result.task if isinstance(result, Applied) else None

    def save_checkpoint(self, task: Task, checkpoint: bytes) -> bool:
        """Store a checkpoint; returns whether the attempt still has the task."""
        if task.is_terminal:
            return False
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence))
        result = write_checkpoint((self.tasks, self.contents), self.runtime, task, checkpoint, write)
        return isinstance(result, Applied)

    def steps(self, task: Task, phase: Phase) -> StepKeeper:
        """The store for the steps of a phase."""
        return self.attempt_steps(lambda: True, task, phase)
