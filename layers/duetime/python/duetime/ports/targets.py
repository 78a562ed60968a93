"""What a task calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.attempt_results import Failed, Succeeded, TargetEnding
    from duetime.domain.tasks.notices import Notice
    from duetime.domain.tasks.targets import HttpTarget, Phase, Query
    from duetime.domain.tasks.task import Progress, RequestedAction, Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Work:
    """What a target is given: the same for a Python handler and for an HTTP service.

    Attributes:
        phase: what it has to do.
        task: the record as it was claimed; its `attempt` and `fence` are this attempt's.
        payload: JSON text in UTF-8.
        checkpoint: what a paused attempt left; JSON text in UTF-8.
        deadline: when the attempt must have ended, all its phases together; cleaning up has a time of its own.
        seconds: what is left until then.
        report: tells the task's progress and renews the lease; `None` only renews it.
        requested_action: what the user asks of the attempt, as of the last heartbeat.
        inputs: of a topology's node, the results of the parents that it names: one JSON object in UTF-8; else nothing.
    """

    phase: Phase
    task: Task
    payload: bytes
    checkpoint: bytes | None
    deadline: Millis
    seconds: float
    report: Callable[[Progress | None], None]
    requested_action: Callable[[], RequestedAction | None]
    inputs: bytes | None = None


class TargetRunner(Protocol):
    """Calls targets."""

    def phases(self, task: Task) -> frozenset[Phase]:
        """What the task's target offers; `run` is always among it."""
        ...

    def run(self, work: Work) -> TargetEnding:
        """Have the target do one phase and wait for its end. Never raises: whatever goes wrong is a `Failed`."""
        ...


class Jobs(Protocol):
    """The jobs that AWS runs for tasks. Every method raises `Unavailable` if the service did not answer."""

    def name(self, ended_job: tuple[str, ...]) -> str:
        """The name of a job that an event tells of, as `Message` has it; empty if tasks did not start it."""
        ...

    def ending(self, task: Task) -> Succeeded | Failed | None:
        """How the job of a task's present attempt has ended; `None` while it runs."""
        ...

    def find(self, task: Task) -> str | None:
        """The ARN of the job of a task's present attempt, by its name; `None` if its service does not list it."""
        ...

    def stop(self, task: Task) -> None:
        """Have the job of a task's present attempt stopped; one that has ended stays as it is."""
        ...


@dataclass(frozen=True, slots=True)
class QueryResponse:
    """What an endpoint answered when it was asked about a task.

    Attributes:
        status: of HTTP, whatever it is.
        body: JSON text in UTF-8.
    """

    status: int
    body: bytes


class HandlerPackage(Protocol):
    """The user's package of Python handlers."""

    def why_broken(self) -> str | None:
        """Why it cannot be imported; `None` if it is, or there is none."""
        ...


class TargetQueries(Protocol):
    """Asks HTTP endpoints about tasks."""

    def ask(self, target: HttpTarget, task: Task, query: Query, nonce: str) -> QueryResponse:
        """Ask an endpoint about a task; whatever it answers is its answer.

        Raises:
            TargetSilent: it did not answer in time.
            TargetUnreachable: it may not be called, cannot be reached, or answers more than anybody reads.
            Unavailable: the call could not be handed on or signed.
        """
        ...


class Callbacks(Protocol):
    """Tells others of outcomes."""

    def notify(self, task: Task, address: str, notice: Notice) -> Failed | None:
        """Send a notice to an address once; what went wrong, or nothing. Never raises."""
        ...

    def outcome_event(self, task: Task) -> bytes:
        """A task's outcome, as JSON text in UTF-8."""
        ...
