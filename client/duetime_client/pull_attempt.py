"""One attempt of a pull worker: its lease, heartbeats and outcome."""

from __future__ import annotations

import json
import math
import time
import traceback
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from duetime_client.attempt_errors import (
    AttemptCancelled,
    AttemptPaused,
    CheckpointInvalid,
    LeaseLost,
    StepInvalid,
    Unavailable,
)
from duetime_client.errors import ApiError, ClientError, Conflict, NotFound, RateLimited, Unreachable
from duetime_client.retries import PASSING
from duetime_client.run_context import Context, RunSchedule, RunTopology
from duetime_client.task_definitions import PayloadInvalid, ResultNotJson
from duetime_common.handler_batches import BatchResultInvalid
from duetime_common.handler_retries import RETRY_ALL, requested_wait
from duetime_common.limits import MAX_CHECKPOINT_BYTES, MAX_RESULT_BYTES
from duetime_common.payload_codecs import CodecMissing, encrypted_json, is_encrypted

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.client import Client
    from duetime_client.leases import LeasedTask, LeaseState
    from duetime_common.handler_retries import RetryRule
    from duetime_common.steps import StepKeeper

RENEWALS_PER_LEASE = 3
"""How many times a lease is renewed within its duration."""
_SHORTEST_ACKNOWLEDGEMENT, _LONGEST_ACKNOWLEDGEMENT = 5, 15
"""The shortest and longest duration, in seconds, of a lease before its first heartbeat. The API sets the minimum. The
maximum makes the first heartbeat of a default lease come after the same interval as later heartbeats."""
_SHORTEST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
CODEC_FAILED = "CodecFailed"
"""Error type of an attempt whose result or checkpoint the codec could not encrypt."""
_REFUSED = frozenset({400, 413, 422})
"""HTTP statuses of rejected reports that would be rejected again if they were retried."""
_CLASS_NAME = type.__dict__["__name__"]
"""Reads a class's name directly, because a metaclass can return any value as `__name__`."""


def acknowledge_within(lease_seconds: int) -> int:
    """How many seconds a lease lasts before its first heartbeat; a short time frees a lost worker's tasks soon."""
    return max(_SHORTEST_ACKNOWLEDGEMENT, min(_LONGEST_ACKNOWLEDGEMENT, lease_seconds // 2))


class Unretriable(Exception):
    """Raise this error to fail the task at once, because another attempt would not help."""


_FINAL = {Unretriable.__name__, PayloadInvalid.__name__, ResultNotJson.__name__, BatchResultInvalid.__name__}
_FINAL |= {StepInvalid.__name__, CheckpointInvalid.__name__, CodecMissing.__name__}


class Attempt:
    """Runs a handler under a lease, renews the lease while it runs, and reports the outcome."""

    def __init__(self, client: Client, leased: LeasedTask, lease_seconds: int) -> None:
        # The module is imported here because it needs httpx, which is imported only with the first client.
        from duetime_client.attempt_client import clients_of_lease  # noqa: PLC0415 - see the line above

        task = leased.task
        self.leased = leased
        self.context = Context(
            task_id=task.id,
            type=task.type,
            attempt=task.attempt,
            fence=task.fence,
            checkpoint=leased.checkpoint,
            _until=time.monotonic() + leased.lasts.total_seconds(),
            inputs=leased.inputs,
            traceparent=task.traceparent,
            due_at=task.due_at,
            created_at=task.created_at,
            lateness_ms=task.lateness_ms,
            schedule=None if task.schedule is None else RunSchedule.of_document(task.schedule),
            topology=None if task.topology is None else RunTopology.of_document(task.topology),
            tags=task.tags,
            _step_keeper=self._steps,
            _save=self._save_checkpoint,
            _clients=clients_of_lease(client, leased.id),
        )
        self._client = client
        self._interval = lease_seconds / RENEWALS_PER_LEASE
        self._first_interval = min(self._interval, acknowledge_within(lease_seconds) * 2 / 3)
        self._ended = Event()

    def run(self, handler: Callable[[Context, Any], object], rule: RetryRule = RETRY_ALL) -> str:
        """Run the handler; the rule decides which of its exceptions are retried.

        Returns:
            How the attempt ended: `succeeded`, `waiting`, `failed`, `paused`, `cancelled`, or `lost`.
        """
        if (self._starts_once or self.leased.unacknowledged_leases) and not self._acknowledge():
            return "lost"
        beats = Thread(target=self._beat, name=f"heartbeats of {self.context.task_id}", daemon=True)
        beats.start()
        try:
            report = self._outcome(handler, rule)
        finally:
            self._ended.set()
            self.context.heartbeat()
        return self._report(report)

    def release(self) -> str:
        """Release the task without having started it.

        Returns:
            `released`, or `lost`.
        """
        return "lost" if self._report(lambda: self._client.leases.release(self.leased.id)) == "lost" else "released"

    def interrupt(self) -> str:
        """Give up a task whose handler still runs when the process ends, so that another worker can soon take the task.

        Returns:
            `released`, or `failed` for a task that must not start again; `lost` if the API did not accept the report.
        """
        self.context._until = -math.inf  # noqa: SLF001 - this code creates the object
        lease, message = self.leased.id, "the worker was stopped before the handler returned"
        try:
            if self._starts_once:
                return self._client.leases.fail(lease, "WorkerStopped", message, retriable=False).state
            self._client.leases.release(lease)
        except ClientError:
            return "lost"
        return "released"

    @property
    def _starts_once(self) -> bool:
        """Whether the task allows only one attempt, which must be counted before it starts."""
        return (self.leased.task.retry or {}).get("max_attempts") == 1

    def _acknowledge(self) -> bool:
        """Acknowledge the start of the attempt, so that the attempt counts; returns whether the attempt may start."""
        pause = _SHORTEST_PAUSE
        while not self.context.lost:
            if self._renew():
                return not self.context.lost
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return False

    def _outcome(self, handler: Callable[[Context, Any], object], rule: RetryRule) -> Callable[[], LeaseState]:
        """Call the handler; returns the request that reports its outcome."""
        client, lease = self._client, self.leased.id
        try:
            result = handler(self.context, self._payload())
        except BaseException as error:  # noqa: BLE001 - a handler can raise any exception
            return self._ended_by(error, rule)
        stored, refusal = self._stored(result, MAX_RESULT_BYTES, "result")
        return self._failure(*refusal) if refusal else lambda: client.leases.complete(lease, stored)

    def _payload(self) -> Any:  # noqa: ANN401 - any JSON
        """The payload of the task.

        Raises:
            CodecMissing: the payload or the checkpoint is encrypted, and the client has no codec.
        """
        # The task contains only a link to an uploaded payload.
        payload = self._client.tasks.download_payload(self.leased.task)
        if is_encrypted(payload) or is_encrypted(self.context.checkpoint):
            raise CodecMissing
        return payload

    def _ended_by(self, error: BaseException, rule: RetryRule) -> Callable[[], LeaseState]:
        """The request that reports an exception raised by the handler."""
        client, lease = self._client, self.leased.id
        # The real class is used, because an object can return any class as its `__class__`.
        names = [_CLASS_NAME.__get__(each) for each in type.mro(type(error))]
        if issubclass(type(error), AttemptPaused):
            stored, refusal = self._stored(getattr(error, "checkpoint", None), MAX_CHECKPOINT_BYTES, "checkpoint")
            return self._failure(*refusal) if refusal else lambda: client.leases.acknowledge_pause(lease, stored)
        if issubclass(type(error), AttemptCancelled):
            return lambda: client.leases.acknowledge_cancel(lease)
        # Errors are compared by name, because handlers of worker functions raise their own package's error.
        is_ours = issubclass(type(error), LeaseLost | Unavailable)
        retriable = is_ours or (_FINAL.isdisjoint(names) and rule.allows(error))
        seconds = requested_wait(error) if retriable else None
        message, raised = _message_of(error), _traceback_of(error)
        return lambda: client.leases.fail(
            lease, names[0], message, retriable=retriable, retry_in_seconds=seconds, traceback=raised
        )

    def _stored(self, value: object, most: int, name: str) -> tuple[object, tuple[str, str] | None]:
        """Return a value as it is stored, and the error type and message if the value cannot be stored, else `None`."""
        try:
            data = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
            json.loads(data, object_pairs_hook=_checked)
        except BaseException as error:  # noqa: BLE001 - the value may be of the author's own class
            return None, ("ResultNotJson", f"the {name} of the handler is not JSON: {_message_of(error)}")
        codec = self._client._runner.session.codec  # noqa: SLF001 - of this package
        if codec is not None:
            try:
                data = encrypted_json(codec, data)
            except BaseException as error:  # noqa: BLE001 - a codec may raise what it likes
                # The codec's message is left out, because it may quote the value.
                return None, (CODEC_FAILED, f"the codec could not encrypt the {name}: {type(error).__name__}")
            value = json.loads(data)
        if (size := len(data)) > most:
            return None, (f"{name.capitalize()}TooLarge", f"the {name} has {size} bytes; {most} are allowed")
        return value, None

    def _failure(self, kind: str, message: str) -> Callable[[], LeaseState]:
        """The request that reports a value that cannot be stored; a retry helps only if the codec failed."""
        lease, retriable = self.leased.id, kind == CODEC_FAILED
        return lambda: self._client.leases.fail(lease, kind, message, retriable=retriable)

    def _beat(self) -> None:
        """Renew the lease repeatedly until the handler ends or the lease is lost."""
        context, interval = self.context, self._first_interval
        while not self._ended.is_set() and not context.lost:
            context._wake.wait(min(interval, max(0.0, context._until - time.monotonic())))  # noqa: SLF001 - this code creates the object
            context._wake.clear()  # noqa: SLF001 - this code creates the object
            interval = self._interval
            if not self._ended.is_set() and not context.lost and not self._renew():
                # The renewal is retried soon; if no retry succeeds, the lease expires.
                self._ended.wait(_SHORTEST_PAUSE)
                context.heartbeat()

    def _steps(self) -> StepKeeper:
        from duetime_client.pulled_steps import LeasedSteps  # noqa: PLC0415 - only handlers with steps need it

        return LeasedSteps(self._client, self.leased.id, self.context)

    def _save_checkpoint(self, checkpoint: object) -> None:
        """Store a checkpoint with a heartbeat.

        Raises:
            CheckpointInvalid: the checkpoint is too large, or the API rejects it.
            LeaseLost: the lease is over.
            Unavailable: the API does not respond, or the codec has failed.
        """
        from duetime_client.pulled_steps import stored  # noqa: PLC0415 - for handlers that save checkpoints only

        value, refusal = self._stored(checkpoint, MAX_CHECKPOINT_BYTES, "checkpoint")
        if refusal:
            raise (Unavailable if refusal[0] == CODEC_FAILED else CheckpointInvalid)(refusal[1])
        requested_at = time.monotonic()
        with stored(CheckpointInvalid):
            state = self._client.leases.renew(self.leased.id, checkpoint=value)
        self._renewed(requested_at, state)

    def _renewed(self, requested_at: float, state: LeaseState) -> None:
        # The lease's duration counts from the time of the request, because the API cannot have renewed it earlier.
        self.context._until = requested_at + state.lasts.total_seconds()  # noqa: SLF001 - this code creates the object
        self.context._requested_action = state.requested_action  # noqa: SLF001 - this code creates the object

    def _renew(self) -> bool:
        """Renew the lease once; returns whether the API responded, even if only to say that the lease is lost."""
        context = self.context
        progress, context._progress = context._progress, None  # noqa: SLF001 - this code creates the object
        requested_at = time.monotonic()
        try:
            state = self._client.leases.renew(self.leased.id, *(progress or ()))
        except (Conflict, NotFound):
            # The attempt is over or belongs to another worker; if the handler has ended meanwhile, its outcome decides.
            if not self._ended.is_set():
                context._until = requested_at  # noqa: SLF001 - this code creates the object
        except Exception as error:  # noqa: BLE001 - whatever it was, the next one may come through
            # Progress is sent again with the next renewal, unless the API rejected it; if no renewal succeeds, the
            # lease expires.
            if not _is_refused(error):
                context._progress = context._progress or progress  # noqa: SLF001 - this code creates the object
            return False
        else:
            self._renewed(requested_at, state)
        return True

    def _report(self, send: Callable[[], LeaseState]) -> str:
        """Report the outcome, with retries on temporary errors while the lease lasts."""
        pause, is_refused = _SHORTEST_PAUSE, False
        while not self.context.lost:
            try:
                return send().state
            except (Conflict, NotFound):
                return "lost"
            except ClientError as error:
                if _is_refused(error) and not is_refused:
                    # The API may enforce limits that this client does not know.
                    is_refused, send = True, self._failure("ResultNotJson", f"the API rejected the report: {error}")
                    continue
                if not may_pass(error):
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return "lost"


def _checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears more than once")
    return found


def _message_of(error: BaseException) -> str:
    """The text of an error, even if its `__str__` fails."""
    try:
        return str(error)
    except BaseException as defect:  # noqa: BLE001 - a message is its author's code, too
        return f"its message cannot be read: {_CLASS_NAME.__get__(type(defect))}"


def _traceback_of(error: BaseException) -> str:
    """A traceback without the frames that called the handler; the API redacts likely secrets."""
    try:
        from duetime_common.handler_frames import frames_of_handler  # noqa: PLC0415 - for failures only

        frames = frames_of_handler(error.__traceback__)
        return "".join(traceback.TracebackException(type(error), error, frames).format())
    except BaseException as defect:  # noqa: BLE001 - a class of errors may break whatever reads its attributes
        return f"its traceback cannot be read: {_CLASS_NAME.__get__(type(defect))}"


def _is_refused(error: Exception) -> bool:
    """Whether the API would reject a report again on a retry."""
    return isinstance(error, ApiError) and error.status in _REFUSED


def may_pass(error: ClientError) -> bool:
    """Whether an error is temporary, so that a retry may succeed."""
    return isinstance(error, Unreachable | RateLimited) or (isinstance(error, ApiError) and error.status in PASSING)
