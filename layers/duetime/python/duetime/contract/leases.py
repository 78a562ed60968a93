"""The REST API for leases of pull workers.

A lease id is opaque to workers and valid for one lease. The id contains the claim's nonce, so it cannot be guessed; in
addition, the caller must be allowed to pull the task's type. A truncated or changed id is rejected as unknown.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import matching_parameter, read_body
from duetime.contract.tasks.encoding import entry, json_of, json_text
from duetime.contract.tasks.fields import Percent, ProgressMessage, TaskType, each_once, printable
from duetime.contract.tasks.operations import EmptyRequest, ReportedError
from duetime.contract.tasks.responses import Instant, TaskSummary
from duetime.domain import errors
from duetime.domain.callers import Role
from duetime.domain.errors import LeaseNotFound
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import (
    LEASE_SECONDS,
    MAX_CHECKPOINT_BYTES,
    MAX_LEASE_SECONDS,
    MAX_LEASE_TOKEN_LENGTH,
    MAX_LEASES,
    MAX_LOGGED_TRACEBACK_LENGTH,
    MAX_PULL_WAIT_SECONDS,
    MAX_PULLED_TYPES,
    MAX_RESULT_BYTES,
    MAX_RETRY_WAIT_SECONDS,
    MAX_STEP_RESULT_BYTES,
    MAX_STEPS,
    MAX_TRACEBACK_LENGTH,
    MAX_TYPE_LENGTH,
    MAX_WORKER_NAME_LENGTH,
    MIN_LEASE_SECONDS,
)
from duetime.domain.operating_parameters import MAX_UNACKNOWLEDGED_LEASES
from duetime.domain.switches import SwitchScope
from duetime.domain.tasks import pull_leases
from duetime.domain.tasks.attempt_results import Succeeded, Yielded, failure
from duetime.domain.tasks.pull_leases import LeaseKey
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Progress, RequestedAction
from duetime.domain.times import SECOND, to_iso
from duetime.domain.tracebacks import redacted
from duetime_common.payload_codecs import is_encrypted_text
from duetime_common.steps import STEP_NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


MAX_STEP_MS = 2**31 - 1
"""Longest step duration that can be reported."""


class LeaseRequest(Body):
    """A worker's request for leases."""

    types: Annotated[
        list[TaskType],
        Field(
            min_length=1,
            max_length=MAX_PULLED_TYPES,
            description="Types of tasks that the worker can run.",
            json_schema_extra={"uniqueItems": True},
        ),
        AfterValidator(each_once),
    ]
    max_tasks: Annotated[int, Field(ge=1, le=MAX_LEASES, description="Maximum number of tasks.")] = 1
    wait_seconds: Annotated[
        int, Field(ge=0, le=MAX_PULL_WAIT_SECONDS, description="How long to wait if no task is due.")
    ] = 0
    lease_seconds: Annotated[
        int,
        Field(
            ge=MIN_LEASE_SECONDS,
            le=MAX_LEASE_SECONDS,
            description="Length of the lease. If no heartbeat arrives in this time, another worker may get the task.",
        ),
    ] = LEASE_SECONDS
    acknowledge_within_seconds: Annotated[
        int | None,
        Field(
            ge=MIN_LEASE_SECONDS,
            le=MAX_LEASE_SECONDS,
            description="Length of the lease before the first heartbeat. The maximum, and the default, is "
            "`lease_seconds`. A lease that a worker never received, because the worker was lost during the wait, ends "
            "after this time.",
        ),
    ] = None
    worker: Annotated[
        str,
        Field(max_length=MAX_WORKER_NAME_LENGTH, description="The worker's name, for the attempt history."),
        AfterValidator(printable),
    ] = ""


class LeaseHeartbeat(Body):
    """A heartbeat, with the progress of the work and a checkpoint."""

    percent: Annotated[Percent | None, Field(description="Progress of the work in percent.")] = None
    message: ProgressMessage = ""
    checkpoint: Annotated[
        Any,
        Field(
            description=f"Any JSON of at most {MAX_CHECKPOINT_BYTES} bytes, for the next attempt if this one fails, is "
            "lost or is paused; if left out, an earlier checkpoint is kept."
        ),
    ] = None


class StepDone(Body):
    """A completed step of the work."""

    result: Annotated[
        Any, Field(description=f"Any JSON of at most {MAX_STEP_RESULT_BYTES} bytes.", examples=[{"charge": "ch_17"}])
    ] = None
    duration_ms: Annotated[int, Field(ge=0, le=MAX_STEP_MS, description="How long the step took, in milliseconds.")] = 0


class StoredStep(TypedDict):
    """A step whose result is stored."""

    name: Annotated[str, Field(description="Name of the step.")]
    result: Annotated[
        Any,
        Field(
            description="The stored result, possibly from another attempt that stored it first. Continue with this "
            "result."
        ),
    ]


class StoredSteps(TypedDict):
    """The completed steps of earlier attempts and the current attempt."""

    steps: Annotated[Sequence[StoredStep], Field(description="The steps.")]


class LeaseComplete(Body):
    """The work succeeded."""

    result: Annotated[
        Any, Field(description=f"Any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}])
    ] = None


class LeaseFail(Body):
    """The work failed."""

    error: Annotated[ReportedError, Field(description="Why the work failed.")]
    retriable: Annotated[bool, Field(description="Whether another attempt may be made.")] = True
    retry_in_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=MAX_RETRY_WAIT_SECONDS,
            description="How long to wait before the next attempt, instead of the retry policy's wait. Cannot be "
            "given if `retriable` is false.",
        ),
    ] = None
    traceback: Annotated[
        str,
        Field(
            max_length=MAX_LOGGED_TRACEBACK_LENGTH,
            description="Traceback or stack trace, in any language. Apparent secrets are redacted; the last "
            f"{MAX_TRACEBACK_LENGTH} characters or fewer can be read with the attempt, if tracebacks are kept.",
        ),
    ] = ""


class LeasePause(Body):
    """The work was stopped because a pause was requested."""

    checkpoint: Annotated[
        Any,
        Field(
            description=f"Any JSON of at most {MAX_CHECKPOINT_BYTES} bytes, for the next attempt; if left "
            "out, an earlier checkpoint is kept."
        ),
    ] = None


class LeasedTask(TaskSummary):
    """A leased task."""

    payload: Any


class LeasedResponse(TypedDict):
    """A lease, with its task."""

    id: Annotated[str, Field(description="Id of the lease, which the worker's reports must name.")]
    expires_at: Annotated[
        Instant,
        Field(description="When the lease ends unless it is renewed; afterwards another worker may get the task."),
    ]
    checkpoint: Annotated[Any, Field(description="The latest checkpoint of an earlier attempt; null if there is none.")]
    inputs: Annotated[
        Any,
        Field(
            description=(
                "For a topology node, the results of the parent nodes that its `inputs` name. For a group's "
                "completion task, the `group`. Null for other tasks."
            )
        ),
    ]
    unacknowledged_leases: Annotated[
        int,
        Field(
            description="Number of consecutive earlier leases of the task that ended without a heartbeat or report. "
            f"Only those after the first {MAX_UNACKNOWLEDGED_LEASES} count as attempts."
        ),
    ]
    task: LeasedTask


class AcquiredLeases(TypedDict):
    """The acquired leases; empty if no task was due."""

    leases: Sequence[LeasedResponse]


class LeaseStatus(TypedDict):
    """The status of a lease and of its task."""

    task_id: str
    state: State
    requested_action: Annotated[
        RequestedAction | None,
        Field(description="Action that the attempt should take; null if no action is requested."),
    ]
    expires_at: Annotated[Instant | None, Field(description="When the lease ends; null once the attempt has ended.")]


TOKEN_PATTERN = f"^[A-Za-z0-9_-]{{1,{MAX_LEASE_TOKEN_LENGTH}}}$"
_TOKEN = re.compile(TOKEN_PATTERN.strip("^$"))
_STEP_NAME = re.compile(STEP_NAME_PATTERN)
_RECEIPT = re.compile(r"[!-~]{1,1500}")
_VERSION = 1
_MOST_DIGITS = 12
"""Maximum number of digits in a fence; ids whose fence has more digits are invalid."""


def token_of(key: LeaseKey) -> str:
    """The id of a lease."""
    fields = [_VERSION, key.task_id.text, key.fence, key.nonce, key.pull_queue, key.length // SECOND, key.receipt]
    text = json.dumps([*fields, *key.limited_by], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def key_of(token: str) -> LeaseKey:
    """The key of the lease with the given id.

    Raises:
        LeaseNotFound: the id is invalid.
    """
    match _decoded(token):
        case [1, str(task_id), int(fence), str(nonce), str(pull_queue), int(seconds), str(receipt), *scopes]:
            fits = 0 < fence < 10**_MOST_DIGITS and MIN_LEASE_SECONDS <= seconds <= MAX_LEASE_SECONDS
            limited_by = tuple(scope for scope in SwitchScope if scope in scopes)
            if fits and len(pull_queue) <= MAX_TYPE_LENGTH and _RECEIPT.fullmatch(receipt):
                length = seconds * SECOND
                return LeaseKey(_task_id(task_id), int(fence), nonce, pull_queue, length, receipt, limited_by)
    raise LeaseNotFound


def _decoded(token: str) -> object:
    if _TOKEN.fullmatch(token) is None:
        raise LeaseNotFound
    try:
        return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise LeaseNotFound from None


def _task_id(text: str) -> TaskId:
    try:
        return TaskId.parse(text)
    except InvalidTaskId:
        raise LeaseNotFound from None


def lease_request(document: Document, caller: str) -> pull_leases.LeaseRequest:
    """A worker's request for leases; the worker's name defaults to the caller's name."""
    body = read_body(LeaseRequest, document)
    within = body.acknowledge_within_seconds
    if within is not None and within > body.lease_seconds:
        raise FieldsInvalid([Fault("acknowledge_within_seconds", "is more than lease_seconds", FaultCode.CONFLICT)])
    return pull_leases.LeaseRequest(
        types=tuple(body.types),
        max_tasks=body.max_tasks,
        wait=body.wait_seconds * SECOND,
        length=body.lease_seconds * SECOND,
        worker=body.worker or caller[:MAX_WORKER_NAME_LENGTH],
        acknowledge_within=None if within is None else within * SECOND,
    )


def lease_heartbeat(document: Document) -> tuple[Progress | None, bytes | None]:
    """The progress and the checkpoint in a heartbeat; each of them is `None` if it is absent."""
    body = read_body(LeaseHeartbeat, document)
    checkpoint = _checkpoint(body)
    if body.percent is None:
        if body.message:
            raise FieldsInvalid([Fault("message", "needs percent", FaultCode.CONFLICT)])
        return None, checkpoint
    return Progress(body.percent, body.message), checkpoint


def step_name(text: str) -> str:
    """Parses the name of a step in a path.

    Raises:
        ParametersInvalid: the text cannot be a name.
    """
    return matching_parameter(text, STEP_NAME_PATTERN, "step")


def step_done(document: Document) -> tuple[bytes, Millis]:
    """The result and the duration of a step."""
    body = read_body(StepDone, document)
    result = compact(body.result)
    if len(result) > MAX_STEP_RESULT_BYTES:
        raise FieldsInvalid([Fault("result", f"is larger than {MAX_STEP_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return result, body.duration_ms


def stored_step(name: str, result: bytes) -> str:
    """A stored step, as JSON text."""
    return json_text(StoredStep(name=name, result=json.loads(result)))


def stored_steps(steps: Mapping[str, bytes]) -> str:
    """The stored steps of a leased task, as JSON text."""
    found = [StoredStep(name=name, result=json.loads(result)) for name, result in steps.items()]
    return json_text(StoredSteps(steps=found[:MAX_STEPS]))


def completion(document: Document) -> Ending:
    """Decodes a success."""
    result = compact(read_body(LeaseComplete, document).result)
    if len(result) > MAX_RESULT_BYTES:
        raise FieldsInvalid([Fault("result", f"is larger than {MAX_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return Succeeded(result)


def lease_failure(document: Document) -> Ending:
    """Decodes a failure."""
    body = read_body(LeaseFail, document)
    seconds = body.retry_in_seconds
    if seconds is not None and not body.retriable:
        raise FieldsInvalid([Fault("retry_in_seconds", "cannot be given: retriable is false", FaultCode.CONFLICT)])
    failed = failure(body.error.type, body.error.message, retriable=body.retriable)
    retry_in = None if seconds is None else math.ceil(seconds * SECOND)
    return replace(failed, retry_in=retry_in, traceback=_readable_part(body.traceback))


def _readable_part(traceback: str) -> str:
    """A traceback without secrets; an encrypted traceback is left unchanged, because redaction would corrupt it."""
    return traceback if is_encrypted_text(traceback) else redacted(traceback)


def lease_pause(document: Document) -> Ending:
    """Decodes a pause, with the checkpoint for the next attempt."""
    body = read_body(LeasePause, document)
    return Yielded(_checkpoint(body))


def _checkpoint(body: LeasePause | LeaseHeartbeat) -> bytes | None:
    if "checkpoint" not in body.model_fields_set:
        return None
    checkpoint = compact(body.checkpoint)
    if len(checkpoint) > MAX_CHECKPOINT_BYTES:
        raise FieldsInvalid([Fault("checkpoint", f"is larger than {MAX_CHECKPOINT_BYTES} bytes", FaultCode.TOO_LONG)])
    return checkpoint


def leases_text(leased: Iterable[tuple[LeaseKey, Task, bytes | None, bytes | None]]) -> str:
    """Encodes leases as JSON text. Payloads, checkpoints and inputs are already JSON, and are inserted unchanged."""
    return f'{{"leases":[{",".join(_lease_text(*each) for each in leased)}]}}'


def lease_state(task: Task) -> str:
    """The status of a lease, as JSON text."""
    is_live = task.state is State.RUNNING
    return json_text(
        LeaseStatus(
            task_id=task.id.text,
            state=task.state,
            requested_action=task.requested_action,
            expires_at=to_iso(task.lease_expires_at) if is_live and task.lease_expires_at is not None else None,
        )
    )


def _lease_text(key: LeaseKey, task: Task, checkpoint: bytes | None, inputs: bytes | None) -> str:
    known = json_text({"id": token_of(key), "expires_at": to_iso(task.lease_expires_at or 0)})
    left, given = ("null" if part is None else part.decode() for part in (checkpoint, inputs))
    about = f'{json_text(entry(task))[:-1]},"payload":{json_of(task.payload)}}}'
    before = max(0, (task.unacknowledged or 1) - 1)
    return f'{known[:-1]},"checkpoint":{left},"inputs":{given},"unacknowledged_leases":{before},"task":{about}}}'


_OF_A_LEASE = (errors.TypeNotPulled, errors.FenceMismatch)
_ENDING = (*_OF_A_LEASE, errors.NotifiedOtherwise)

LEASE = Operation(
    "acquireLeases",
    "POST /v1/leases",
    "Acquire leases on due tasks",
    Returns(AcquiredLeases, "The leases."),
    description="For pull workers, wherever they run. Returns due tasks of all owners, provided that the deployment's "
    "settings allow the caller to pull these types. With `wait_seconds`, the response is sent as soon as there is a "
    "task, or at once if as many requests are waiting as the settings allow. If the response is lost, its tasks stay "
    "leased until the leases end. A lease counts as an attempt from its first heartbeat or report on. Up to "
    f"{MAX_UNACKNOWLEDGED_LEASES} consecutive leases that end without a heartbeat or report do not count.",
    body=LeaseRequest,
    role=Role.WORKER,
    errors=(errors.TypeNotPulled,),
)


def _report(
    id_: str,
    name: str,
    summary: str,
    description: str = "",
    body: type[Body] = EmptyRequest,
    refusals: tuple[type[Exception], ...] = _ENDING,
) -> Operation:
    """Declares a worker's report on a lease."""
    return Operation(
        id_,
        f"POST /v1/leases/{{lease_id}}/{name}",
        summary,
        Returns(LeaseStatus, "The state of the task."),
        description=description,
        body=body,
        role=Role.WORKER,
        errors=refusals,
    )


HEARTBEAT = _report(
    "renewLease",
    "heartbeat",
    "Renew a lease",
    "Extends the lease by its length, but never beyond the task's `timeout_seconds` after the start of the attempt, "
    "and saves the checkpoint, if given. `requested_action` is what the worker should do: pause or cancel.",
    LeaseHeartbeat,
    (*_OF_A_LEASE, errors.AttemptOverdue, errors.LockLost),
)
COMPLETE = _report(
    "completeLease",
    "complete",
    "Complete a leased task",
    "Reports that the work is done. Repeating the same report changes nothing and returns the same response. The "
    "report is also accepted after the end of the lease, as long as no other worker has the task.",
    LeaseComplete,
)
FAIL = _report(
    "failLease",
    "fail",
    "Fail a leased task",
    "Reports that the work has failed. The task is retried according to its retry policy, unless `retriable` is false; "
    "`retry_in_seconds` replaces the policy's wait.",
    LeaseFail,
)
LIST_STEPS = Operation(
    "listLeaseSteps",
    "GET /v1/leases/{lease_id}/steps",
    "List the steps of a leased task",
    Returns(StoredSteps, "The completed steps."),
    description="The steps whose results earlier attempts or this attempt have stored. The worker must not repeat "
    "these steps. The first attempt of a task (`fence` 1) does not need this request.",
    role=Role.WORKER,
    errors=_OF_A_LEASE,
)
PUT_STEP = Operation(
    "putLeaseStep",
    "PUT /v1/leases/{lease_id}/steps/{step}",
    "Store the result of a step",
    Returns(StoredStep, "The stored step."),
    description="Stores the result of a step, or returns the result that is already stored. The result is also "
    "accepted after the end of the lease, as long as the task has not ended, so that the next attempt does not repeat "
    "the step.",
    body=StepDone,
    role=Role.WORKER,
    errors=_OF_A_LEASE,
)
RELEASE = _report(
    "releaseLease",
    "release",
    "Give back a leased task",
    "Any worker may lease the task again at once. The released lease does not count as an attempt.",
)
PAUSE = _report(
    "acknowledgeLeasePause",
    "pause",
    "Acknowledge a request to pause",
    "The worker has stopped the work because `requested_action` was `pause`, and may send a checkpoint.",
    body=LeasePause,
    refusals=(*_ENDING, errors.StateConflict),
)
CANCEL = _report(
    "acknowledgeLeaseCancel",
    "cancel",
    "Acknowledge a request to cancel",
    "The worker has stopped the work because `requested_action` was `cancel`.",
    refusals=(*_ENDING, errors.StateConflict),
)
