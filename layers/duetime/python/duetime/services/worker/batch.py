"""A batch of deliveries: all of them at once, their leases renewed, and none forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.dispatch.acknowledgement import RedeliverMessage
from duetime.domain.errors import Unavailable
from duetime.domain.limits import WORKER_FUNCTION_SECONDS
from duetime.domain.operating_parameters import HEARTBEATS_PER_LEASE, OVERDUE_GRACE, PROCESS_END_TIME
from duetime.domain.times import SECOND, Millis
from duetime.services.worker.delivery_state import DeliveryState, Watch
from duetime.services.worker.lease_renewal import LeaseRenewal
from duetime.services.worker.message_visibility import MessageVisibility

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.ports.queues import Delivery, WorkQueues
    from duetime.ports.runtime import Job, Process, Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.worker.attempt import AttemptRunner

_LOOK_INTERVAL = SECOND
"""How often a batch checks for leases to renew and for targets that do not end."""


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
        batch = _Batch(self, [DeliveryState(delivery, self.runtime.now()) for delivery in deliveries], holder)
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
        self.visibility = MessageVisibility(inside.queues, inside.runtime, inside.lease, delivery_states)
        self.renewal = LeaseRenewal(inside.tasks, inside.attempt_runner.phases.locks, inside.runtime, inside.lease)
        self.doomed_until: Millis | None = None
        self.errands: dict[object, Job] = {}

    def run(self) -> None:
        inside = self.inside
        self.visibility.extend()
        jobs = [
            inside.runtime.executor.start(partial(self._attempt, delivery_state))
            for delivery_state in self.delivery_states
        ]
        while open_jobs := [job for job in jobs if not job.done]:
            inside.runtime.executor.wait(open_jobs, inside.runtime.now() + _LOOK_INTERVAL)
            self._run_errand("give back", self.visibility.give_back)
            self._renew_leases()
            self._look_for_overdue()
            self._look_for_cut_off()
            if self.doomed_until is not None and self._must_end(jobs):
                self._end()
                return
        while under_way := [job for job in self.errands.values() if not job.done]:
            inside.runtime.executor.wait(under_way, inside.runtime.now() + _LOOK_INTERVAL)
        self.visibility.give_back()

    def _run_errand(self, key: object, errand: Callable[[], None]) -> None:
        """Do something beside the watch, which no call that hangs may hold up; not while the same is under way."""
        if key not in self.errands or self.errands[key].done:
            self.errands[key] = self.inside.runtime.executor.start(errand)

    def _attempt(self, delivery_state: DeliveryState) -> None:
        watch = Watch(
            self.holder, self.ends_at, lambda: self.doomed_until is not None, partial(self._beat, delivery_state)
        )
        self.inside.attempt_runner.attempt(delivery_state, watch)

    def _renew_leases(self) -> None:
        now = self.inside.runtime.now()
        due = [
            delivery_state
            for delivery_state in self.delivery_states
            if delivery_state.task and delivery_state.renew_at <= now and not self._is_overdue(delivery_state)
        ]
        if due:
            self._run_errand("stay invisible", self.visibility.extend)
        for delivery_state in due:
            self._run_errand(id(delivery_state), partial(self._beat, delivery_state))

    def _beat(self, delivery_state: DeliveryState) -> None:
        """Renew one lease, and write down the progress that was told since."""
        task = delivery_state.task
        if task is None or delivery_state.ended:
            return
        if self.renewal.finds_it_lost(task, delivery_state) and not delivery_state.ended:
            self._lose("a lease was lost", delivery_state)

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
                self._lose("a lease could not be renewed", delivery_state)

    def _lose(self, reason: str, delivery_state: DeliveryState) -> None:
        """End the process for a lease that is another's by now, or soon will be."""
        self.inside.runtime.telemetry.count("leases_lost")
        self._doom(self.inside.runtime.now(), reason, delivery_state)

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
        jobs = [inside.runtime.executor.start(self.visibility.give_back)]
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
            self.visibility.change([delivery_state.delivery], [max(0, seconds)])
