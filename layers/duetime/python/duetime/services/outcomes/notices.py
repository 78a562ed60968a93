"""Tells the address that a task's creator named of a failure for good, or of a late start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import LateTimer
from duetime.domain.operating_parameters import NOTICE_PAUSE, NOTICE_TRIES
from duetime.domain.tasks.notices import failure_notice, lateness_notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.notices import Notice
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import Callbacks
    from duetime.ports.tasks import TaskStore


@dataclass(frozen=True, slots=True)
class Repeater:
    """Makes a call a few times, with a pause that doubles, until the other side takes it or rejects it."""

    runtime: Runtime

    def repeat(self, call: Callable[[], Failed | None]) -> Failed | None:
        """What went wrong the last time, or nothing."""
        pause = NOTICE_PAUSE
        failed = call()
        for _ in range(NOTICE_TRIES - 1):
            if failed is None or not failed.retriable:
                break
            self.runtime.clock.sleep_until(self.runtime.now() + pause)
            pause *= 2
            failed = call()
        return failed


@dataclass(frozen=True, slots=True)
class NoticeSender:
    """Sends notices: at least once, unless the other side rejects; the task goes on, whatever happens to them."""

    callbacks: Callbacks
    repeater: Repeater
    runtime: Runtime

    def send_failure(self, task: Task) -> None:
        """Tell of a failure for good, if the task asks for that."""
        if (notice := failure_notice(task)) is not None:
            self.send(task, notice)

    def leave_out(self, task: Task) -> None:
        """Note that nobody was told of a failure, because there was no time for it."""
        if failure_notice(task) is not None:
            self.runtime.telemetry.count("notices_failed")
            self.runtime.telemetry.note("a notice was not sent: cleaning up took all the time", task=task.id.text)

    def send(self, task: Task, notice: Notice) -> Failed | None:
        """Send a notice; what went wrong the last time, or nothing."""
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


@dataclass(frozen=True, slots=True)
class LateNotices:
    """Tells of tasks that have not started in time, each once, after the trigger has found one."""

    tasks: TaskStore
    sender: NoticeSender
    runtime: Runtime

    def send(self, message: Message, late_at: Millis) -> None:
        """Tell of a task if it is still late and has not been told of.

        What is given up stays to be told: the recovery scans of its timer's minute check it again.

        Raises:
            Unavailable: the table did not answer.
        """
        task = self.tasks.read(message.task_id)
        if task is None or (notice := lateness_notice(task, late_at, self.runtime.now())) is None:
            return
        timer = LateTimer(task.id, task.owner, late_at, message.due)
        if self.tasks.is_told(timer):
            return
        failed = self.sender.send(task, notice)
        if failed is None or not failed.retriable:
            self.tasks.mark_told(timer)
