"""Ports for calls to tasks' targets, and for decisions before and after these calls."""

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
    """Creates stores for step results."""

    def __call__(self, has_lease: Callable[[], bool], task: Task, phase: Phase) -> StepKeeper:
        """Create the store for an attempt's steps in a phase. A step begins only while `has_lease()` returns true."""
        ...


class EventRunner(Protocol):
    """Decides how tasks that have waited for an event end."""

    def ending(self, target: EventTarget, task: Task) -> Succeeded | Failed:
        """The end of a task that no longer waits, which is a success with its signal's payload, or a failure.

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
    """The input of a target, which is the same for a Python handler and for an HTTP service.

    Attributes:
        phase: phase to run.
        task: the claimed record, with this attempt's `attempt` and `fence`.
        payload: JSON text in UTF-8.
        checkpoint: checkpoint of an earlier attempt; JSON text in UTF-8.
        deadline: when all phases of the attempt must have ended; the cleanup has a separate deadline.
        seconds: number of seconds left until the deadline.
        report: records the task's progress for the next heartbeat; if the progress is `None`, renews the lease at once.
        requested_action: the user's request to the attempt, as of the last heartbeat.
        inputs: one JSON object in UTF-8, which contains the results of the parents that a topology node names, or, for
            a task that runs after a group, the counts of the group's members.
        step_keeper: creates the store for the results of the handler's steps; `None` if there is no store.
        save_checkpoint: stores a checkpoint at once, and returns whether the attempt still has its lease; `None` if
            there is no store.
        batch_groups: groups the attempt with others from the same batch of messages; `None` if the attempt runs alone.
        is_leased: returns whether the attempt's lease has time left, according to this process's clock.
        reload_checkpoint: reads the stored checkpoint again, because another function may have saved it.
        executed_by: records that another Lambda function has run the attempt, as `name:version`.
        shares_call: records that the attempt is called in the same request as an attempt that counts for both.
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
    shares_call: Callable[[], None] = lambda: None


class BatchGroups(Protocol):
    """Groups attempts that share a call."""

    def join(
        self,
        key: Hashable,
        member: M,
        call: Callable[[Sequence[M], Millis], Sequence[R]],
        *,
        max_size: int,
        max_wait: Millis,
    ) -> R:
        """Join the group with a key, and wait for the result of the group's call.

        Args:
            key: key of the group.
            member: this attempt's value, which is passed to the call; members are in the order in which they joined.
            call: function that is called once per group, with the group's members and the current time; must not raise.
            max_size: maximum number of members.
            max_wait: longest wait for other members after the first member has joined.

        Returns:
            The call's result for this member.
        """
        ...


class TargetRunner(Protocol):
    """Calls targets."""

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the task's target supports, which always include `run`."""
        ...

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of the target and wait for its end. Errors from targets become a `Failed` or a `NotSent`.

        Raises:
            Unavailable: a store did not answer, for a target that uses one.
        """
        ...


class Jobs(Protocol):
    """Access to the jobs that AWS runs for tasks. Every method raises `Unavailable` if the service did not answer."""

    def name(self, ended_job: tuple[str, ...]) -> str:
        """The name of the job in an event, as in `Message`; empty if no task started the job."""
        ...

    def ending(self, task: Task) -> Succeeded | Failed | None:
        """How the job of a task's current attempt ended; `None` while the job runs."""
        ...

    def find(self, task: Task) -> str | None:
        """Find by name the ARN of the job for a task's current attempt; `None` if the service does not list the job."""
        ...

    def stop(self, task: Task) -> None:
        """Stop the job of a task's current attempt; if the job has ended, nothing changes."""
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
        """Send a query about a task to an endpoint; a response with any status is a valid answer.

        Raises:
            TargetSilent: the endpoint did not answer in time.
            TargetUnreachable: the endpoint must not be called, cannot be reached, or returns a response that is too
                large.
            Unavailable: the call could not be forwarded or signed.
        """
        ...


class Callbacks(Protocol):
    """Sends notices about tasks, and encodes outcomes for callbacks."""

    def notify(self, task: Task, address: str, notice: Notice) -> Failed | None:
        """Send a notice to an address, without retries, and return the error, if any. This method never raises."""
        ...

    def outcome_event(self, task: Task) -> bytes:
        """Encode a task's outcome as JSON text in UTF-8."""
        ...


class StartGate(Protocol):
    """Decides which due tasks must not start now."""

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a task that was just claimed must wait or be skipped, and why; `None` if it may start."""
        ...


class SwitchRates(Protocol):
    """Limits how often attempts of selected tasks may start."""

    def rates(self, task: Task) -> tuple[Rate, ...]:
        """The rates that apply to a task in addition to the task's own rate."""
        ...


class RateLimits(Protocol):
    """Decides when attempts with a rate may start."""

    def held(self, task: Task, of_switches: tuple[Rate, ...]) -> Postponed | None:
        """Whether a claimed task must wait before its target is called; `None` once it may start.

        Args:
            task: the claimed record.
            of_switches: rates that apply in addition to the task's own rate.
        """
        ...


class ConcurrencyCaps(Protocol):
    """Limits how many of the selected tasks may run at once."""

    def caps(self, task: Task) -> tuple[LockClaim, ...]:
        """The locks that enforce concurrency limits on a task, in addition to the task's own locks."""
        ...

    def look_again(self) -> None:
        """Ensure that the concurrency limits are read again before they are used next."""
        ...


class InputReader(Protocol):
    """Reads the inputs of tasks: the results of a topology node's parents, or the counts of a group."""

    def inputs_of(self, task: Task) -> bytes | None:
        """A task's inputs as one JSON object in UTF-8; `None` if the task needs no inputs.

        Raises:
            InputsTooLarge: the inputs are too large in total, so a retry would not help.
        """
        ...


class TopologyChecker(Protocol):
    """Ensures that running topologies end, whatever happens to their executions."""

    def check_topology(self, task: Task) -> None:
        """Check a topology.

        Args:
            task: the topology's task with its running attempt, which was just read.

        Raises:
            Unavailable: the check must be repeated.
        """
        ...


class JobChecker(Protocol):
    """Ensures that attempts end if AWS runs jobs for them."""

    def take_event(self, ended_job: tuple[str, ...]) -> DeleteMessage | RedeliverMessage:
        """Process the event that reports a job's end.

        Args:
            ended_job: identifies the job, as in `Message`.

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
        """Check a task that waits for other tasks and was just read.

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
    """Updates a topology after a node has ended, and the topology's nodes after the topology has ended.

    Updates may be repeated.
    """

    def follow(self, task: Task) -> Millis | None:
        """Process the end of this node or topology.

        Returns:
            When the node or topology may expire; `None` for a node of a running topology.

        Raises:
            Unavailable: the call must be repeated.
        """
        ...
