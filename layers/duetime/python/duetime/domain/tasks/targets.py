"""Targets: what a task's attempt calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.http_requests import HttpRequest
from duetime.domain.tasks.states import TERMINAL, State

if TYPE_CHECKING:
    from duetime.domain.tasks.arns import AwsService


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """The Python handler that the worker function has registered for the task's type."""


class Phase(StrEnum):
    """What a target may be asked to do; only `run` is a must.

    Attributes:
        PREPARE: make ready, before `run`; both happen under one attempt.
        RUN: do the work.
        CLEAN: tidy up, after the outcome, whatever it was.
        ROLLBACK: undo the work.
    """

    PREPARE = "prepare"
    RUN = "run"
    CLEAN = "clean"
    ROLLBACK = "rollback"


class Query(StrEnum):
    """What an HTTP endpoint may be asked about a task, besides being told to do a phase.

    Attributes:
        STATUS: where it stands with the task.
        PROGRESS: how far it has come.
        SUMMARY: what it has done, for a person to read.
    """

    STATUS = "status"
    PROGRESS = "progress"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An HTTP endpoint.

    Attributes:
        phases: what it offers besides `run`.
        queries: what it answers when it is asked.
        request: how it is called, and what of its response is kept.
    """

    url: str
    phases: frozenset[Phase] = frozenset()
    queries: frozenset[Query] = frozenset()
    request: HttpRequest = field(default_factory=HttpRequest)

    @property
    def offers_more(self) -> str:
        """The field that says what it does besides `run`; empty if neither does."""
        return "phases" if self.phases else "queries" if self.queries else ""


@dataclass(frozen=True, slots=True)
class PullTarget:
    """A worker anywhere that asks for tasks of this type and leases them: see `services/pull/lease.py`."""


@dataclass(frozen=True, slots=True)
class AwsTarget:
    """A resource of AWS that is called with the task.

    Attributes:
        service: what kind of resource it is.
        waits: whether the end of a Lambda function is waited for; without that it notifies of its end.
        detail_type: of the event that is put on an event bus; empty for the task's type.
        is_job: whether AWS runs it for as long as it takes, and its end is waited for: see `aws_jobs`.
        place: where a job runs: the ARN of the cluster of an ECS task, or of the queue of a Batch job.
        container: of an ECS task: the container that is given the task's facts.
        parameters: of a job: what else the request that starts it says; a JSON object as text, or nothing.
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
        definition: what the graph was made of; `None` if its user gave the graph itself.
    """

    definition: DefinitionRef | None = None


class OnTimeout(StrEnum):
    """What becomes of an approval that nobody has given in time.

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
    """A person, who approves or rejects: nothing is called.

    Attributes:
        timeout_seconds: how long after it is due.
    """

    timeout_seconds: int
    on_timeout: OnTimeout = OnTimeout.FAIL


@dataclass(frozen=True, slots=True)
class CallbackTarget:
    """A URL that is told of the outcome of another task; no request names such a target."""

    url: str


Target = HandlerTarget | HttpTarget | PullTarget | AwsTarget | TopologyTarget | ApprovalTarget | CallbackTarget


def definition_of(target: Target | None) -> DefinitionRef | None:
    """The definition that a topology is a run of; `None` for anything else that is called."""
    return target.definition if isinstance(target, TopologyTarget) else None


def names_definitions(payload: bytes) -> bool:
    """Whether nodes of the graph in a payload may name definitions; asked first, it takes no time."""
    return b'"definition"' in payload


def outlives_workers(target: Target | None) -> bool:
    """Whether an attempt whose worker was lost goes on with the next claim, and is no attempt that was used up.

    A job that the worker may have started is found by its name; an approval calls nothing.
    """
    return isinstance(target, ApprovalTarget) or (isinstance(target, AwsTarget) and target.is_job)


def pull_queue_of(task_type: str, target: Target | None, state: State) -> str:
    """The pulled type on whose queue a task waits; empty for the queues of the worker functions.

    The worker functions also do what follows an outcome: it must not wait until somebody pulls.
    """
    is_over = state in TERMINAL or state is State.ROLLING_BACK
    return task_type if isinstance(target, PullTarget) and not is_over else ""
