"""Targets: what a task's attempt calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.http_requests import HttpRequest, ResponseOptions
from duetime.domain.tasks.states import TERMINAL, State

if TYPE_CHECKING:
    from duetime.domain.tasks.arns import AwsService


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """The Python handler that the worker function has registered for the task's type."""


class Phase(StrEnum):
    """A phase of an attempt; only `run` is mandatory.

    Attributes:
        PREPARE: preparation before `run`, within the same attempt.
        RUN: do the work.
        CLEAN: cleanup after any outcome.
        ROLLBACK: undo the work.
    """

    PREPARE = "prepare"
    RUN = "run"
    CLEAN = "clean"
    ROLLBACK = "rollback"


class Query(StrEnum):
    """A query about a task that an HTTP endpoint supports.

    Attributes:
        STATUS: the status of the task.
        PROGRESS: its progress.
        SUMMARY: a summary for people.
    """

    STATUS = "status"
    PROGRESS = "progress"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class CallBatch:
    """How tasks share the calls of an endpoint.

    Attributes:
        max_size: most tasks of one call.
        max_wait_seconds: how long the first task may wait for others.
    """

    max_size: int
    max_wait_seconds: float


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An HTTP endpoint.

    Attributes:
        phases: supported phases besides `run`.
        queries: supported queries.
        request: the custom request, and the parts of its response to keep.
        batch: how its tasks share calls; `None` if each has its own.
    """

    url: str
    phases: frozenset[Phase] = frozenset()
    queries: frozenset[Query] = frozenset()
    request: HttpRequest = field(default_factory=HttpRequest)
    batch: CallBatch | None = None

    @property
    def offers_more(self) -> str:
        """The field that offers more than `run`; empty if there is none."""
        return "phases" if self.phases else "queries" if self.queries else ""

    @property
    def conflicts_with_batch(self) -> str:
        """The field that is about the call of a single task; empty if there is none."""
        request = self.request
        of_one = {
            "phases": self.phases,
            "method": request.method,
            "body": request.body,
            "success": request.success,
            "response": request.response != ResponseOptions(),
        }
        return next((name for name, value in of_one.items() if value), "")


@dataclass(frozen=True, slots=True)
class PullTarget:
    """A worker anywhere that leases tasks of this type: see `services/pull/lease.py`."""


@dataclass(frozen=True, slots=True)
class AwsTarget:
    """A resource of AWS that is called with the task.

    Attributes:
        service: of the resource.
        waits: whether to wait for the end of a Lambda function; otherwise the function notifies of it.
        detail_type: of the event on an event bus; empty for the task's type.
        is_job: whether it is a long-running job in AWS whose end is waited for: see `aws_jobs`.
        place: where a job runs: the ARN of the cluster of an ECS task, or of the queue of a Batch job.
        container: for an ECS task, the container that receives the task's facts.
        parameters: for a job, additional parameters of the request that starts it: a JSON object as text, or empty.
    """

    service: AwsService
    arn: str
    waits: bool = True
    detail_type: str = ""
    is_job: bool = False
    place: str = ""
    container: str = ""
    parameters: str = ""


@dataclass(frozen=True, slots=True)
class DefinitionRef:
    """The definition that a topology is a run of.

    Attributes:
        version: of the definition; `None` for the latest one, until a run is created.
        parameters: of the run, as JSON text.
    """

    name: str
    version: int | None = None
    parameters: str = "{}"


@dataclass(frozen=True, slots=True)
class TopologyTarget:
    """The state machine that runs a graph of tasks; the graph is the task's payload.

    Attributes:
        definition: the source of the graph; `None` if its user gave the graph itself.
    """

    definition: DefinitionRef | None = None


class OnTimeout(StrEnum):
    """What happens to an approval that was not decided in time.

    Attributes:
        FAIL: the task fails.
        REJECT: it is rejected, as by a person.
        APPROVE: it is approved, with no payload.
    """

    FAIL = "fail"
    REJECT = "reject"
    APPROVE = "approve"


@dataclass(frozen=True, slots=True)
class ApprovalTarget:
    """A person who approves or rejects; nothing is called.

    Attributes:
        timeout_seconds: time limit after the due time.
    """

    timeout_seconds: int
    on_timeout: OnTimeout = OnTimeout.FAIL


@dataclass(frozen=True, slots=True)
class EventTarget:
    """An event that is waited for; nothing is called.

    Attributes:
        event: name of the event.
        key: distinguishes events with the same name; empty for none.
        timeout_seconds: time limit after the due time.
        lookback_seconds: how long before the task's creation a signal may have been sent.
    """

    event: str
    key: str
    timeout_seconds: int
    lookback_seconds: int = 0


@dataclass(frozen=True, slots=True)
class CallbackTarget:
    """A URL that receives the outcome of another task; requests cannot name such a target."""

    url: str


WaitingTarget = ApprovalTarget | EventTarget
"""A target that calls nothing."""
Target = HandlerTarget | HttpTarget | PullTarget | AwsTarget | TopologyTarget | WaitingTarget | CallbackTarget


def definition_of(target: Target | None) -> DefinitionRef | None:
    """The definition that a topology is a run of; `None` for other targets."""
    return target.definition if isinstance(target, TopologyTarget) else None


def names_definitions(payload: bytes) -> bool:
    """Whether nodes of the graph in a payload may name definitions: a fast check without parsing."""
    return b'"definition"' in payload


def outlives_workers(target: Target | None) -> bool:
    """Whether an attempt continues with the next claim if its worker is lost, so that no attempt is used up.

    A job that the worker may have started is found by its name; waiting for an approval or an event calls nothing.
    """
    return isinstance(target, WaitingTarget) or (isinstance(target, AwsTarget) and target.is_job)


def pull_queue_of(task_type: str, target: Target | None, state: State) -> str:
    """The pulled type whose queue a task waits on; empty for the queues of the worker functions.

    The worker functions also run follow-ups of an outcome, and check what a blocked task waits for; neither must wait
    for a pull worker.
    """
    is_of_workers = state in TERMINAL or state in {State.ROLLING_BACK, State.BLOCKED}
    return task_type if isinstance(target, PullTarget) and not is_of_workers else ""
