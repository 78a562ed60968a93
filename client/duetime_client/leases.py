"""`client.leases`: leases of pull workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from duetime_client.io_operations import Request
from duetime_client.open_literals import (
    RequestedAction,
    TaskState,
)
from duetime_client.problems import document_of, unexpected_response
from duetime_client.request_limits import error_document, printable, writable
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.session import segment
from duetime_client.task import Task
from duetime_common.limits import MAX_PROGRESS_MESSAGE_LENGTH

if TYPE_CHECKING:
    import httpx

LEASES = "/v1/leases"
KEEP: object = object()
"""The value that means that no new checkpoint is given; `None` cannot mean this, because it is a valid checkpoint."""
_TRACEBACK_LENGTH = 20_000


class LeasedTask(BaseModel):
    """A leased task; the lease ends at `expires_at` unless it is renewed."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    """The lease's id, which every report must name."""
    expires_at: datetime
    checkpoint: object = None
    """The latest checkpoint of an earlier attempt; `None` if there is no checkpoint."""
    inputs: object = None
    """For a topology node, the results of the parents listed in its `inputs`, by name."""
    unacknowledged_leases: int = 0
    """Number of consecutive earlier leases of the task that no worker acknowledged."""
    task: Task
    lasts: timedelta = timedelta(0)
    """How much time the lease had left when the API responded, by the API's clock."""


class LeaseState(BaseModel):
    """The state of a lease and of its task."""

    model_config = ConfigDict(frozen=True, extra="allow")

    task_id: str
    state: TaskState
    requested_action: RequestedAction | None = None
    """The requested action: `pause`, `cancel` or `None`."""
    expires_at: datetime | None = None
    lasts: timedelta = timedelta(0)


LeasedTasks: TypeAlias = list[LeasedTask]
StepResults: TypeAlias = dict[str, Any]


class LeaseOperations(Resource):
    """Leases of tasks that a pull worker runs."""

    @Operation
    def acquire(
        self,
        types: Iterable[str],
        *,
        max_tasks: int = 1,
        wait_seconds: int = 0,
        lease_seconds: int = 30,
        acknowledge_within_seconds: int | None = None,
        worker: str = "",
    ) -> Request[LeasedTasks]:
        """Lease due tasks of pulled types; the list is empty if no task became due during the wait.

        The request is not retried: if its response is lost, the tasks stay leased until the leases expire. With
        `acknowledge_within_seconds` (at most `lease_seconds`), leases expire after that time unless a heartbeat renews
        them.
        """
        body: dict[str, object] = {
            "types": [*types],
            "max_tasks": max_tasks,
            "wait_seconds": wait_seconds,
            "lease_seconds": lease_seconds,
            "worker": worker,
        }
        if acknowledge_within_seconds is not None:
            body["acknowledge_within_seconds"] = acknowledge_within_seconds
        return Request("POST", LEASES, _leases, body=body)

    @Operation
    def renew(
        self, lease: str, percent: int | None = None, message: str = "", *, checkpoint: object = KEEP
    ) -> Request[LeaseState]:
        """Renew a lease and report progress; the response's `requested_action` may ask for a pause or a cancellation.

        A checkpoint, at most 4 KB of JSON, is kept for the next attempt, however this attempt ends. Characters of the
        message that cannot be encoded are escaped, and a long message is cut.
        """
        shown = printable(message, MAX_PROGRESS_MESSAGE_LENGTH)
        body: dict[str, object] = {} if percent is None else {"percent": percent, "message": shown}
        return _report(lease, "heartbeat", body if checkpoint is KEEP else {**body, "checkpoint": checkpoint})

    @Operation
    def list_steps(self, lease: str) -> Request[StepResults]:
        """Get the stored results of a leased task's steps by name."""
        return Request("GET", f"{LEASES}/{segment(lease)}/steps", _steps)

    @Operation
    def put_step(self, lease: str, step: str, result: object = None, *, duration_ms: int = 0) -> Request[Any]:
        """Store a step's result (at most 32 KB of JSON), and return what is stored, which may be another attempt's."""
        body = {"result": result, "duration_ms": duration_ms}
        return Request("PUT", f"{LEASES}/{segment(lease)}/steps/{segment(step)}", _step, body=body, repeatable=True)

    @Operation
    def complete(self, lease: str, result: object = None) -> Request[LeaseState]:
        """Report success."""
        return _report(lease, "complete", {"result": result})

    @Operation
    def fail(
        self,
        lease: str,
        kind: str,
        message: str = "",
        *,
        retriable: bool = True,
        retry_in_seconds: float | None = None,
        traceback: str = "",
    ) -> Request[LeaseState]:
        """Report a failure with its traceback, and whether another attempt may succeed.

        `retry_in_seconds` replaces the wait of the task's retry policy.
        Any error can be reported: characters that cannot be encoded are escaped, and long strings are cut.
        """
        body: dict[str, object] = {"error": error_document(kind, message), "retriable": retriable}
        if retry_in_seconds is not None:
            body["retry_in_seconds"] = retry_in_seconds
        kept = writable(traceback[-_TRACEBACK_LENGTH:])[-_TRACEBACK_LENGTH:]
        return _report(lease, "fail", {**body, **({"traceback": kept} if kept else {})})

    @Operation
    def release(self, lease: str) -> Request[LeaseState]:
        """Release a task immediately; this does not count as an attempt."""
        return _report(lease, "release")

    @Operation
    def acknowledge_pause(self, lease: str, checkpoint: object = None) -> Request[LeaseState]:
        """Stop working on a task whose pause was requested; the next attempt continues from the checkpoint."""
        return _report(lease, "pause", {} if checkpoint is None else {"checkpoint": checkpoint})

    @Operation
    def acknowledge_cancel(self, lease: str) -> Request[LeaseState]:
        """Stop working on a task whose cancellation was requested."""
        return _report(lease, "cancel")


class Leases(LeaseOperations, SyncResource):
    """`client.leases` of `Client`."""


class AsyncLeases(LeaseOperations, AsyncResource):
    """`client.leases` of `AsyncClient`."""


def _report(lease: str, what: str, body: dict[str, object] | None = None) -> Request[LeaseState]:
    # Repeating a report with the same lease changes nothing, so it may be retried.
    return Request("POST", f"{LEASES}/{segment(lease)}/{what}", _state, body=body, repeatable=True)


def _state(response: httpx.Response) -> LeaseState:
    document = document_of(response)
    if not isinstance(document, Mapping):
        raise unexpected_response(response, "no state of a lease in the response")
    try:
        state = LeaseState.model_validate(document)
    except ValidationError as error:
        raise unexpected_response(response, "the response's state of a lease is not valid") from error
    return state.model_copy(update={"lasts": _lasts(response, state.expires_at)})


def _steps(response: httpx.Response) -> StepResults:
    match document_of(response):
        case {"steps": list() as steps}:
            return {step["name"]: step["result"] for step in steps}
        case _:
            raise unexpected_response(response, "no steps in the response")


def _step(response: httpx.Response) -> Any:  # noqa: ANN401 - any JSON
    match document_of(response):
        case {"result": result}:
            return result
        case _:
            raise unexpected_response(response, "no step in the response")


def _leases(response: httpx.Response) -> list[LeasedTask]:
    match document_of(response):
        case {"leases": list() as leases}:
            return [_leased(response, lease) for lease in leases]
        case _:
            raise unexpected_response(response, "no leases in the response")


def _leased(response: httpx.Response, document: Any) -> LeasedTask:  # noqa: ANN401 - any JSON
    try:
        lease = LeasedTask.model_validate({**document, "task": Task.of_document(document["task"])})
    except (ValidationError, KeyError, TypeError) as error:
        raise unexpected_response(response, "a lease in the response is not valid") from error
    return lease.model_copy(update={"lasts": _lasts(response, lease.expires_at)})


def _lasts(response: httpx.Response, expires_at: datetime | None) -> timedelta:
    """How much time a lease has left, by the API's clock because this machine's clock may be wrong."""
    if expires_at is None:
        return timedelta(0)
    try:
        answered_at = parsedate_to_datetime(response.headers["Date"])
    except (KeyError, ValueError):
        answered_at = datetime.now(UTC)
    return max(timedelta(0), expires_at - answered_at.replace(tzinfo=answered_at.tzinfo or UTC))
