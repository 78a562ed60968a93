"""A batch of deliveries: all of them at once, their leases renewed, and none forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write
from duetime.domain.dispatch.acknowledgement import RedeliverMessage
from duetime.domain.errors import Unavailable
from duetime.domain.limits import (
    HEARTBEATS_PER_LEASE,
    LEASE_RETURN_MARGIN,
    MAX_HOLD,
    OVERDUE_GRACE,
    PROCESS_END_TIME,
    WORKER_FUNCTION_SECONDS,
)
from duetime.domain.tasks.states import Move
from duetime.domain.times import SECOND, Millis
from duetime.services.worker.delivery_state import DeliveryState, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.queues import Delivery, WorkQueues
    from duetime.ports.runtime import Job, Process, Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.worker.attempt import AttemptRunner

_MAX_VISIBILITY = 43_200
"""Seconds; Source: SQS quotas."""
_LOOK_INTERVAL = SECOND
"""How often a batch checks for leases to renew and for targets that do not end."""
_BEAT_AGAIN: Millis = 2 * SECOND
"""After a heartbeat that the store did not answer."""


@dataclass(frozen=True, slots=True)
class BatchWorker:
    """Works on batches of deliveries.

    Attributes:
        lease: length of a lease, in milliseconds.
    """

    tasks: TaskStore
    queues: WorkQueues
    attempt_runner: AttemptRunner
    runtime: Runtime
    process: Process
    lease: Millis

    def work(self, deliveries: Sequence[Delivery], holder: str) -> list[Delivery]:
        """Work on a batch until the disposition of every message is decided.

        Ends the process instead if a target would not end, or a lease was lost under it.

        Args:
            deliveries: at most ten.
            holder: who works, for the attempt history.

        Returns:
            The deliveries that must not be deleted.
        """
        batch = _Batch(self, [DeliveryState(delivery) for delivery in deliveries], holder)
        batch.run()
        return [
            delivery_state.delivery
            for delivery_state in batch.delivery_states
            if isinstance(delivery_state.disposition, RedeliverMessage)
        ]


class _Batch:
    """One batch at work: a job for each delivery, and this thread to watch over them."""

    def __init__(self, inside: BatchWorker, delivery_states: Sequence[DeliveryState], holder: str) -> None:
        self.inside = inside
        self.delivery_states = delivery_states
        self.holder = holder
        self.ends_at = inside.runtime.now() + WORKER_FUNCTION_SECONDS * SECOND
        self.given_back: set[int] = set()
        self.doomed_until: Millis | None = None
        self.errands: dict[object, Job] = {}

    def run(self) -> None:
        inside = self.inside
        self._stay_invisible()
        jobs = [
            inside.runtime.executor.start(partial(self._attempt, delivery_state))
            for delivery_state in self.delivery_states
        ]
        while open_jobs := [job for job in jobs if not job.done]:
            inside.runtime.executor.wait(open_jobs, inside.runtime.now() + _LOOK_INTERVAL)
            self._run_errand("give back", self._give_back)
            self._renew_leases()
            self._look_for_overdue()
            self._look_for_cut_off()
            if self.doomed_until is not None and self._must_end(jobs):
                self._end()
                return
        while under_way := [job for job in self.errands.values() if not job.done]:
            inside.runtime.executor.wait(under_way, inside.runtime.now() + _LOOK_INTERVAL)
        self._give_back()

    def _run_errand(self, key: object, errand: Callable[[], None]) -> None:
        """Do something beside the watch, which no call that hangs may hold up; not while the same is under way."""
        if key not in self.errands or self.errands[key].done:
            self.errands[key] = self.inside.runtime.executor.start(errand)

    def _attempt(self, delivery_state: DeliveryState) -> None:
        watch = Watch(
            self.holder, self.ends_at, lambda: self.doomed_until is not None, partial(self._beat, delivery_state)
        )
        self.inside.attempt_runner.attempt(delivery_state, watch)

    def _stay_invisible(self) -> None:
        """Keep the batch's messages from being delivered again before a lease that begins now is over.

        The queue's own visibility must be at least the function's timeout: far too long to wait for after a crash.
        """
        undecided = [
            delivery_state.delivery
            for index, delivery_state in enumerate(self.delivery_states)
            if index not in self.given_back
        ]
        seconds = -(-(MAX_HOLD + self.inside.lease + LEASE_RETURN_MARGIN) // SECOND)
        self._come_back(undecided, [seconds] * len(undecided))

    def _renew_leases(self) -> None:
        now = self.inside.runtime.now()
        due = [
            delivery_state
            for delivery_state in self.delivery_states
            if delivery_state.task and delivery_state.renew_at <= now and not self._is_overdue(delivery_state)
        ]
        if due:
            self._run_errand("stay invisible", self._stay_invisible)
        for delivery_state in due:
            self._run_errand(id(delivery_state), partial(self._beat, delivery_state))

    def _beat(self, delivery_state: DeliveryState) -> None:
        """Renew one lease, and write down the progress that was told since."""
        task = delivery_state.task
        if task is None or delivery_state.ended:
            return
        if self._is_lost(task, delivery_state) and not delivery_state.ended:
            self._doom(self.inside.runtime.now(), "a lease was lost", delivery_state)

    def _is_lost(self, task: Task, delivery_state: DeliveryState) -> bool:
        inside = self.inside
        progress, delivery_state.progress = delivery_state.progress, None
        delivery_state.renew_at = inside.runtime.now() + inside.lease // HEARTBEATS_PER_LEASE
        until = inside.runtime.now() + inside.lease
        sets: TaskChanges = {"lease_expires_at": until}
        if progress is not None:
            sets["progress"] = progress
        try:
            # One that comes late must not take back what a later one has given.
            guard = Guard(fence=task.fence, leased_until_before=until)
            result = inside.tasks.apply(Write(task.id, Move.HEARTBEAT, inside.runtime.nonce(), guard, sets))
            has_locks = inside.attempt_runner.phases.locks.renew(delivery_state, task, until)
        except Unavailable as error:
            inside.runtime.telemetry.note(
                "a lease was not renewed", error=str(error), delivery=delivery_state.delivery.id
            )
            delivery_state.renew_at = inside.runtime.now() + _BEAT_AGAIN
            return False
        if isinstance(result, Applied):
            delivery_state.leased_until = until
            delivery_state.requested_action = result.task.requested_action
        is_taken = isinstance(result, ConditionFailed) and (result.task is None or result.task.fence != task.fence)
        return is_taken or not has_locks

    def _is_overdue(self, delivery_state: DeliveryState) -> bool:
        end = delivery_state.overdue_at()
        return end is not None and self.inside.runtime.now() >= end + OVERDUE_GRACE

    def _look_for_overdue(self) -> None:
        for delivery_state in self.delivery_states:
            if self._is_overdue(delivery_state) and self.doomed_until is None:
                # Its lease is no longer renewed; the others may end by themselves until it is over.
                rest = self.inside.lease - self.inside.lease // HEARTBEATS_PER_LEASE
                self._doom(self.inside.runtime.now() + rest // 2, "a target did not end in time", delivery_state)

    def _look_for_cut_off(self) -> None:
        """Find what has not renewed its lease: it must be gone when the lease is over."""
        now = self.inside.runtime.now()
        for delivery_state in self.delivery_states:
            if (
                delivery_state.task
                and not delivery_state.ended
                and now >= delivery_state.leased_until - PROCESS_END_TIME - _LOOK_INTERVAL
            ):
                self._doom(now, "a lease could not be renewed", delivery_state)

    def _doom(self, until: Millis, reason: str, delivery_state: DeliveryState) -> None:
        if self.doomed_until is None:
            self.inside.runtime.telemetry.count("processes_ended")
            self.inside.runtime.telemetry.note(
                "ending the worker's process", reason=reason, delivery=delivery_state.delivery.id
            )
        self.doomed_until = until if self.doomed_until is None else min(until, self.doomed_until)

    def _must_end(self, jobs: Sequence[Job]) -> bool:
        """Whether nobody is left to wait for: the time has come, or only the overdue still run."""
        open_deliveries = [
            delivery_state for delivery_state, job in zip(self.delivery_states, jobs, strict=True) if not job.done
        ]
        if not open_deliveries:
            return False
        is_time = self.doomed_until is not None and self.inside.runtime.now() >= self.doomed_until
        return is_time or all(self._is_overdue(delivery_state) for delivery_state in open_deliveries)

    def _end(self) -> None:
        """End the process at its time, whether or not what is written down before has been answered by then."""
        inside = self.inside
        now = inside.runtime.now()
        if any(
            delivery_state.task and not delivery_state.ended and now >= delivery_state.leased_until
            for delivery_state in self.delivery_states
        ):
            # The process stood still past a lease: what it works on may be another's already.
            inside.process.end()
            return
        until = now + PROCESS_END_TIME
        overdue = [
            delivery_state
            for delivery_state in self.delivery_states
            if delivery_state.disposition is None and self._is_overdue(delivery_state)
        ]
        for delivery_state in self.delivery_states:
            if delivery_state.disposition is None and delivery_state.task is None:
                delivery_state.disposition = RedeliverMessage(inside.runtime.now(), "the worker is ending")
        jobs = [inside.runtime.executor.start(self._give_back)]
        jobs += [
            inside.runtime.executor.start(partial(self._finish_overdue, delivery_state, until))
            for delivery_state in overdue
        ]
        while (open_jobs := [job for job in jobs if not job.done]) and inside.runtime.now() < until:
            inside.runtime.executor.wait(open_jobs, until)
        inside.process.end()

    def _finish_overdue(self, delivery_state: DeliveryState, lingers_until: Millis) -> None:
        try:
            self.inside.attempt_runner.finish_overdue(delivery_state, lingers_until)
        except Unavailable as error:
            # The lease runs out, and the message comes back after it.
            self.inside.runtime.telemetry.note("a timeout was not written down", error=str(error))
            return
        if isinstance(disposition := delivery_state.disposition, RedeliverMessage):
            seconds = -(-(disposition.at - self.inside.runtime.now()) // SECOND)
            self._come_back([delivery_state.delivery], [max(0, seconds)])

    def _give_back(self) -> None:
        """Set when those messages come back whose disposition is to come back."""
        now = self.inside.runtime.now()
        dispositions = {
            index: delivery_state.disposition
            for index, delivery_state in enumerate(self.delivery_states)
            if index not in self.given_back
        }
        back = {
            index: disposition
            for index, disposition in dispositions.items()
            if isinstance(disposition, RedeliverMessage)
        }
        seconds = [max(0, min(-(-(disposition.at - now) // SECOND), _MAX_VISIBILITY)) for disposition in back.values()]
        self._come_back([self.delivery_states[index].delivery for index in back], seconds)
        self.given_back |= back.keys()

    def _come_back(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        if not deliveries:
            return
        try:
            self.inside.queues.come_back(deliveries, seconds)
        except Unavailable as error:
            # They come back at the visibility they have: later than wished, but not lost.
            self.inside.runtime.telemetry.note("visibility was not changed", error=str(error))
