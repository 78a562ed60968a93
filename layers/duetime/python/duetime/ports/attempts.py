"""Checks before an attempt starts, and listeners to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.attempt_results import Postponed, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis


class StartGate(Protocol):
    """Decides which due tasks must not start now."""

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait or be skipped, and why; `None` if it may begin."""
        ...


class SwitchRates(Protocol):
    """Limits how often attempts at selected tasks may start."""

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that apply to a task in addition to its own."""
        ...


class RateLimits(Protocol):
    """Decides when attempts with a rate may start."""

    def held(self, task: Task, of_switches: tuple[Rate, ...]) -> Postponed | None:
        """Whether a claimed task must wait before its target is called; `None` once it may start.

        Args:
            task: the claimed record.
            of_switches: rates that apply in addition to its own.
        """
        ...


class ConcurrencyCaps(Protocol):
    """Limits how many of the selected tasks may run at once."""

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that a task needs for the caps, in addition to its own."""
        ...


class InputReader(Protocol):
    """Reads the inputs of topology nodes: results of their parents."""

    def inputs_of(self, task: Task) -> bytes | None:
        """A task's inputs as one JSON object in UTF-8; `None` if it asks for none.

        Raises:
            InputsTooLarge: they are too large together; a retry does not help.
        """
        ...


class TopologyChecker(Protocol):
    """Makes sure that running topologies come to their end, whatever happens to their executions."""

    def check_topology(self, task: Task) -> None:
        """Check a topology.

        Args:
            task: the topology's task, just read, with its running attempt.

        Raises:
            Unavailable: the check must be repeated.
        """
        ...


class JobChecker(Protocol):
    """Makes sure that jobs that AWS runs for tasks end their attempts."""

    def take_event(self, ended_job: tuple[str, ...]) -> DeleteMessage | RedeliverMessage:
        """Process the event of a job's end.

        Args:
            ended_job: as in `Message`.

        Raises:
            Unavailable: the event must be processed again.
        """
        ...

    def check_job(self, task: Task) -> None:
        """Check the job of an attempt whose record was just read.

        Raises:
            Unavailable: the check must be repeated.
        """
        ...


class OccurrenceListener(Protocol):
    """Updates a schedule after the end of an occurrence; repeating it is safe."""

    def follow(self, task: Task) -> None:
        """Process the end of this occurrence.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...


class DependencyListener(Protocol):
    """Starts or ends tasks that wait for others."""

    def check(self, task: Task) -> None:
        """Check a task, just read, that waits for others.

        Raises:
            Unavailable: the check must be repeated.
        """
        ...

    def follow(self, ended: Task) -> None:
        """Check the tasks that wait for one that has ended; repeating it is safe.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...


class NodeListener(Protocol):
    """Updates a topology after the end of a node, and its nodes after its own end; repeating it is safe."""

    def follow(self, task: Task) -> Millis | None:
        """Process the end of this node or topology.

        Returns:
            When it may expire; `None` for a node of a running topology.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...
