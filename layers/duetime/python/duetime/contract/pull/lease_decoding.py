"""Decodes the requests of pull workers, and encodes leases as responses, with their ids.

The id of a lease is opaque to workers and valid for one lease. It contains the nonce of its claim, so it cannot be made
up, and its caller must be allowed to pull its type. A truncated or changed id does not exist.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact
from duetime.contract.http.validation_errors import matching_parameter, read_body
from duetime.contract.pull import leases
from duetime.contract.pull.leases import LeaseStatus, StoredStep, StoredSteps
from duetime.contract.tasks.encoding import entry, json_of, json_text
from duetime.domain.errors import LeaseNotFound
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import (
    MAX_CHECKPOINT_BYTES,
    MAX_LEASE_SECONDS,
    MAX_LEASE_TOKEN_LENGTH,
    MAX_RESULT_BYTES,
    MAX_STEP_RESULT_BYTES,
    MAX_STEPS,
    MAX_TYPE_LENGTH,
    MAX_WORKER_NAME_LENGTH,
    MIN_LEASE_SECONDS,
)
from duetime.domain.tasks.attempt_results import Succeeded, Yielded, failure
from duetime.domain.tasks.pull_leases import LeaseKey, LeaseRequest
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Progress
from duetime.domain.times import SECOND, to_iso
from duetime.domain.tracebacks import redacted
from duetime_common.steps import STEP_NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


TOKEN_PATTERN = f"^[A-Za-z0-9_-]{{1,{MAX_LEASE_TOKEN_LENGTH}}}$"
_TOKEN = re.compile(TOKEN_PATTERN.strip("^$"))
_STEP_NAME = re.compile(STEP_NAME_PATTERN)
_RECEIPT = re.compile(r"[!-~]{1,1500}")
_VERSION = 1
_MOST_DIGITS = 12
"""Maximum number of digits of a fence; ids with larger numbers are invalid."""


def token_of(key: LeaseKey) -> str:
    """The id of a lease."""
    fields = [_VERSION, key.task_id.text, key.fence, key.nonce, key.pull_queue, key.length // SECOND, key.receipt]
    text = json.dumps(fields, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def key_of(token: str) -> LeaseKey:
    """The lease with an id.

    Raises:
        LeaseNotFound: the id is invalid.
    """
    match _decoded(token):
        case [1, str(task_id), int(fence), str(nonce), str(pull_queue), int(seconds), str(receipt)]:
            fits = 0 < fence < 10**_MOST_DIGITS and MIN_LEASE_SECONDS <= seconds <= MAX_LEASE_SECONDS
            if fits and len(pull_queue) <= MAX_TYPE_LENGTH and _RECEIPT.fullmatch(receipt):
                return LeaseKey(_task_id(task_id), int(fence), nonce, pull_queue, seconds * SECOND, receipt)
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


def lease_request(document: Document, caller: str) -> LeaseRequest:
    """A worker's request for leases; without a name, the worker has the name of its caller."""
    body = read_body(leases.LeaseRequest, document)
    within = body.acknowledge_within_seconds
    if within is not None and within > body.lease_seconds:
        raise FieldsInvalid([Fault("acknowledge_within_seconds", "is more than lease_seconds", FaultCode.CONFLICT)])
    return LeaseRequest(
        types=tuple(body.types),
        max_tasks=body.max_tasks,
        wait=body.wait_seconds * SECOND,
        length=body.lease_seconds * SECOND,
        worker=body.worker or caller[:MAX_WORKER_NAME_LENGTH],
        acknowledge_within=None if within is None else within * SECOND,
    )


def lease_heartbeat(document: Document) -> tuple[Progress | None, bytes | None]:
    """The progress and the checkpoint in a heartbeat, each `None` without it."""
    body = read_body(leases.LeaseHeartbeat, document)
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
    """The result of a step, and how long it took."""
    body = read_body(leases.StepDone, document)
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
    result = compact(read_body(leases.LeaseComplete, document).result)
    if len(result) > MAX_RESULT_BYTES:
        raise FieldsInvalid([Fault("result", f"is larger than {MAX_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return Succeeded(result)


def lease_failure(document: Document) -> Ending:
    """Decodes a failure."""
    body = read_body(leases.LeaseFail, document)
    seconds = body.retry_in_seconds
    if seconds is not None and not body.retriable:
        raise FieldsInvalid([Fault("retry_in_seconds", "cannot be given: retriable is false", FaultCode.CONFLICT)])
    failed = failure(body.error.type, body.error.message, retriable=body.retriable)
    retry_in = None if seconds is None else math.ceil(seconds * SECOND)
    return replace(failed, retry_in=retry_in, traceback=redacted(body.traceback))


def lease_pause(document: Document) -> Ending:
    """Decodes a pause, with the checkpoint for the next attempt."""
    body = read_body(leases.LeasePause, document)
    return Yielded(_checkpoint(body))


def _checkpoint(body: leases.LeasePause | leases.LeaseHeartbeat) -> bytes | None:
    if "checkpoint" not in body.model_fields_set:
        return None
    checkpoint = compact(body.checkpoint)
    if len(checkpoint) > MAX_CHECKPOINT_BYTES:
        raise FieldsInvalid([Fault("checkpoint", f"is larger than {MAX_CHECKPOINT_BYTES} bytes", FaultCode.TOO_LONG)])
    return checkpoint


def leases_text(leased: Iterable[tuple[LeaseKey, Task, bytes | None, bytes | None]]) -> str:
    """Encodes leases as JSON text. Payloads, checkpoints and inputs are JSON already, and are inserted unchanged."""
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
