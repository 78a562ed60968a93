"""What an attempt asks before it starts, and what is notified of its end."""

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
    """Says which tasks must not begin now, though they are due."""

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a task that was just claimed must wait or be skipped, and why; nothing if it may begin."""
        ...


class SwitchRates(Protocol):
    """Says how often attempts at tasks of a kind may start."""

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that a task has because of that, besides its own."""
        ...


class RateLimits(Protocol):
    """Says when the attempts of a rate may start."""

    def held(self, task: Task, of_switches: tuple[Rate, ...]) -> Postponed | None:
        """Whether a claimed task whose target is about to be called must wait; nothing once it may start.

        Args:
            task: the record as it was claimed.
            of_switches: the rates that it has besides its own.
        """
        ...


class ConcurrencyCaps(Protocol):
    """Says how many tasks of a kind may run at once."""

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that a task needs because of that, besides its own."""
        ...


class InputReader(Protocol):
    """Reads what the nodes of topologies are given of their parents' results."""

    def inputs_of(self, task: Task) -> bytes | None:
        """What a task is given, as one JSON object in UTF-8; `None` if it asks for nothing.

        Raises:
            InputsTooLarge: it has too many bytes together; trying again does not help.
        """
        ...


class TopologyChecker(Protocol):
    """Sees to it that topologies which run come to their end, whatever happened to their executions."""

    def check_topology(self, task: Task) -> None:
        """Check one.

        Args:
            task: the topology's, as its running attempt was just read.

        Raises:
            Unavailable: it is to be checked again.
        """
        ...


class JobChecker(Protocol):
    """Sees to it that jobs which AWS runs for tasks end their attempts."""

    def take_event(self, ended_job: tuple[str, ...]) -> DeleteMessage | RedeliverMessage:
        """Take the event of a job's end.

        Args:
            ended_job: as of `Message`.

        Raises:
            Unavailable: it is to be taken again.
        """
        ...

    def check_job(self, task: Task) -> None:
        """Check the job of an attempt, as that was just read.

        Raises:
            Unavailable: it is to be checked again.
        """
        ...


class OccurrenceListener(Protocol):
    """Does what the end of an occurrence means for its schedule; doing it twice is doing it once."""

    def follow(self, task: Task) -> None:
        """Do what follows the end of this occurrence.

        Raises:
            Unavailable: it is to be done again.
        """
        ...


class NodeListener(Protocol):
    """Does what the end of a node means for its topology, and a topology's for its nodes; twice is once."""

    def follow(self, task: Task) -> Millis | None:
        """Do what follows the end of this node or topology.

        Returns:
            From when on it may expire; `None` if it is a node of a topology that goes on.

        Raises:
            Unavailable: it is to be done again.
        """
        ...
