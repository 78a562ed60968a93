"""Injects faults into a test, to check that the user's code tolerates the faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import Phase
from duetime.domain.times import MINUTE, SECOND, Millis

if TYPE_CHECKING:
    from duetime.ports.targets import Work
    from duetime_testing.account import VirtualAccount
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine

_SUSPENDED = 5 * MINUTE
"""How long a process is suspended to lose its lease, in milliseconds. The first recovery scan finds the task within
this time."""


@dataclass(frozen=True)
class Wanted:
    """The attempt number and task type to which a fault applies; `None` matches every attempt or every type."""

    attempt: int | None
    task_type: str | None

    def matches(self, work: Work) -> bool:
        """Whether the fault applies to an attempt."""
        is_attempt = self.attempt in {None, work.task.attempt}
        return work.phase is Phase.RUN and is_attempt and self.task_type in {None, work.task.type}


@dataclass
class Faults:
    """The faults that are injected into a test, each into tasks of one type or into all tasks.

    Attributes:
        account: the account to inject the faults into.
    """

    account: VirtualAccount
    _crashes: list[Wanted] = field(default_factory=list)
    _losses: list[Wanted] = field(default_factory=list)
    _repeats: list[Wanted] = field(default_factory=list)
    _heartbeat: Millis = 0

    def crash_before_finish(self, attempt: int = 1, type: str | None = None) -> None:  # noqa: A002 - the API's word
        """End the worker's process after the target has done its work and before the outcome is stored.

        The next attempt repeats the work.
        """
        self._crashes.append(Wanted(attempt, type))

    def lose_lease(self, attempt: int = 1, type: str | None = None) -> None:  # noqa: A002 - same
        """Suspend the worker's process after the target has done its work.

        The process is suspended until its lease has expired and another worker has claimed the task. Both workers do
        the work, each with its own fence number; the first worker's outcome is rejected.
        """
        self._losses.append(Wanted(attempt, type))

    def deliver_twice(self, type: str | None = None) -> None:  # noqa: A002 - same
        """Deliver the message of each attempt to a second worker while the first worker runs the task.

        The second worker does not get the lease, so the work is done only once.
        """
        self._repeats.append(Wanted(None, type))

    def slow_heartbeat(self, seconds: float = 20) -> None:
        """Delay each of the workers' heartbeats by `seconds`."""
        self._heartbeat = round(seconds * SECOND)
        self.account.before_call = self._slow_down

    def clear(self) -> None:
        """Remove all faults."""
        self._crashes.clear()
        self._losses.clear()
        self._repeats.clear()
        self.account.before_call = None

    def before_phase(self, work: Work) -> None:
        """Apply faults before a target is called."""
        if any(each.matches(work) for each in self._repeats):
            account = self.account
            account.time.start_process(partial(account.deliver_at, work.task.id.text, account.time.now()))
            # The second worker tries to claim the task before the target starts its work.
            account.take(SECOND)

    def after_phase(self, machine: Machine, work: Work) -> None:
        """Apply faults after a target has returned; this method does not return if a fault ends the process."""
        if any(each.matches(work) for each in self._crashes):
            machine.die()
            machine.live()
        if any(each.matches(work) for each in self._losses):
            time = self.account.time
            time.freeze(time.process(), time.now() + _SUSPENDED)
            self.account.take(_SUSPENDED)

    def _slow_down(self, call: Call) -> None:
        values = call.request.get("ExpressionAttributeValues") or {}
        is_worker = call.machine.function == "worker" and call.operation == "update_item"
        if is_worker and ":lease_expires_at" in values and ":state" not in values:
            self.account.take(self._heartbeat)
