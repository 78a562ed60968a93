"""Ends attempts whose AWS jobs have ended; events and periodic checks start the lookups."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.operating_parameters import JOB_STOP_CHECK, SHORTEST_CHECK_INTERVAL
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.attempt_results import Failed, Postponed, Stopped, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN, is_job, task_of_job
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND
from duetime.domain.topologies.watchdog_times import job_deadline, reminders, search_ends_at
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending, Succeeded
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import Jobs
    from duetime.ports.tasks import TaskStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.attempt_reports import AttemptReports


_EVENT_RETURNS = 5 * SECOND
"""Delay before the retry of an event that arrived before the start of its job was recorded."""
_UNANSWERED = "the start of its job got no response"


@frozen
class JobWatcher:
    """Watches jobs. An event only triggers a lookup of the job, so a lost, late or repeated event does no harm.

    Each timer check sets the next timer first, so that a crash cannot end the checks.
    """

    tasks: TaskStore
    jobs: Jobs
    attempt_reports: AttemptReports
    enqueuer: Enqueuer
    runtime: Runtime

    def take_event(self, ended_job: tuple[str, ...]) -> DeleteMessage | RedeliverMessage:
        """Process the event that reports a job's end.

        Args:
            ended_job: names the job, as in `Message`.

        Raises:
            Unavailable: the store or the job's service did not answer; the event must be processed again.
        """
        task_id = _task_of(self.jobs.name(ended_job))
        task = None if task_id is None else self.tasks.read(task_id)
        if task is None or not is_job(task.target) or task.state is not State.RUNNING:
            return DeleteMessage("no attempt waits for the job")
        now = self.runtime.now()
        if not task.awaiting_notification:
            return RedeliverMessage(now + _EVENT_RETURNS, "its start is not recorded yet")
        found = self._with_job(task)
        if found is None or not self._end(found):
            # The job belongs to an earlier attempt, or the service's eventually consistent answer does not include it
            # yet.
            self.enqueuer.remind(task, now + JOB_STOP_CHECK)
        return DeleteMessage("looked up")

    def check_job(self, task: Task) -> None:
        """End an attempt whose job has ended; stop the job if it has timed out or a cancellation is requested.

        If the start of the job got no response, the job is searched for first.

        Args:
            task: the record as just read, with its running attempt.

        Raises:
            Unavailable: the store did not answer; the job must be checked again.
        """
        now = self.runtime.now()
        for at in reminders(task, task.lease_expires_at or now, now, self.enqueuer.look_ahead):
            self.enqueuer.remind(task, at)
        found = self._with_job(task)
        if found is None or self._end(found):
            return
        if found.requested_action is RequestedAction.CANCEL or now >= job_deadline(found):
            self.enqueuer.remind(found, now + JOB_STOP_CHECK)
            self._stop(found)
            self._end(found)

    def _with_job(self, task: Task) -> Task | None:
        """The record with its job, or `None` if the job is not found. A job found by a search is recorded."""
        if task.job is not None:
            return task
        now = self.runtime.now()
        try:
            job = self.jobs.find(task)
        except Unavailable as error:
            self.runtime.telemetry.note("the search for a job failed", task=task.id.text, error=str(error))
            if now >= job_deadline(task):
                self._report(task, failure(JOB_UNKNOWN, f"{_UNANSWERED}, and the search for it failed: {error}"))
            return None
        if job is None:
            self._search_on(task, now)
            return None
        write = Write(task.id, Move.DEFER, self.runtime.nonce(), Guard(fence=task.fence), {"job": job})
        result = self.tasks.apply(write)
        return result.task if isinstance(result, Applied) else None

    def _search_on(self, task: Task, now: Millis) -> None:
        """Schedule another search for a job that was not found; after some time, conclude that no job was started."""
        ends_at = search_ends_at(task)
        if now < ends_at:
            # A check may begin slightly before its scheduled time, so a second is added.
            self.enqueuer.remind(task, ends_at + SECOND)
            return
        self.runtime.telemetry.note("a job was not found", task=task.id.text)
        if task.requested_action is RequestedAction.CANCEL:
            unknown = f"{_UNANSWERED}, and its service lists no job with its name"
            self._report(task, Stopped(TaskError(JOB_UNKNOWN, unknown)))
        else:
            self._report(task, Postponed(now, _UNANSWERED))

    def _end(self, task: Task) -> bool:
        """End the attempt if its job has ended, and return whether the job has ended.

        If the job's service does not answer, a later check asks again.
        """
        try:
            ending = self.jobs.ending(task)
        except Unavailable as error:
            self.runtime.telemetry.note("a job could not be read", task=task.id.text, error=str(error))
            return False
        now = self.runtime.now()
        if ending is None or _is_too_young(task, ending, now):
            return False
        self._report(task, _meant(task, ending, now))
        return True

    def _report(self, task: Task, ending: Ending) -> None:
        with suppress(RequestError):
            # The fence guards this report, which is rejected if the attempt has ended in the meantime.
            self.attempt_reports.end(task, task.fence, ending)

    def _stop(self, task: Task) -> None:
        try:
            self.jobs.stop(task)
        except Unavailable as error:
            self.runtime.telemetry.note("a job could not be stopped", task=task.id.text, error=str(error))
        else:
            self.runtime.telemetry.count("jobs_stopped")


def _task_of(name: str) -> TaskId | None:
    """The task id in a job's name, if any; a job that duetime did not start can have any name."""
    text = task_of_job(name)
    with suppress(InvalidTaskId):
        return None if text is None else TaskId.parse(text)
    return None


def _is_too_young(task: Task, ending: Succeeded | Failed, now: Millis) -> bool:
    """Whether a job is so new that its service may not list the job yet."""
    is_unknown = isinstance(ending, Failed) and ending.error.type == JOB_UNKNOWN
    return is_unknown and now - (task.run_at or now) < SHORTEST_CHECK_INTERVAL


def _meant(task: Task, ending: Succeeded | Failed, now: Millis) -> Succeeded | Failed | Stopped:
    """The result of an attempt whose job has ended: cancelled or timed out if that is why the job stopped."""
    if not isinstance(ending, Failed):
        return ending
    if task.requested_action is RequestedAction.CANCEL:
        return Stopped()
    if ending.error.type == JOB_STOPPED and now >= job_deadline(task):
        return failure("Timeout", f"the job did not end within {task.notify_within_seconds} s")
    return ending
