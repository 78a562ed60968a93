"""Writing down how an attempt ended: its outcome, or when it is tried again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from duetime.domain.attempts import Ending, Failed, Run, Succeeded, failure
from duetime.domain.limits import LEDGER_LINES_INLINE, MAX_RESULT_BYTES
from duetime.domain.states import Move
from duetime.domain.task import AttemptOutcome, Content
from duetime.domain.writes import Applied, Guard, Write, WriteResult

if TYPE_CHECKING:
    from duetime.domain.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.stores import ContentStore, TaskStore
    from duetime.ports.surroundings import Chance, Clock, Telemetry
    from duetime.services.closing import Closing
    from duetime.services.placing import Placing


@dataclass(frozen=True, slots=True)
class Finishing:
    """Ends attempts, each with one conditional write on its fence.

    Attributes:
        retention: how long a finished task is kept, in milliseconds.
    """

    tasks: TaskStore
    contents: ContentStore
    placing: Placing
    closing: Closing
    clock: Clock
    chance: Chance
    telemetry: Telemetry
    retention: Millis

    def finish(self, run: Run, ending: Ending) -> WriteResult:
        """Write down the end of a run; a run whose fence is no longer the task's is refused.

        Raises:
            Unavailable: the store did not answer; the write may be repeated.
        """
        if isinstance(ending, Succeeded):
            return self._succeed(run, ending.result)
        self.telemetry.count("attempts_failed")
        if ending.retriable and run.task.retry.allows_after(run.task.attempt):
            return self._retry(run, ending)
        return self._end(run, Move.FAIL, AttemptOutcome.FAILED, {"error": ending.error})

    def give_up(self, task: Task) -> WriteResult:
        """Fail a task whose last worker vanished: no attempt is left, so nothing is run.

        Args:
            task: the record as it was just claimed, one attempt beyond its policy.
        """
        last = task.retry.max_attempts
        error = failure("WorkerLost", f"the worker of attempt {last}, the last one allowed, vanished").error
        now = self.clock.now()
        lines = Run(task, now, now).ledger(AttemptOutcome.FAILED)[:-1]
        sets = {"error": error, "attempt": last, "ledger": lines[-LEDGER_LINES_INLINE:]}
        return self._write_outcome(task, Move.FAIL, sets, now)

    def _succeed(self, run: Run, result: bytes) -> WriteResult:
        if len(result) > MAX_RESULT_BYTES:
            message = f"the result has {len(result)} bytes; {MAX_RESULT_BYTES} are allowed"
            return self.finish(run, failure("ResultTooLarge", message, retriable=False))
        kept = self.contents.keep(run.task.id, f"result.{run.task.fence}", result)
        return self._end(run, Move.SUCCEED, AttemptOutcome.SUCCEEDED, {"result": kept, "error": None})

    def _retry(self, run: Run, ending: Failed) -> WriteResult:
        task = run.task
        self._move_old_lines(run, AttemptOutcome.RETRIED)
        wait = max(task.retry.wait(task.attempt, self.chance.fraction()), ending.wait_at_least)
        sets = {**run.changes(AttemptOutcome.RETRIED), "error": ending.error, "progress": None}
        result = self.placing.move(task, Move.RETRY, run.ended_at + wait, Guard(fence=task.fence), sets)
        self.telemetry.count("tasks_retried")
        return result

    def _end(self, run: Run, move: Move, outcome: AttemptOutcome, sets: dict[str, Any]) -> WriteResult:
        self._move_old_lines(run, outcome)
        return self._write_outcome(run.task, move, {**run.changes(outcome), **sets}, run.ended_at)

    def _write_outcome(self, task: Task, move: Move, sets: dict[str, Any], ended_at: Millis) -> WriteResult:
        result: Content | None = sets.get("result")
        follows = self.closing.is_needed(replace(task, result=result))
        sets["expires_at"] = ended_at + self.retention
        sets["finished_at"] = None if follows else ended_at
        write = Write(task.id, move, self.chance.nonce(), Guard(fence=task.fence), sets)
        end = self.tasks.apply(write)
        if isinstance(end, Applied):
            self.telemetry.count(f"tasks_{end.task.state}")
            if follows:
                self.closing.close(end.task)
        return end

    def _move_old_lines(self, run: Run, outcome: AttemptOutcome) -> None:
        for line in run.ledger(outcome)[:-LEDGER_LINES_INLINE]:
            self.contents.keep_line(run.task.id, line, run.ended_at + self.retention)
