"""All checks before a due task starts, in order."""

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
    """Holds tasks that wait for an approval until a decision or a timeout."""

    clock: Clock

    def held(self, task: Task) -> Postponed | None:
        """Whether a just-claimed task waits for an approval; waiting costs no attempt."""
        if not isinstance(task.target, ApprovalTarget):
            return None
        # Few tasks wait for one, so the module is not imported at start.
        from duetime.domain.tasks.approvals import waiting_time  # noqa: PLC0415 - see the line above

        return waiting_time(task, self.clock.now())


@frozen
class EventGate:
    """Holds tasks that wait for an event until a signal or a timeout.

    Attributes:
        waits: returns the gate of tasks with that target, which few tasks have.
    """

    waits: Callable[[], StartGate]

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task waits for an event; waiting costs no attempt."""
        return self.waits().held(task) if isinstance(task.target, EventTarget) else None


@frozen
class HandlerAvailability:
    """Decides which tasks cannot begin because the worker's package of handlers is broken."""

    package: HandlerPackage
    runtime: Runtime
    packaged_types: PackagedTypes

    def held(self, task: Task) -> Postponed | None:
        """Whether a just-claimed task must wait for its handler; waiting costs no attempt."""
        if not isinstance(task.target, HandlerTarget) or self.packaged_types.function_of(task.type) is not None:
            return None
        if (why := self.package.why_broken()) is None:
            return None
        self.runtime.telemetry.count("handlers_unavailable")
        self.runtime.telemetry.note("the package of handlers cannot be imported", error=why, task=task.id.text)
        return Postponed(self.runtime.now() + HANDLERS_RETRY, f"HandlersUnavailable: {why}")


@frozen
class StartGates:
    """Several gates as one; the first that does not let a task begin decides.

    Attributes:
        of_all: gates for every task.
        of_occurrences: further gates for a schedule's tasks.
        of_completions: further gates for tasks that run after the members of a group.
        of_ordered: the last gate of tasks with an ordered key.
    """

    of_all: tuple[StartGate, ...]
    of_occurrences: Callable[[], StartGate]
    of_completions: Callable[[], StartGate]
    of_ordered: Callable[[], StartGate]

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait or be skipped, and why; `None` if it may begin."""
        gates = self.of_all if task.schedule_ref is None else (*self.of_all, self.of_occurrences())
        if task.completes is not None:
            gates = (*gates, self.of_completions())
        if task.order is not None:
            gates = (*gates, self.of_ordered())
        return next((held for gate in gates if (held := gate.held(task))), None)


@dataclass(slots=True)
class SwitchGate:
    """Caches the switches in one process; each of its threads reads them at most every `SWITCHES_LIFE`.

    If a read fails, the last switches stay in force. After `SWITCHES_TRUST` without a successful read, the switches are
    unknown: no task may begin.
    """

    switches: SwitchStore
    runtime: Runtime
    _known: Switches | None = field(default=None, init=False)
    _asked_at: Millis = field(default=0, init=False)
    _known_at: Millis = field(default=0, init=False)

    def look(self) -> Switches | None:
        """The switches as of a moment ago, or of a minute ago at most while reads fail; `None` if unknown."""
        now = self.runtime.now()
        if self._known is None or now - self._asked_at >= SWITCHES_LIFE:
            try:
                self._known = self.switches.read(consistent=False).in_force
                self._known_at = now
            except (Unavailable, RecordUnreadable) as error:
                # A damaged record, or one of a later version, must neither cost attempts nor let a task begin
                # unchecked.
                self.runtime.telemetry.note("the switches could not be read", error=str(error))
            # Set after the read: other threads read them as well, as those known may be a minute old.
            self._asked_at = now
        return self._known if now - self._known_at < SWITCHES_TRUST else None

    def held(self, task: Task) -> Postponed | None:
        """Whether a switch stops a just-claimed task, or may stop it: until when, and why."""
        switches = self.look()
        if switches is None:
            return self._postponed(SWITCHES_LIFE, 2 * SWITCHES_LIFE, "the switches could not be read yet")
        reason = switches.verdict(task)
        return None if reason is None else self._postponed(SHORTEST_STOP, LONGEST_STOP, reason)

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that enforce the caps on a task; none if the switches were never read, as no task begins then."""
        self.look()
        # The task was let begin a moment ago, even if the switches are outdated now.
        return () if self._known is None else self._known.caps(task)

    def look_again(self) -> None:
        """Have the switches read anew at the next look: those known here seem to be outdated."""
        self._asked_at = 0

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that switches set for a task in addition to its own; none if the switches were never read."""
        return () if self._known is None else self._known.rates(task)

    def _postponed(self, shortest: Millis, longest: Millis, reason: str) -> Postponed:
        wait = shortest + self.runtime.random_source.below(longest - shortest + 1)
        return Postponed(self.runtime.now() + wait, reason)
