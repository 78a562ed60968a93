"""Telling the URL that a task's creator named of the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import CALLBACK_PAUSE, CALLBACK_TRIES

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import Callbacks


@dataclass(frozen=True, slots=True)
class CallbackSender:
    """Makes callbacks: at least once, unless the other side rejects; the outcome stands, whatever happens to them."""

    callbacks: Callbacks
    runtime: Runtime

    def call_back(self, task: Task) -> None:
        """Tell of a task's outcome, if it asks for that: a few tries, with a pause that doubles between them."""
        if task.callback_url is None:
            return
        pause = CALLBACK_PAUSE
        failed = self.callbacks.call_back(task, task.callback_url)
        for _ in range(CALLBACK_TRIES - 1):
            if failed is None or not failed.retriable:
                break
            self.runtime.clock.sleep_until(self.runtime.now() + pause)
            pause *= 2
            failed = self.callbacks.call_back(task, task.callback_url)
        if failed is not None:
            self._give_up(task, failed)

    def leave_out(self, task: Task) -> None:
        """Note that nobody was told of an outcome, because there was no time for it."""
        if task.callback_url is not None:
            self.runtime.telemetry.count("callbacks_failed")
            self.runtime.telemetry.note("a callback was not made: cleaning up took all the time", task=task.id.text)

    def _give_up(self, task: Task, failed: Failed) -> None:
        self.runtime.telemetry.count("callbacks_failed")
        self.runtime.telemetry.note("a callback was given up", task=task.id.text, error=failed.error.type)
