"""One call of a task's target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import ContentExpired
from duetime.domain.tasks.attempt_results import Ending, Failed, NotSent, Postponed, failure
from duetime.domain.tasks.expiry import expired
from duetime.domain.tasks.placeholders import filled_payload
from duetime.domain.times import SECOND
from duetime.domain.topologies.inputs import InputsTooLarge
from duetime.ports.targets import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.conditional_writes import ConditionFailed
    from duetime.domain.tasks.content import Content
    from duetime.domain.tasks.targets import Phase
    from duetime.domain.tasks.task import Progress, Task
    from duetime.ports.attempts import InputReader, RateLimits, SwitchRates
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import TargetRunner
    from duetime.ports.tasks import ContentStore
    from duetime.services.worker.attempt_lease import AttemptLease, DeliveryState, Watch


@dataclass(frozen=True, slots=True)
class TargetCaller:
    """Calls targets with the stored contents of a task."""

    contents: ContentStore
    targets: TargetRunner
    input_reader: Callable[[], InputReader]
    switch_rates: SwitchRates
    rate_limits: Callable[[], RateLimits]
    lease: AttemptLease
    runtime: Runtime

    def call(self, delivery_state: DeliveryState, task: Task, phase: Phase, watch: Watch) -> Ending | ConditionFailed:
        """Run one phase of the target, within the rest of the task's timeout.

        Does nothing if another worker has the lease.
        """

        def report(progress: Progress | None) -> None:
            if progress is None:
                watch.heartbeat()
            else:
                delivery_state.progress = progress

        try:
            inputs = self.input_reader().inputs_of(task) if task.node_ref is not None else None
            payload = filled_payload(self._read(task, task.payload), task)
            checkpoint = None if task.checkpoint is None else self._read(task, task.checkpoint)
        except (InputsTooLarge, ContentExpired) as error:
            return failure(type(error).__name__, str(error), retriable=False)
        if ended := self.lease.confirm(delivery_state, task):
            return ended
        if delivery_state.started_at is None and (held := self._held(delivery_state, task)):
            return held
        now = self.runtime.now()
        if delivery_state.started_at is None:
            # Waits since the claim, for example for a lock, may have used up the remaining time.
            if late := expired(task, now):
                return late
            delivery_state.started_at = now
        deadline = task.overdue_at(delivery_state.started_at)
        if now >= deadline:
            return timeout(task)
        ending = self.targets.run(
            Work(
                phase=phase,
                task=task,
                payload=payload,
                checkpoint=checkpoint,
                deadline=deadline,
                seconds=(deadline - now) / SECOND,
                report=report,
                requested_action=lambda: delivery_state.requested_action,
                inputs=inputs,
            )
        )
        if isinstance(ending, NotSent):
            self.runtime.telemetry.count("calls_not_sent")
            return ending.postponed(task, self.runtime.now(), self.runtime.random_source.fraction())
        return ending

    def _held(self, delivery_state: DeliveryState, task: Task) -> Postponed | None:
        """Whether a task with a rate must wait; `None` once it may start, with a lease that is long enough."""
        of_switches = self.switch_rates.rates(task)
        if task.rate is None and not of_switches:
            return None
        if held := self.rate_limits().held(task, of_switches):
            return held
        delivery_state.had_turn = True
        # A renewal now could take longer than the granted time.
        is_over = self.runtime.now() >= delivery_state.leased_until
        return Postponed(self.runtime.now(), "a lease with time left") if is_over else None

    def _read(self, task: Task, content: Content) -> bytes:
        return self.contents.fetch(task.id, content) if content.data is None else content.data


def timeout(task: Task) -> Failed:
    """The end of an attempt that exceeded its timeout."""
    return failure("Timeout", f"the target did not end within {task.timeout_seconds} s")
