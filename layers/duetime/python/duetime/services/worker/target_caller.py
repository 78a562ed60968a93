"""Calls a task's target, with a circuit breaker for each host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.circuit_breakers import Circuit, CircuitState, Sign, sign_of
from duetime.domain.conditional_writes import ConditionFailed, Guard, Write
from duetime.domain.errors import ContentExpired, RecordUnreadable, Unavailable
from duetime.domain.operating_parameters import (
    CIRCUIT_FORGOTTEN,
    CIRCUIT_LIFE,
    CIRCUIT_SPREAD,
    CIRCUIT_THRESHOLD,
    CONTENT_RETRY,
    MAX_CIRCUITS_KNOWN,
    MAX_CLOCK_DIFFERENCE,
)
from duetime.domain.tasks.attempt_results import Ending, Failed, NotSent, Postponed, failure
from duetime.domain.tasks.attempt_run import expired
from duetime.domain.tasks.placeholders import filled_payload
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.targets import Phase, host_of
from duetime.domain.times import SECOND
from duetime.domain.topologies.inputs import InputsTooLarge
from duetime.ports.targets import Work
from duetime.services.content_retention import write_checkpoint
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.task import Content, Progress, Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import CircuitStore
    from duetime.ports.targets import InputReader, RateLimits, StepKeepers, SwitchRates, TargetRunner
    from duetime.ports.tasks import ContentStore
    from duetime.services.worker.attempt_lease import AttemptLease, DeliveryState, Watch


@dataclass(slots=True)
class _Known:
    """The state of a host as known to one process from one owner's calls.

    Attributes:
        failures: consecutive failed calls in this process.
        usual: moving average of the response time, weighted toward recent calls; 0 before the first call.
    """

    circuit: Circuit
    read_at: Millis
    failures: int = 0
    usual: Millis = 0

    def has_answered(self, took: Millis) -> None:
        """Update the average with a response time."""
        self.usual = (4 * self.usual + took) // 5 if self.usual else took


@frozen
class CircuitBreakers:
    """`duetime.ports.targets.TargetRunner` that wraps another runner, and suspends calls to a failing host for a while.

    If the store does not answer, the state of the circuit is unknown, and the host is called.
    """

    targets: TargetRunner
    circuits: CircuitStore
    runtime: Runtime
    _known: dict[tuple[str, str], _Known] = field(default_factory=dict, init=False)

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the task's target offers, which always include `run`."""
        return self.targets.phases(task)

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of the target, unless calls to its host are suspended; a cleanup always runs."""
        host = host_of(work.task.target)
        if host is None or work.phase is Phase.CLEAN:
            return self.targets.run(work)
        owner, began = work.task.owner, self.runtime.now()
        try:
            admitted = self._admit(owner, host, work.deadline + MAX_CLOCK_DIFFERENCE)
        except Unavailable:
            admitted = Circuit(owner, host)
        if isinstance(admitted, Postponed):
            return admitted
        shared: list[Work] = []
        ending = self.targets.run(replace(work, shares_call=partial(shared.append, work)))
        if shared and not admitted.openings:
            # One request for several tasks is one call of the host; a probe must always be ended.
            return ending
        try:
            self._learn(admitted, ending, round(work.seconds * SECOND), self.runtime.now() - began)
        except Unavailable as error:
            # A probe without a recorded result expires, and another probe follows.
            self.runtime.telemetry.note("a circuit could not be changed", host=host, owner=owner, error=str(error))
        return ending

    def _admit(self, owner: str, host: str, until: Millis) -> Circuit | Postponed:
        """The circuit, if its host may be called now; unless the circuit is closed, this call becomes its probe."""
        now = self.runtime.now()
        circuit = self._look(owner, host)
        if circuit.state(now) is CircuitState.HALF_OPEN and not circuit.is_probed(now):
            circuit = self._remember(self.circuits.read(owner, host, consistent=True))
        match circuit.state(now):
            case CircuitState.CLOSED:
                return circuit
            case CircuitState.OPEN:
                return self._held(circuit, circuit.open_until)
        if circuit.is_probed(now):
            return self._held(circuit, now)
        return self._save(circuit.probed(until)) or self._held(circuit, now)

    def _learn(self, admitted: Circuit, ending: TargetEnding, given: Millis, took: Millis) -> None:
        """Update the host's circuit with the result of a call."""
        known = self._known.get((admitted.owner, admitted.host))
        sign = sign_of(ending, given=given, usual=known.usual if known else 0)
        if known and sign is Sign.WELL:
            known.has_answered(took)
        if admitted.openings:
            self._end_probe(admitted, ending, sign)
        elif known:
            # Several threads may count at the same time, because a difference of one does not matter.
            known.failures = known.failures + 1 if sign is Sign.ILL else known.failures if sign is Sign.NOTHING else 0
            if known.failures >= CIRCUIT_THRESHOLD:
                known.failures = 0
                self._open(admitted, _reason(ending))

    def _end_probe(self, circuit: Circuit, ending: TargetEnding, sign: Sign) -> None:
        now = self.runtime.now()
        match sign:
            case Sign.WELL:
                self._save(circuit.closed())
                self.runtime.telemetry.count("circuits_closed")
            case Sign.ILL:
                self._save(circuit.opened(_reason(ending), now))
            case Sign.NOTHING:
                self._save(circuit.probed(0))

    def _open(self, admitted: Circuit, reason: str) -> None:
        """Open a circuit, unless another process has done so."""
        owner, host = admitted.owner, admitted.host
        circuit, now = self._remember(self.circuits.read(owner, host, consistent=True)), self.runtime.now()
        if circuit.state(now) is CircuitState.CLOSED and self._save(circuit.opened(reason, now)):
            self.runtime.telemetry.count("circuits_opened")
            self.runtime.telemetry.note("a circuit was opened", host=host, owner=owner, reason=reason)

    def _look(self, owner: str, host: str) -> Circuit:
        """The circuit for an owner's calls to a host, at most `CIRCUIT_LIFE` old."""
        now = self.runtime.now()
        known = self._known.get((owner, host))
        if known is not None and now - known.read_at < CIRCUIT_LIFE:
            return known.circuit
        # The time is set before the read, so that other threads continue with the known circuit.
        self._remember(Circuit(owner, host) if known is None else known.circuit)
        circuit = self.circuits.read(owner, host, consistent=False)
        # An eventually consistent read may be older than this process's own write.
        return self._remember(circuit) if known is None or circuit.version >= known.circuit.version else known.circuit

    def _remember(self, circuit: Circuit) -> Circuit:
        now = self.runtime.now()
        key = (circuit.owner, circuit.host)
        if known := self._known.get(key):
            known.circuit, known.read_at = circuit, now
            return circuit
        if len(self._known) >= MAX_CIRCUITS_KNOWN:
            self._known.clear()
        self._known[key] = _Known(circuit, now)
        return circuit

    def _save(self, circuit: Circuit) -> Circuit | None:
        """Store a circuit; returns `None` if another process has changed the circuit."""
        expires = max(circuit.open_until, self.runtime.now()) + CIRCUIT_FORGOTTEN
        if not self.circuits.save(circuit, self.runtime.nonce(), expires):
            return None
        return self._remember(replace(circuit, version=circuit.version + 1))

    def _held(self, circuit: Circuit, at: Millis) -> Postponed:
        until = at + SECOND + self.runtime.random_source.below(CIRCUIT_SPREAD)
        return Postponed(until, f"the circuit of {circuit.host} is open")


def _reason(ending: TargetEnding) -> str:
    """The type of the error, without the message, which may be confidential."""
    return ending.error.type if isinstance(ending, Failed) else ""


@frozen
class _Given:
    """The inputs of a target in addition to the task's record."""

    payload: bytes
    checkpoint: bytes | None
    inputs: bytes | None


@frozen
class TargetCaller:
    """Calls targets with the stored contents of a task.

    Attributes:
        attempt_steps: creates the store for the steps of an attempt's phase.
    """

    contents: ContentStore
    targets: TargetRunner
    input_reader: Callable[[], InputReader]
    switch_rates: SwitchRates
    rate_limits: Callable[[], RateLimits]
    attempt_steps: StepKeepers
    lease: AttemptLease
    runtime: Runtime

    def call(self, delivery_state: DeliveryState, task: Task, phase: Phase, watch: Watch) -> Ending | ConditionFailed:
        """Run one phase of the target, within what is left of the task's timeout.

        The target is not called if another worker has the lease.
        """

        def report(progress: Progress | None) -> None:
            if progress is None:
                watch.heartbeat()
            else:
                delivery_state.progress = progress

        given = self._given(delivery_state, task)
        if not isinstance(given, _Given):
            return given
        if ended := self.lease.confirm(delivery_state, task):
            return ended
        if delivery_state.started_at is None and (held := self._held(delivery_state, task)):
            return held
        now = self.runtime.now()
        if delivery_state.started_at is None:
            # Waits since the claim, for example for a lock, may have used up the time in which the task may start.
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
                payload=given.payload,
                checkpoint=given.checkpoint,
                deadline=deadline,
                seconds=(deadline - now) / SECOND,
                report=report,
                requested_action=lambda: delivery_state.requested_action,
                inputs=given.inputs,
                step_keeper=partial(self.attempt_steps, partial(self._has_lease, delivery_state, task), task, phase),
                # No checkpoint can be stored in the record of an ended task.
                save_checkpoint=None if task.is_terminal else partial(self._save_checkpoint, delivery_state, task),
                # A task whose start was granted by a rate must not wait for other attempts.
                batch_groups=None if delivery_state.had_turn else watch.batch_groups,
                is_leased=lambda: self.runtime.now() < delivery_state.leased_until,
                reload_checkpoint=partial(self._reload_checkpoint, delivery_state, task),
                executed_by=partial(setattr, delivery_state, "executed"),
            )
        )
        if isinstance(ending, NotSent):
            self.runtime.telemetry.count("calls_not_sent")
            return ending.postponed(task, self.runtime.now(), self.runtime.random_source.fraction())
        return ending

    def _given(self, delivery_state: DeliveryState, task: Task) -> _Given | Failed | Postponed:
        """Read the inputs of the target."""
        try:
            has_inputs = task.node_ref is not None or task.completes is not None
            inputs = self.input_reader().inputs_of(task) if has_inputs else None
            payload = filled_payload(self._read(task, task.payload), task)
            left = delivery_state.checkpoint or task.checkpoint
            return _Given(payload, None if left is None else self._read(task, left), inputs)
        except (InputsTooLarge, ContentExpired) as error:
            return failure(type(error).__name__, str(error), retriable=False)
        except Unavailable as error:
            if delivery_state.started_at is not None:
                raise
            # Perhaps only S3 is failing, and waiting for S3 must not use up an attempt.
            return Postponed(self.runtime.now() + CONTENT_RETRY, f"its payload could not be read: {error}")

    def _has_lease(self, delivery_state: DeliveryState, task: Task) -> bool:
        return self.lease.confirm(delivery_state, task) is None

    def _save_checkpoint(self, delivery_state: DeliveryState, task: Task, checkpoint: bytes) -> bool:
        """Store a checkpoint; returns whether the attempt still has the task."""
        task = replace(task, checkpoint=delivery_state.checkpoint or task.checkpoint)
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence))
        result = write_checkpoint((self.lease.tasks, self.contents), self.runtime, task, checkpoint, write)
        if isinstance(result, ConditionFailed):
            return False
        delivery_state.checkpoint = result.task.checkpoint
        return True

    def _reload_checkpoint(self, delivery_state: DeliveryState, task: Task) -> None:
        """Use the checkpoint that the record refers to now, so that the end of the attempt keeps it."""
        try:
            stored = self.lease.tasks.read(task.id)
        except (Unavailable, RecordUnreadable) as error:
            self.runtime.telemetry.note("a checkpoint was not read again", error=str(error), task=task.id.text)
            return
        if stored is not None and stored.fence == task.fence and stored.checkpoint is not None:
            delivery_state.checkpoint = stored.checkpoint

    def _held(self, delivery_state: DeliveryState, task: Task) -> Postponed | None:
        """Whether a task with a rate must wait; `None` once it may start under a lease that is long enough."""
        of_switches = self.switch_rates.rates(task)
        if task.rate is None and not of_switches:
            return None
        if held := self.rate_limits().held(task, of_switches):
            return held
        delivery_state.had_turn = True
        # The lease is not renewed here, because the renewal could take longer than the granted time.
        is_over = self.runtime.now() >= delivery_state.leased_until
        return Postponed(self.runtime.now(), "a lease with time left") if is_over else None

    def _read(self, task: Task, content: Content) -> bytes:
        return self.contents.fetch(task.id, content) if content.data is None else content.data


def timeout(task: Task) -> Failed:
    """The end of an attempt that exceeded its timeout."""
    return failure("Timeout", f"the target did not end within {task.timeout_seconds} s")
