"""Examines dead letters, which are messages that were delivered too often, so that no task is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, MAX_CLOCK_DIFFERENCE, MAX_DELAY
from duetime.domain.tasks.states import LEASED, STARTABLE, Move, State
from duetime.domain.tasks.targets import outlives_workers
from duetime.domain.times import SECOND
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from duetime.services.outcomes.outcome import fail_unwatched
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.outcomes.completion_steps import CompletionSteps
    from duetime.services.outcomes.outcome import OutcomeWriter


@frozen
class DeadLetterService:
    """Decides what happens to the task of a dead letter."""

    tasks: TaskStore
    queues: WorkQueues
    enqueuer: Enqueuer
    outcome_writer: OutcomeWriter
    completion: CompletionSteps
    runtime: Runtime

    def bury(self, message: Message) -> bool:
        """Process one dead letter.

        The task fails only if its lease has ended, it is in the message's generation, and it has used up its attempts.
        Otherwise, it is scheduled again if it is in the message's generation, not finished, and not paused or blocked.

        Returns:
            Whether the letter was processed; `False` if the letter must be redelivered.

        Raises:
            Unavailable: the store did not answer; the letter must be redelivered.
        """
        if message.late_at is not None:
            # The timer behind the message still exists, and the next recovery scan checks that timer again.
            return True
        task = self.tasks.read(message.task_id)
        if task is None or task.generation != message.generation:
            return True
        if task.is_terminal:
            return task.finished_at is not None or self._sent_after(task, self._lease_over_at(task))
        if task.state in LEASED:
            return self._leased(task)
        if task.state in STARTABLE:
            self.runtime.telemetry.count("dead_letters_sent_again")
            guard = Guard(version=task.version)
            return isinstance(self.enqueuer.move(task, Move.REPLACE, task.next_at, guard, {}), Applied)
        return True

    def _leased(self, task: Task) -> bool:
        now = self.runtime.now()
        over_at = self._lease_over_at(task)
        spent = not task.retry.allows_after(task.attempt) and not outlives_workers(task.target)
        # An unacknowledged lease may not count as an attempt; the worker that takes over decides.
        spent = spent and not task.unacknowledged
        if over_at <= now and spent and not task.rollback_on_failure and task.state is not State.ROLLING_BACK:
            return self._give_up(task)
        # A new message, with a receive count of zero, takes the task over after the lease. A worker also decides about
        # a rollback, because a worker knows the phases that the target offers.
        return self._sent_after(task, over_at + LEASE_RETURN_MARGIN)

    def _lease_over_at(self, task: Task) -> Millis:
        return (task.lease_expires_at or 0) + MAX_CLOCK_DIFFERENCE

    def _sent_after(self, task: Task, at: Millis) -> bool:
        delay = max(0, min(at - self.runtime.now(), MAX_DELAY)) // SECOND
        return not self.queues.send([Outgoing(message_for(task), delay)])

    def _give_up(self, task: Task) -> bool:
        end = fail_unwatched(self.outcome_writer, task)
        if isinstance(end, Applied) and end.task.finished_at is None:
            self.completion.close(end.task)
        return isinstance(end, Applied)
