"""Contains the checks that a due task must pass before it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import RecordUnreadable, Unavailable
from duetime.domain.operating_parameters import (
    HANDLERS_RETRY,
    LONGEST_STOP,
    SHORTEST_STOP,
    SWITCHES_LIFE,
    SWITCHES_TRUST,
)
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.targets import ApprovalTarget, EventTarget, HandlerTarget
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.locks import LockClaim
    from duetime.domain.switches import Switches
    from duetime.domain.tasks.attempt_results import Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import PackagedTypes
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import SwitchStore
    from duetime.ports.targets import HandlerPackage, StartGate


@frozen
class ApprovalGate:
    """Holds tasks that need an approval until a decision or a timeout."""

    clock: Clock

    def held(self, task: Task) -> Postponed | None:
        """Whether a just-claimed task must wait for an approval; the wait does not count as an attempt."""
        if not isinstance(task.target, ApprovalTarget):
            return None
        # Few tasks wait for an approval, so the module is not imported at startup.
        from duetime.domain.tasks.approvals import waiting_time  # noqa: PLC0415 - see the line above

        return waiting_time(task, self.clock.now())


@frozen
class EventGate:
    """Holds tasks that wait for an event until a signal or a timeout.

    Attributes:
        waits: returns the gate for tasks with an event target, which few tasks have.
    """

    waits: Callable[[], StartGate]

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait for an event; the wait does not count as an attempt."""
        return self.waits().held(task) if isinstance(task.target, EventTarget) else None


@frozen
class HandlerAvailability:
    """Holds the tasks that cannot begin because the worker's handler package is broken."""

    package: HandlerPackage
    runtime: Runtime
    packaged_types: PackagedTypes

    def held(self, task: Task) -> Postponed | None:
        """Whether a just-claimed task must wait for its handler; the wait does not count as an attempt."""
        if not isinstance(task.target, HandlerTarget) or self.packaged_types.function_of(task.type) is not None:
            return None
        if (why := self.package.why_broken()) is None:
            return None
        self.runtime.telemetry.count("handlers_unavailable")
        self.runtime.telemetry.note("the package of handlers cannot be imported", error=why, task=task.id.text)
        return Postponed(self.runtime.now() + HANDLERS_RETRY, f"HandlersUnavailable: {why}")


@frozen
class StartGates:
    """Combines several gates. A task is held by the first gate that does not let it begin.

    Attributes:
        of_all: gates for every task.
        of_occurrences: returns an additional gate for a schedule's tasks.
        of_completions: returns an additional gate for tasks that run after the members of a group.
        of_ordered: returns an additional gate for tasks with an ordered key.
        last: gates for every task, which are reached only by a task that would otherwise begin.
    """

    of_all: tuple[StartGate, ...]
    of_occurrences: Callable[[], StartGate]
    of_completions: Callable[[], StartGate]
    of_ordered: Callable[[], StartGate]
    last: tuple[StartGate, ...]

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait or be skipped, and why; `None` if the task may begin."""
        gates = self.of_all if task.schedule_ref is None else (*self.of_all, self.of_occurrences())
        if task.completes is not None:
            # While members are open, the task waits for its group, whatever else holds it, and thus does not expire.
            gates = (self.of_completions(), *gates)
        if task.order is not None:
            gates = (*gates, self.of_ordered())
        return next((held for gate in (*gates, *self.last) if (held := gate.held(task))), None)


@dataclass(slots=True)
class SwitchGate:
    """Caches the switches in one process; each thread reads the switches at most once every `SWITCHES_LIFE`.

    If a read fails, the last known switches stay in effect. After `SWITCHES_TRUST` without a successful read, the
    switches are unknown, and no task may begin.
    """

    switches: SwitchStore
    runtime: Runtime
    _known: Switches | None = field(default=None, init=False)
    _asked_at: Millis = field(default=0, init=False)
    _known_at: Millis = field(default=0, init=False)

    def look(self) -> Switches | None:
        """The switches, at most `SWITCHES_LIFE` old, or `SWITCHES_TRUST` while reads fail; `None` if unknown."""
        now = self.runtime.now()
        if self._known is None or now - self._asked_at >= SWITCHES_LIFE:
            try:
                self._known = self.switches.read(consistent=False).in_force
                self._known_at = now
            except (Unavailable, RecordUnreadable) as error:
                # A damaged record, or a record of a later version, must neither cost attempts nor let a task begin
                # unchecked.
                self.runtime.telemetry.note("the switches could not be read", error=str(error))
            # The time is set after the read, so that other threads also read, because the known switches may be a
            # minute old.
            self._asked_at = now
        return self._known if now - self._known_at < SWITCHES_TRUST else None

    def held(self, task: Task) -> Postponed | None:
        """Whether a switch stops or may stop a just-claimed task, until when, and why."""
        switches = self.look()
        if switches is None:
            return self._postponed(SWITCHES_LIFE, 2 * SWITCHES_LIFE, "the switches could not be read yet")
        reason = switches.verdict(task)
        return None if reason is None else self._postponed(SHORTEST_STOP, LONGEST_STOP, reason)

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that enforce the caps on a task; empty if the switches were never read, so that no task begins."""
        self.look()
        # The caps apply even if the known switches have become outdated since a gate let the task begin.
        return () if self._known is None else self._known.caps(task)

    def look_again(self) -> None:
        """Ensure that the next call to `look` reads the switches, because the known switches seem outdated."""
        self._asked_at = 0

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that switches set for a task besides the task's own rate; empty if the switches were never read."""
        return () if self._known is None else self._known.rates(task)

    def _postponed(self, shortest: Millis, longest: Millis, reason: str) -> Postponed:
        wait = shortest + self.runtime.random_source.below(longest - shortest + 1)
        return Postponed(self.runtime.now() + wait, reason)
