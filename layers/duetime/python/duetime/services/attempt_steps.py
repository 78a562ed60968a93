"""Loads and stores the step results of running attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.steps import StepResult, may_have_steps, needs_extension, step_expiry
from duetime.domain.tasks.targets import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import StepStore

_PAUSE: Millis = 200
"""First pause before retrying a write that the store did not answer; the pause doubles with each retry."""


@dataclass(frozen=True)
class AttemptSteps:
    """`duetime_common.steps.StepKeeper` for one phase of an attempt.

    A step begins only while the attempt holds its lease. Its result is stored even if the lease has ended in the
    meantime, so that the next attempt need not repeat the work. If two attempts run the same step at the same time, the
    first result is kept, and both attempts get it.

    Attributes:
        has_lease: returns whether the attempt still holds its lease.
        task: the claimed task's record.
        retention: how long a finished task is kept.
        patience: how long a write is retried while the store does not respond, in milliseconds.
    """

    store: StepStore
    has_lease: Callable[[], bool]
    task: Task
    phase: Phase
    runtime: Runtime
    retention: RetentionPolicy
    patience: Millis

    def load(self) -> Mapping[str, bytes]:
        """The stored step results of the phase, by step name."""
        return self._results(self.phase) if may_have_steps(self.task, self.phase) else {}

    def load_run(self) -> Mapping[str, bytes]:
        """The stored step results of the phase `run`, by step name."""
        return self._results(Phase.RUN)

    def begin(self) -> Millis | None:
        """The time at which a step begins; `None` if the attempt has lost its lease."""
        return self.runtime.now() if self.has_lease() else None

    def keep(self, name: str, result: bytes, began: Millis) -> bytes:
        """Store a step's result, and return the stored result.

        Failed writes are retried while the lease lasts, so that no work is lost.

        Raises:
            Unavailable: the store has not answered for the duration of a lease.
        """
        now = self.runtime.now()
        step = StepResult(
            phase=self.phase.value,
            name=name,
            attempt=self.task.attempt,
            fence=self.task.fence,
            finished_at=now,
            took=max(0, now - began),
            result=result,
            expires_at=step_expiry(now, self.retention.of(self.task.type)),
        )
        pause, until = _PAUSE, now + self.patience
        while True:
            try:
                return self.store.keep(self.task.id, step).result
            except Unavailable:
                if self.runtime.now() + pause >= until:
                    raise
                self.runtime.clock.sleep_until(self.runtime.now() + pause)
                pause *= 2

    def _results(self, phase: Phase) -> dict[str, bytes]:
        steps, now = self.store.list_of(self.task.id), self.runtime.now()
        for step in steps:
            if needs_extension(step, now, self.retention.of(self.task.type)):
                self.store.extend(self.task.id, step, step_expiry(now, self.retention.of(self.task.type)))
        return {step.name: step.result for step in steps if step.phase == phase}
