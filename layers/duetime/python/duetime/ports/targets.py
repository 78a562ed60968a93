"""Calls to the targets of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.attempt_results import Failed, Postponed, Skipped, Succeeded, TargetEnding
    from duetime.domain.tasks.notices import Notice
    from duetime.domain.tasks.targets import EventTarget, HttpTarget, Phase, Query
    from duetime.domain.tasks.task import Progress, RequestedAction, Task
    from duetime.domain.tasks.task_options import Rate
    from duetime.domain.times import Millis
    from duetime_common.steps import StepKeeper


class StepKeepers(Protocol):
    """Creates the store for step results."""

    def __call__(self, has_lease: Callable[[], bool], task: Task, phase: Phase) -> StepKeeper:
        """The store for the steps of an attempt's phase; each step begins only while `has_lease()`."""
        ...


class EventRunner(Protocol):
    """Ends tasks that have waited for an event."""

    def ending(self, target: EventTarget, task: Task) -> Succeeded | Failed:
        """The end of a task that no longer waits: the payload of its signal, or a failure.

        Raises:
            Unavailable: the store did not answer.
        """
        ...


M = TypeVar("M")
R = TypeVar("R")


def _always() -> bool:
    return True


@frozen
class Work:
    """The input of a target, the same for a Python handler and for an HTTP service.

    Attributes:
        phase: phase to run.
        task: the claimed record; its `attempt` and `fence` are this attempt's.
        payload: JSON text in UTF-8.
        checkpoint: checkpoint of an earlier attempt; JSON text in UTF-8.
        deadline: end of the attempt with all its phases; the cleanup has its own deadline.
        seconds: seconds left until the deadline.
        report: reports the task's progress and renews the lease; progress `None` only renews the lease.
        requested_action: the user's request to the attempt, as of the last heartbeat.
        inputs: for a topology node, the results of the parents that it names; for a task that runs after a group, the
            counts of the group's members: one JSON object in UTF-8.
        step_keeper: creates the store for the results of the handler's steps; `None` if there is no store.
        save_checkpoint: stores a checkpoint at once; returns whether the attempt still has its lease. `None` if there
            is no store.
        batch_groups: groups the attempt with other attempts of its delivery; `None` if it runs alone.
        is_leased: whether the attempt's lease has time left, by this process's clock.
        reload_checkpoint: reads the stored checkpoint again, because another function may have saved it.
        executed_by: notes another Lambda function that has run the attempt, as `name:version`.
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
    step_keeper: Callable[[], StepKeeper] | None = None
    save_checkpoint: Callable[[bytes], bool] | None = None
    batch_groups: Callable[[], BatchGroups] | None = None
    is_leased: Callable[[], bool] = _always
    reload_checkpoint: Callable[[], None] = lambda: None
    executed_by: Callable[[str], None] = lambda _executed: None


class BatchGroups(Protocol):
    """Groups attempts for a common call."""

    def join(
        self,
        key: Hashable,
        member: M,
        call: Callable[[Sequence[M], Millis], Sequence[R]],
        *,
        max_size: int,
        max_wait: Millis,
    ) -> R:
        """Join the group of a key, and wait for the result of its call.

        Args:
            key: key of the group.
            member: passed to the call, in the order of joining.
            call: called once per group, with its members and the current time; must not raise.
            max_size: maximum number of members.
            max_wait: longest wait for other members after the first member has joined.

        Returns:
            The call's result for this member.
        """
        ...


class TargetRunner(Protocol):
    """Calls targets."""

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the task's target offers, which always include `run`."""
        ...

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of the target and wait for its end.

        This method never raises; every error becomes a `Failed`.
        """
        ...


class Jobs(Protocol):
    """The jobs that AWS runs for tasks. Every method raises `Unavailable` if the service did not answer."""

    def name(self, ended_job: tuple[str, ...]) -> str:
        """The name of the job in an event, as in `Message`; empty if no task started the job."""
        ...

    def ending(self, task: Task) -> Succeeded | Failed | None:
        """The end of the job of a task's current attempt; `None` while the job runs."""
        ...

    def find(self, task: Task) -> str | None:
        """The ARN of the job of a task's current attempt, found by name; `None` if its service does not list it."""
        ...

    def stop(self, task: Task) -> None:
        """Stop the job of a task's current attempt; a job that has ended does not change."""
        ...


@frozen
class QueryResponse:
    """An endpoint's response to a query about a task.

    Attributes:
        status: HTTP status.
        body: JSON text in UTF-8.
    """

    status: int
    body: bytes


class HandlerPackage(Protocol):
    """The user's package of Python handlers."""

    def why_broken(self) -> str | None:
        """Why the package cannot be imported; `None` if it is imported, or there is no package."""
        ...


class TargetQueries(Protocol):
    """Sends queries about tasks to HTTP endpoints."""

    def ask(self, target: HttpTarget, task: Task, query: Query, nonce: str) -> QueryResponse:
        """Send a query about a task to an endpoint; any status is a valid answer.

        Raises:
            TargetSilent: the endpoint did not answer in time.
            TargetUnreachable: the endpoint must not be called, cannot be reached, or its response is too large.
            Unavailable: the call could not be forwarded or signed.
        """
        ...


class Callbacks(Protocol):
    """Notifies users and endpoints of outcomes."""

    def notify(self, task: Task, address: str, notice: Notice) -> Failed | None:
        """Send a notice to an address once, and return the error, if any. This method never raises."""
        ...

    def outcome_event(self, task: Task) -> bytes:
        """A task's outcome, as JSON text in UTF-8."""
        ...


class StartGate(Protocol):
    """Decides which due tasks must not start now."""

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait or be skipped, and why; `None` if the task may begin."""
        ...


class SwitchRates(Protocol):
    """Limits how often attempts at selected tasks may start."""

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that apply to a task besides the task's own rate."""
        ...


class RateLimits(Protocol):
    """Decides when attempts with a rate may start."""

    def held(self, task: Task, of_switches: tuple[Rate, ...]) -> Postponed | None:
        """Whether a claimed task must wait before its target is called; `None` once it may start.

        Args:
            task: the claimed record.
            of_switches: rates that apply besides the task's own.
        """
        ...


class ConcurrencyCaps(Protocol):
    """Limits how many of the selected tasks may run at once."""

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that enforce the caps on a task, besides the task's own locks."""
        ...

    def look_again(self) -> None:
        """Ensure that the caps are read again before their next use."""
        ...


class InputReader(Protocol):
    """Reads the inputs of topology nodes: the results of their parents."""

    def inputs_of(self, task: Task) -> bytes | None:
        """A task's inputs as one JSON object in UTF-8; `None` if the task needs no inputs.

        Raises:
            InputsTooLarge: the inputs are too large in total, so a retry does not help.
        """
        ...


class TopologyChecker(Protocol):
    """Ensures that running topologies end, regardless of what happens to their executions."""

    def check_topology(self, task: Task) -> None:
        """Check a topology.

        Args:
            task: the topology's task, just read, with its running attempt.

        Raises:
            Unavailable: the check must be repeated.
        """
        ...


class JobChecker(Protocol):
    """Ensures that the attempts of jobs that AWS runs for tasks end."""

    def take_event(self, ended_job: tuple[str, ...]) -> DeleteMessage | RedeliverMessage:
        """Process the event that reports a job's end.

        Args:
            ended_job: names the job, as in `Message`.

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
    """Updates a schedule after the end of an occurrence; the update may be repeated."""

    def follow(self, task: Task) -> None:
        """Process the end of this occurrence.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...


class DependencyListener(Protocol):
    """Starts or ends tasks that wait for other tasks."""

    def check(self, task: Task) -> None:
        """Check a task, just read, that waits for other tasks.

        Raises:
            Unavailable: the check must be repeated.
        """
        ...

    def follow(self, ended: Task) -> None:
        """Check the tasks that wait for a task that has ended. The check may be repeated.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...


class NodeListener(Protocol):
    """Updates a topology after the end of a node, and its nodes after its own end. Updates may be repeated."""

    def follow(self, task: Task) -> Millis | None:
        """Process the end of this node or topology.

        Returns:
            When the node or topology may expire; `None` for a node of a running topology.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...
