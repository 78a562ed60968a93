"""Processes a batch of deliveries in parallel, renews their leases, and decides what happens to every message.

Attempts with batch handlers and batch endpoints are grouped for a common call (`DeliveryGroups`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write
from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
from duetime.domain.errors import Unavailable
from duetime.domain.limits import WORKER_FUNCTION_SECONDS
from duetime.domain.operating_parameters import (
    HEARTBEATS_PER_LEASE,
    LEASE_RETURN_MARGIN,
    MAX_HOLD,
    OVERDUE_GRACE,
    PROCESS_END_TIME,
)
from duetime.domain.tasks.attempt_run import late_start
from duetime.domain.tasks.states import Move
from duetime.domain.times import SECOND, Millis
from duetime.services.worker.attempt_lease import DeliveryState, Watch
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.queues import Delivery, WorkQueues
    from duetime.ports.runtime import Job, Process, Runtime
    from duetime.ports.tasks import TaskStore
    from duetime.services.worker.attempt import AttemptRunner
    from duetime.services.worker.attempt_lease import AttemptLocks

_CHECK_INTERVAL = SECOND
"""How often a batch checks for leases to renew, and for targets that do not end in time."""
_RETRY_AFTER: Millis = 2 * SECOND
"""Delay before retrying a renewal that the store did not answer."""
_MAX_VISIBILITY = 43_200
"""Seconds; Source: SQS quotas."""
_LOOK: Millis = 10
"""How often a group checks whether it is complete."""


@frozen
class BatchWorker:
    """Processes batches of deliveries.

    Attributes:
        lease: duration of a lease, in milliseconds.
        executed: name and version of this Lambda function, as `name:version`; empty outside Lambda.
    """

    tasks: TaskStore
    queues: WorkQueues
    attempt_runner: AttemptRunner
    runtime: Runtime
    process: Process
    lease: Millis
    executed: str = ""

    def work(self, deliveries: Sequence[Delivery], holder: str) -> list[Delivery]:
        """Process a batch until every message's disposition is decided.

        If a target does not end in time, or a lease is lost during the work, the process is ended instead.

        Args:
            deliveries: at most ten deliveries.
            holder: name of the worker in the attempt history.

        Returns:
            The deliveries that must not be deleted.
        """
        now = self.runtime.now()
        received = [DeliveryState(delivery, now, executed=self.executed) for delivery in deliveries]
        batch = _Batch(self, received, holder)
        batch.run()
        return [
            delivery_state.delivery
            for delivery_state in batch.delivery_states
            # Messages without a decision are not deleted, so they are redelivered.
            if not isinstance(delivery_state.disposition, DeleteMessage)
        ]


class _Batch:
    """A batch in progress; a background job processes each delivery, and the current thread watches the jobs."""

    def __init__(self, worker: BatchWorker, delivery_states: Sequence[DeliveryState], holder: str) -> None:
        self.worker = worker
        self.delivery_states = delivery_states
        self.holder = holder
        self.ends_at = worker.runtime.now() + WORKER_FUNCTION_SECONDS * SECOND
        self.visibility = MessageVisibility(worker.queues, worker.runtime, worker.lease, delivery_states)
        self.renewal = LeaseRenewal(worker.tasks, worker.attempt_runner.phases.locks, worker.runtime, worker.lease)
        self.ends_process_at: Millis | None = None
        self.background_jobs: dict[object, Job] = {}
        self.batch_groups: DeliveryGroups | None = None
        self.groups_lock = Lock()

    def run(self) -> None:
        worker = self.worker
        self.visibility.extend()
        jobs = [
            worker.runtime.executor.start(partial(self._attempt, delivery_state))
            for delivery_state in self.delivery_states
        ]
        while open_jobs := [job for job in jobs if not job.done]:
            worker.runtime.executor.wait(open_jobs, worker.runtime.now() + _CHECK_INTERVAL)
            self._run_in_background("give back", self.visibility.give_back)
            self._renew_leases()
            self._report_long_runs()
            self._check_overdue()
            self._check_unrenewed_leases()
            if self.ends_process_at is not None and self._must_end(jobs):
                self._end()
                return
        while under_way := [job for job in self.background_jobs.values() if not job.done]:
            worker.runtime.executor.wait(under_way, worker.runtime.now() + _CHECK_INTERVAL)
        self.visibility.give_back()

    def _run_in_background(self, key: object, job: Callable[[], None]) -> None:
        """Run a call in the background, where it cannot block the watch, unless the same call is still running."""
        if key not in self.background_jobs or self.background_jobs[key].done:
            self.background_jobs[key] = self.worker.runtime.executor.start(job)

    def _attempt(self, delivery_state: DeliveryState) -> None:
        watch = Watch(
            self.holder,
            self.ends_at,
            lambda: self.ends_process_at is not None,
            partial(self._heartbeat, delivery_state),
            self._batch_groups,
        )
        self.worker.attempt_runner.attempt(delivery_state, watch)

    def _batch_groups(self) -> DeliveryGroups:
        with self.groups_lock:
            if self.batch_groups is None:
                self.batch_groups = DeliveryGroups(self.worker.runtime, self._more_may_call)
            return self.batch_groups

    def _more_may_call(self) -> bool:
        """Whether a delivery has not called its target yet, and may still do so."""
        return any(each.disposition is None and each.started_at is None for each in self.delivery_states)

    def _renew_leases(self) -> None:
        now = self.worker.runtime.now()
        due = [
            delivery_state
            for delivery_state in self.delivery_states
            if delivery_state.task and delivery_state.renew_at <= now and not self._is_overdue(delivery_state)
        ]
        if due:
            self._run_in_background("stay invisible", self.visibility.extend)
        for delivery_state in due:
            self._run_in_background(id(delivery_state), partial(self._heartbeat, delivery_state))

    def _report_long_runs(self) -> None:
        """Send notices of attempts that have not ended within the time that the tasks' creators expect."""
        for delivery_state in self.delivery_states:
            task, long_at = delivery_state.task, delivery_state.long_at()
            if task is not None and long_at is not None and self.worker.runtime.now() >= long_at:
                delivery_state.reported_long = True
                send = partial(self.worker.attempt_runner.late_notices.send_long_run, task, long_at)
                self._run_in_background(("long run", id(delivery_state)), send)

    def _heartbeat(self, delivery_state: DeliveryState) -> None:
        """Renew one lease, and write the progress reported since the last renewal."""
        task = delivery_state.task
        if task is None or delivery_state.ended:
            return
        if self.renewal.finds_it_lost(task, delivery_state) and not delivery_state.ended:
            self._lose("a lease was lost", delivery_state)

    def _is_overdue(self, delivery_state: DeliveryState) -> bool:
        end = delivery_state.overdue_at()
        return end is not None and self.worker.runtime.now() >= end + OVERDUE_GRACE

    def _check_overdue(self) -> None:
        for delivery_state in self.delivery_states:
            if self._is_overdue(delivery_state) and self.ends_process_at is None:
                # The overdue attempt's lease is no longer renewed. The process ends before that lease does, which
                # leaves the other attempts some time.
                rest = self.worker.lease - self.worker.lease // HEARTBEATS_PER_LEASE
                self._end_process_by(
                    self.worker.runtime.now() + rest // 2, "a target did not end in time", delivery_state
                )

    def _check_unrenewed_leases(self) -> None:
        """Find deliveries whose leases end soon without having been renewed, because their work must end first."""
        now = self.worker.runtime.now()
        for delivery_state in self.delivery_states:
            if (
                delivery_state.task
                and not delivery_state.ended
                and now >= delivery_state.leased_until - PROCESS_END_TIME - _CHECK_INTERVAL
            ):
                self._lose("a lease could not be renewed", delivery_state)

    def _lose(self, reason: str, delivery_state: DeliveryState) -> None:
        """End the process because a lease is lost, or will soon be lost."""
        self.worker.runtime.telemetry.count("leases_lost")
        self._end_process_by(self.worker.runtime.now(), reason, delivery_state)

    def _end_process_by(self, until: Millis, reason: str, delivery_state: DeliveryState) -> None:
        if self.ends_process_at is None:
            self.worker.runtime.telemetry.count("processes_ended")
            self.worker.runtime.telemetry.note(
                "ending the worker's process", reason=reason, delivery=delivery_state.delivery.id
            )
        self.ends_process_at = until if self.ends_process_at is None else min(until, self.ends_process_at)

    def _must_end(self, jobs: Sequence[Job]) -> bool:
        """Whether to stop waiting, because the time is up or only overdue targets are still running."""
        open_deliveries = [
            delivery_state for delivery_state, job in zip(self.delivery_states, jobs, strict=True) if not job.done
        ]
        if not open_deliveries:
            return False
        is_time = self.ends_process_at is not None and self.worker.runtime.now() >= self.ends_process_at
        return is_time or all(self._is_overdue(delivery_state) for delivery_state in open_deliveries)

    def _end(self) -> None:
        """Record timeouts and give back messages; then end the process, even if these writes get no response."""
        worker = self.worker
        now = worker.runtime.now()
        if any(
            delivery_state.task and not delivery_state.ended and now >= delivery_state.leased_until
            for delivery_state in self.delivery_states
        ):
            # The process was suspended past the end of a lease, so another worker may have the task.
            worker.process.end()
            return
        until = now + PROCESS_END_TIME
        overdue = [
            delivery_state
            for delivery_state in self.delivery_states
            if delivery_state.disposition is None and self._is_overdue(delivery_state)
        ]
        for delivery_state in self.delivery_states:
            if delivery_state.disposition is None and delivery_state.task is None:
                delivery_state.disposition = RedeliverMessage(worker.runtime.now(), "the worker is ending")
        jobs = [worker.runtime.executor.start(self.visibility.give_back)]
        jobs += [
            worker.runtime.executor.start(partial(self._finish_overdue, delivery_state, until))
            for delivery_state in overdue
        ]
        while (open_jobs := [job for job in jobs if not job.done]) and worker.runtime.now() < until:
            worker.runtime.executor.wait(open_jobs, until)
        worker.process.end()

    def _finish_overdue(self, delivery_state: DeliveryState, process_ends_at: Millis) -> None:
        try:
            self.worker.attempt_runner.finish_overdue(delivery_state, process_ends_at)
        except Unavailable as error:
            # The message is redelivered after the lease expires.
            self.worker.runtime.telemetry.note("a timeout was not recorded", error=str(error))
            return
        if isinstance(disposition := delivery_state.disposition, RedeliverMessage):
            seconds = -(-(disposition.at - self.worker.runtime.now()) // SECOND)
            self.visibility.change([delivery_state.delivery], [max(0, seconds)])


@frozen
class LeaseRenewal:
    """Renews leases.

    Attributes:
        lease: duration of a lease, in milliseconds.
    """

    tasks: TaskStore
    locks: AttemptLocks
    runtime: Runtime
    lease: Millis

    def finds_it_lost(self, task: Task, delivery_state: DeliveryState) -> bool:
        """Renew the lease and locks of one attempt, and write the progress reported since the last renewal.

        Returns:
            Whether the attempt must end, because it has lost its lease or a lock. If the store does not answer, the
            attempt continues, and the renewal is soon retried.
        """
        progress, delivery_state.progress = delivery_state.progress, None
        delivery_state.renew_at = self.runtime.now() + self.lease // HEARTBEATS_PER_LEASE
        until = self.runtime.now() + self.lease
        sets: TaskChanges = {"lease_expires_at": until}
        if progress is not None:
            sets["progress"] = progress
        if delivery_state.started_at is not None:
            sets |= late_start(task, task.started_at)
        try:
            # A delayed renewal must not shorten a lease that a later renewal has extended.
            guard = Guard(fence=task.fence, leased_until_before=until)
            result = self.tasks.apply(Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), guard, sets))
            has_locks = self.locks.renew(delivery_state, task, until)
        except Unavailable as error:
            self.runtime.telemetry.note(
                "a lease was not renewed", error=str(error), delivery=delivery_state.delivery.id
            )
            delivery_state.renew_at = self.runtime.now() + _RETRY_AFTER
            # A report since then is newer.
            delivery_state.progress = delivery_state.progress or progress
            return False
        if isinstance(result, Applied):
            delivery_state.leased_until = until
            delivery_state.requested_action = result.task.requested_action
        is_taken = isinstance(result, ConditionFailed) and (result.task is None or result.task.fence != task.fence)
        return is_taken or not has_locks


class MessageVisibility:
    """Changes the visibility of a batch's messages, and gives each message back at most once."""

    def __init__(
        self, queues: WorkQueues, runtime: Runtime, lease: Millis, delivery_states: Sequence[DeliveryState]
    ) -> None:
        self.queues = queues
        self.runtime = runtime
        self.lease = lease
        self.delivery_states = delivery_states
        self.given_back: set[int] = set()

    def extend(self) -> None:
        """Hide the batch's messages until a lease that begins now would end.

        The queue's own visibility timeout must be at least the function's timeout, which is far too long to wait after
        a crash.
        """
        undecided = [
            delivery_state.delivery
            for index, delivery_state in enumerate(self.delivery_states)
            if index not in self.given_back
        ]
        seconds = -(-(MAX_HOLD + self.lease + LEASE_RETURN_MARGIN) // SECOND)
        self.change(undecided, [seconds] * len(undecided))

    def give_back(self) -> None:
        """Set the return times of the messages that are to be redelivered."""
        now = self.runtime.now()
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
        self.change([self.delivery_states[index].delivery for index in back], seconds)
        self.given_back |= back.keys()

    def change(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Let each message return after its own number of seconds."""
        if not deliveries:
            return
        try:
            self.queues.come_back(deliveries, seconds)
        except Unavailable as error:
            # The messages return when their current visibility timeouts end, which may be late, but they are not lost.
            self.runtime.telemetry.note("visibility was not changed", error=str(error))


@dataclass(slots=True)
class _Group:
    """A group that attempts may join until it is closed.

    Attributes:
        closes_at: latest time at which the group is closed.
        results: results of the call, one for each member; empty before the call.
    """

    max_size: int
    closes_at: Millis
    call: Callable[[Sequence[Any], Millis], Sequence[Any]]
    members: list[Any] = field(default_factory=list)
    results: Sequence[Any] = ()


class DeliveryGroups:
    """`duetime.ports.targets.BatchGroups` for one batch of deliveries.

    Args:
        more_may_come: returns whether another delivery in the batch may still call its target.
    """

    def __init__(self, runtime: Runtime, more_may_come: Callable[[], bool]) -> None:
        self._runtime = runtime
        self._more_may_come = more_may_come
        self._lock = Lock()
        self._open: dict[Hashable, tuple[_Group, Job]] = {}

    def join(
        self,
        key: Hashable,
        member: Any,  # noqa: ANN401 - see the port
        call: Callable[[Sequence[Any], Millis], Sequence[Any]],
        *,
        max_size: int,
        max_wait: Millis,
    ) -> Any:  # noqa: ANN401 - see the port
        """Join the group of a key, and wait for the result of its call."""
        executor = self._runtime.executor
        with self._lock:
            if key not in self._open:
                group = _Group(max_size, self._runtime.now() + max_wait, call)
                self._open[key] = group, executor.start(partial(self._run, key, group))
            group, job = self._open[key]
            number = len(group.members)
            group.members.append(member)
            if len(group.members) >= max_size:
                del self._open[key]
        while not job.done:
            executor.wait([job], self._runtime.now() + SECOND)
        return group.results[number]

    def _run(self, key: Hashable, group: _Group) -> None:
        self._wait(group)
        with self._lock:
            if key in self._open and self._open[key][0] is group:
                del self._open[key]
        group.results = group.call(group.members, self._runtime.now())

    def _wait(self, group: _Group) -> None:
        """Wait until a group is full, its time is up, or no other attempt can join."""
        while len(group.members) < group.max_size and (now := self._runtime.now()) < group.closes_at:
            size, is_last = len(group.members), not self._more_may_come()
            self._runtime.clock.sleep_until(min(now + _LOOK, group.closes_at))
            # The group is checked once more, because an attempt's call to its target begins slightly before the attempt
            # joins.
            if is_last and len(group.members) == size:
                return
