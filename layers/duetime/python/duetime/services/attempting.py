"""One delivery of a message: hold, claim, run, finish; and what becomes of the message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.attempts import Ending, Failed, Run, claim
from duetime.domain.errors import Unavailable
from duetime.domain.lifeline import ComeBack, FollowUp, LetGo, after_refusal
from duetime.domain.limits import CLAIM_LEAD, HEARTBEATS_PER_LEASE, MAX_HOLD
from duetime.domain.task import Content, TaskError
from duetime.domain.times import SECOND, Millis
from duetime.domain.writes import Applied, WriteResult
from duetime.ports.targets import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.task import Progress, Task
    from duetime.ports.queues import Delivery
    from duetime.ports.stores import ContentStore, TaskStore
    from duetime.ports.surroundings import Chance, Clock, Telemetry
    from duetime.ports.targets import TargetRunner
    from duetime.services.closing import Closing
    from duetime.services.finishing import Finishing

_STORE_PAUSE: Millis = 200
"""First pause before a write that the store did not answer is made again; it doubles."""


@dataclass(slots=True)
class Shift:
    """What one delivery is at, shared between the thread that works on it and the one that watches over it.

    Each field has one writer at a time, and a reader that sees it a moment late does no harm: every write to the
    record is fenced.

    Attributes:
        task: the record as it was claimed; `None` before the claim and after the end.
        started_at: when the target was called.
        ended: the target has returned; its end is being written down.
        progress: what the target told last, written with the next heartbeat.
        renew_at: when its lease must be renewed.
        failed_beats: heartbeats in a row that the store did not answer.
        fate: what becomes of the message; `None` while that is open.
    """

    delivery: Delivery
    task: Task | None = None
    started_at: Millis | None = None
    ended: bool = False
    progress: Progress | None = None
    renew_at: Millis = 0
    failed_beats: int = 0
    fate: LetGo | ComeBack | None = None

    def overdue_at(self) -> Millis | None:
        """When its target must have ended, if it runs."""
        task, started = self.task, self.started_at
        if task is None or started is None or self.ended:
            return None
        return started + task.timeout_seconds * SECOND


@dataclass(frozen=True, slots=True)
class Attempting:
    """Takes deliveries through their attempts.

    Attributes:
        lease: length of a lease, in milliseconds.
    """

    tasks: TaskStore
    contents: ContentStore
    targets: TargetRunner
    finishing: Finishing
    closing: Closing
    clock: Clock
    chance: Chance
    telemetry: Telemetry
    lease: Millis

    def attempt(self, shift: Shift, holder: str, is_closing_time: Callable[[], bool], beat: Callable[[], None]) -> None:
        """Work on one delivery until the fate of its message is decided. Never raises.

        Args:
            shift: the delivery.
            holder: who works.
            is_closing_time: whether nothing new may be claimed any more.
            beat: renews the lease at once, when the target asks for it.
        """
        try:
            shift.fate = self._fate(shift, holder, is_closing_time, beat)
        except Unavailable as error:
            shift.fate = self._later(str(error))
        except Exception as error:  # noqa: BLE001 - one delivery's defect must not take its batch with it
            self.telemetry.count("worker_defects")
            self.telemetry.note("a delivery could not be worked on", error=repr(error), delivery=shift.delivery.id)
            shift.fate = self._later(repr(error))
        finally:
            shift.task = None

    def _fate(
        self, shift: Shift, holder: str, is_closing_time: Callable[[], bool], beat: Callable[[], None]
    ) -> LetGo | ComeBack:
        message = shift.delivery.message
        if message.due - self.clock.now() > MAX_HOLD:
            return ComeBack(message.due - SECOND, "not due")
        self.clock.sleep_until(message.due - CLAIM_LEAD)
        if is_closing_time():
            return self._later("the worker is ending")
        result = self._claim(shift, holder)
        if not isinstance(result, Applied):
            return self._after_refusal(shift, result.task)
        task = result.task
        if task.attempt > task.retry.max_attempts:
            end = self.finishing.give_up(task)
        else:
            shift.renew_at = self.clock.now() + self.lease // HEARTBEATS_PER_LEASE
            shift.task = task
            end = self._run(shift, task, beat)
        return LetGo("done") if isinstance(end, Applied) else self._after_refusal(shift, end.task)

    def _claim(self, shift: Shift, holder: str) -> WriteResult:
        message = shift.delivery.message
        now = self.clock.now()
        start = max(now, message.due)
        nonce = self.chance.nonce()
        return self.tasks.apply(claim(message, holder=holder, start=start, now=now, lease=self.lease, nonce=nonce))

    def _run(self, shift: Shift, task: Task, beat: Callable[[], None]) -> WriteResult:
        payload = self._payload(task)
        self.clock.sleep_until(task.next_at)
        started = self.clock.now()
        shift.started_at = started
        self.telemetry.measure("lateness", max(0, started - task.next_at))

        def report(progress: Progress | None) -> None:
            if progress is None:
                beat()
            else:
                shift.progress = progress

        work = Work(task, payload, started + task.timeout_seconds * SECOND, report)
        ending = self.targets.run(task.target, work)
        shift.ended = True
        run = Run(task, started, self.clock.now())
        self.telemetry.measure("duration", run.ended_at - run.started_at)
        return self.finish(run, ending)

    def finish(self, run: Run, ending: Ending) -> WriteResult:
        """Write an end down, again and again while the lease lasts: what has been done is worth keeping.

        Raises:
            Unavailable: the store has not answered for a whole lease.
        """
        pause = _STORE_PAUSE
        until = self.clock.now() + self.lease
        while True:
            try:
                return self.finishing.finish(run, ending)
            except Unavailable:
                if self.clock.now() + pause >= until:
                    raise
                self.clock.sleep_until(self.clock.now() + pause)
                pause *= 2

    def finish_overdue(self, shift: Shift) -> None:
        """Write down that an attempt has not ended in time; its process must be ended right after."""
        task, started = shift.task, shift.started_at
        if task is None or started is None:
            return
        error = TaskError("Timeout", f"the attempt did not end within {task.timeout_seconds} s")
        # The wait keeps another worker from starting while this process is still ending.
        end = self.finish(Run(task, started, self.clock.now()), Failed(error, wait_at_least=SECOND))
        shift.fate = LetGo("overdue") if isinstance(end, Applied) else self._after_refusal(shift, end.task)

    def _payload(self, task: Task) -> bytes:
        content: Content = task.payload
        return self.contents.fetch(task.id, content) if content.data is None else content.data

    def _after_refusal(self, shift: Shift, task: Task | None) -> LetGo | ComeBack:
        fate = after_refusal(task, shift.delivery.message, self.clock.now())
        self.telemetry.count("refused")
        if isinstance(fate, FollowUp):
            self.closing.close(fate.task)
            return LetGo("closed")
        return fate

    def _later(self, reason: str) -> ComeBack:
        return ComeBack(self.clock.now() + SECOND, reason)
