"""Records each phase of each attempt that a test executes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit

from duetime.domain.tasks.attempt_results import Failed
from duetime.domain.times import to_datetime
from duetime.handlers.payload_codec import present_codec
from duetime_common.frozen_classes import frozen
from duetime_common.payload_codecs import decrypted, decrypted_text, value_in
from duetime_testing.simulation.machines import MortalTargets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.times import Millis
    from duetime.ports.targets import Work
    from duetime_testing.account import VirtualAccount

RUN = "run"


@dataclass
class Execution:
    """One phase of one attempt.

    Attributes:
        type: the task's type.
        phase: `prepare`, `run`, `rollback` or `clean`.
        at: when the phase began.
        due_at: when the task was due.
        outcome: the target's outcome; `running` before the phase ends; `crashed` if the process died before the outcome
            was known.
        error: class and message of the error; empty if the phase did not fail.
    """

    type: str
    phase: str
    task_id: str
    attempt: int
    at: datetime
    due_at: datetime
    payload: Any
    outcome: str = "running"
    error: str = ""

    def __str__(self) -> str:
        """Format the execution as one line."""
        error = f": {self.error}" if self.error else ""
        phase = "" if self.phase == RUN else f" {self.phase}"
        return (
            f"{_text(self.at)}  {self.type}{phase}, attempt {self.attempt}, {self.outcome}{error}"
            f"  (due {_text(self.due_at)}, task {self.task_id})"
        )


@dataclass
class Executions:
    """All of a test's executions, in order."""

    every: list[Execution] = field(default_factory=list)

    def runs(self, task_type: str) -> list[Execution]:
        """The executions of the phase `run` for tasks of a type."""
        return [each for each in self.every if each.type == task_type and each.phase == RUN]

    def begin(self, work: Work, now: Millis) -> Execution:
        """Record the beginning of a phase."""
        task = work.task
        began = Execution(
            type=task.type,
            phase=work.phase.value,
            task_id=task.id.text,
            attempt=task.attempt,
            at=to_datetime(now),
            due_at=to_datetime(task.due_at),
            payload=_readable(value_in(work.payload)),
        )
        self.every.append(began)
        return began

    def __iter__(self) -> Iterator[Execution]:
        """Iterate over the executions in order."""
        return iter(self.every)


@frozen
class ObservedTargets(MortalTargets):
    """A simulated process's targets; each phase that runs is recorded, and the test's faults are injected."""

    account: VirtualAccount

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of a target, and return its outcome."""
        account = self.account
        execution = account.executions.begin(work, account.time.now())
        account.injected.before_phase(work)
        try:
            ending = MortalTargets.run(self, work)
            execution.outcome = "crashed"
            if account.test_outcome is not None:
                account.time.raise_outside(account.test_outcome)
                account.test_outcome = None
                self.machine.die()
            account.injected.after_phase(self.machine, work)
        except GreenletExit:
            execution.outcome = "crashed"
            raise
        execution.outcome = type(ending).__name__.lower()
        if isinstance(ending, Failed):
            execution.error = f"{ending.error.type}: {_readable(ending.error.message)}"
        return ending


def _readable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Decrypt the value if the test uses a codec, and return it."""
    codec = present_codec()
    if codec is None:
        return value
    return decrypted_text(codec, value) if isinstance(value, str) else decrypted(codec, value)


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")
