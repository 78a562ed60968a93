"""One attempt of a pull worker: lease, handler context and outcome."""

from __future__ import annotations

import json
import math
import time
import traceback
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Literal

from duetime_client.errors import ApiError, ClientError, Conflict, NotFound, RateLimited, Unreachable
from duetime_client.request_limits import MAX_CHECKPOINT_BYTES, MAX_RESULT_BYTES
from duetime_client.retries import PASSING
from duetime_client.run_context import RunSchedule, RunTopology
from duetime_client.task_definitions import PayloadInvalid, ResultNotJson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from duetime_client.client import Client
    from duetime_client.leases import LeasedTask, LeaseState

RENEWALS_PER_LEASE = 3
"""How many times a lease is renewed within its duration."""
_SHORTEST_ACKNOWLEDGEMENT, _LONGEST_ACKNOWLEDGEMENT = 5, 15
"""Bounds, in seconds, of a lease before its first heartbeat: the API's minimum, and a value at which, with the default
lease, the first heartbeat is not earlier than later ones."""
_SHORTEST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_REFUSED = frozenset({400, 413, 422})
"""HTTP statuses of a report that would be rejected again on a retry."""
_CLASS_NAME = type.__dict__["__name__"]
"""Reads a class's name directly, because a metaclass may return anything."""


def acknowledge_within(lease_seconds: int) -> int:
    """Seconds a lease lasts before its first heartbeat; short, so that tasks of a lost worker are freed soon."""
    return max(_SHORTEST_ACKNOWLEDGEMENT, min(_LONGEST_ACKNOWLEDGEMENT, lease_seconds // 2))


class Unretriable(Exception):
    """Raise it to fail the task at once: no further attempt would help."""


_FINAL = {Unretriable.__name__, PayloadInvalid.__name__, ResultNotJson.__name__}


class LeaseLost(Exception):
    """The lease could not be renewed in time, or was rejected: another worker may have the task. Do not catch it."""


class AttemptPaused(Exception):
    """Raised by `Context.stop_if_requested` when a pause was requested. Do not catch it."""

    def __init__(self, checkpoint: object = None) -> None:
        super().__init__("a pause was requested")
        self.checkpoint = checkpoint


class AttemptCancelled(Exception):
    """Raised by `Context.stop_if_requested` when a cancellation was requested. Do not catch it."""


@dataclass
class Context:
    """The context of a running attempt, for its handler. Threads may share it.

    Attributes:
        task_id: the same for all attempts; use it as an idempotency key.
        type: the task's type.
        attempt: 1 for the first.
        fence: grows with every attempt; a store can reject writes of an older one.
        checkpoint: what a paused attempt saved for this one, or `None`.
        inputs: for a node of a topology, the results of the parents in its `inputs`, by name.
        traceparent: the trace in which the task was created, by W3C Trace Context, or `None`.
        due_at: when the task was due; `None` only in a test context created without it.
        created_at: when the task was created; `None` likewise.
        lateness_ms: how long after its due time the first attempt started, in milliseconds.
        schedule: the schedule that created the task or its topology, or `None`.
        topology: the topology of which the task is a node, or `None`.
        tags: the task's tags.
    """

    task_id: str
    type: str
    attempt: int
    fence: int
    checkpoint: Any
    _until: float
    inputs: Any = None
    traceparent: str | None = None
    due_at: datetime | None = None
    created_at: datetime | None = None
    lateness_ms: int | None = None
    schedule: RunSchedule | None = None
    topology: RunTopology | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    _requested_action: str | None = None
    _progress: tuple[int, str] | None = None
    _wake: Event = field(default_factory=Event)

    @classmethod
    def for_test(  # noqa: PLR0913 - the attributes that a handler may look at
        cls,
        task_type: str = "test",
        *,
        task_id: str = "01KAJ0000000000000000TEST0",
        attempt: int = 1,
        fence: int | None = None,
        checkpoint: Any = None,  # noqa: ANN401 - any JSON
        inputs: Any = None,  # noqa: ANN401 - any JSON
        due_at: datetime | None = None,
        schedule: RunSchedule | None = None,
        topology: RunTopology | None = None,
        tags: Mapping[str, str] | None = None,
        requested_action: Literal["pause", "cancel"] | None = None,
        is_lost: bool = False,
    ) -> Context:
        """A context for unit tests that call the handler directly: `resize(Context.for_test(), payload)`."""
        return cls(
            task_id=task_id,
            type=task_type,
            attempt=attempt,
            fence=attempt if fence is None else fence,
            checkpoint=checkpoint,
            inputs=inputs,
            due_at=due_at,
            schedule=schedule,
            topology=topology,
            tags=tags or {},
            _until=-math.inf if is_lost else math.inf,
            _requested_action=requested_action,
        )

    @property
    def requested_action(self) -> str | None:
        """The action requested as of the last heartbeat: `pause`, `cancel` or `None`."""
        return self._requested_action

    @property
    def lost(self) -> bool:
        """Whether the lease has been lost; stop working, because another worker may have the task."""
        return time.monotonic() >= self._until

    def progress(self, percent: int, message: str = "") -> None:
        """Report progress; it is sent with the next heartbeat.

        Args:
            percent: 0 to 100; other values are clamped.
            message: a short text; anything else is converted with `str`.
        """
        self._progress = (int(max(0, min(100, percent))), str(message))

    def heartbeat(self) -> None:
        """Renew the lease now instead of at the next regular renewal."""
        self._wake.set()

    def stop_if_requested(self, checkpoint: object = None) -> None:
        """Raise if a stop was requested or the lease is lost; call it where the work can be interrupted.

        Args:
            checkpoint: at most 4 KB of JSON for the attempt that continues after a pause.

        Raises:
            LeaseLost: the lease has been lost.
            AttemptPaused: a pause was requested.
            AttemptCancelled: a cancellation was requested.
        """
        if self.lost:
            raise LeaseLost("the lease is over")
        if self._requested_action == "pause":
            raise AttemptPaused(checkpoint)
        if self._requested_action == "cancel":
            raise AttemptCancelled


class Attempt:
    """Runs a handler under a lease, renews the lease while it runs, and reports the outcome."""

    def __init__(self, client: Client, leased: LeasedTask, lease_seconds: int) -> None:
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
        )
        self._client = client
        self._interval = lease_seconds / RENEWALS_PER_LEASE
        self._first_interval = min(self._interval, acknowledge_within(lease_seconds) * 2 / 3)
        self._ended = Event()

    def run(self, handler: Callable[[Context, Any], object]) -> str:
        """Run the handler.

        Returns:
            How it ended: `succeeded`, `waiting`, `failed`, `paused`, `cancelled`, or `lost`.
        """
        if (self._starts_once or self.leased.unacknowledged_leases) and not self._acknowledge():
            return "lost"
        beats = Thread(target=self._beat, name=f"heartbeats of {self.context.task_id}", daemon=True)
        beats.start()
        try:
            report = self._outcome(handler)
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
        """Give up a task whose handler still runs when the process ends; another worker may take it at once.

        Returns:
            `released`, or `failed` for a task that must not start again; `lost` if the API did not accept that.
        """
        self.context._until = -math.inf  # noqa: SLF001 - its maker
        lease, message = self.leased.id, "its worker was stopped before the handler returned"
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
        """Acknowledge the start of the attempt, so that it counts; returns whether it may start."""
        pause = _SHORTEST_PAUSE
        while not self.context.lost:
            if self._renew():
                return not self.context.lost
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return False

    def _outcome(self, handler: Callable[[Context, Any], object]) -> Callable[[], LeaseState]:
        """Call the handler; returns the request that reports its outcome."""
        client, lease = self._client, self.leased.id
        try:
            result = handler(self.context, self.leased.task.payload)
        except BaseException as error:  # noqa: BLE001 - a handler may raise what it likes
            return self._ended_by(error)
        if refusal := _refusal(result, MAX_RESULT_BYTES, "result"):
            return self._failure(*refusal)
        return lambda: client.leases.complete(lease, result)

    def _ended_by(self, error: BaseException) -> Callable[[], LeaseState]:
        """The request that reports an exception of the handler."""
        client, lease = self._client, self.leased.id
        # Uses the real class, because an object may return anything as its `__class__`.
        names = [_CLASS_NAME.__get__(each) for each in type.mro(type(error))]
        if issubclass(type(error), AttemptPaused):
            checkpoint = getattr(error, "checkpoint", None)
            if refusal := _refusal(checkpoint, MAX_CHECKPOINT_BYTES, "checkpoint"):
                return self._failure(*refusal)
            return lambda: client.leases.acknowledge_pause(lease, checkpoint)
        if issubclass(type(error), AttemptCancelled):
            return lambda: client.leases.acknowledge_cancel(lease)
        # Compared by name, because handlers of worker functions raise their own package's error.
        retriable = _FINAL.isdisjoint(names)
        message, raised = _message_of(error), _traceback_of(error)
        return lambda: client.leases.fail(lease, names[0], message, retriable=retriable, traceback=raised)

    def _failure(self, kind: str, message: str) -> Callable[[], LeaseState]:
        """The request that reports a value that cannot be stored; a retry would not help."""
        return lambda: self._client.leases.fail(self.leased.id, kind, message, retriable=False)

    def _beat(self) -> None:
        """Renew the lease repeatedly until the handler ends or the lease is lost."""
        context, interval = self.context, self._first_interval
        while not self._ended.is_set() and not context.lost:
            context._wake.wait(min(interval, max(0.0, context._until - time.monotonic())))  # noqa: SLF001 - its maker
            context._wake.clear()  # noqa: SLF001 - its maker
            interval = self._interval
            if not self._ended.is_set() and not context.lost and not self._renew():
                # Retried soon; if no renewal succeeds, the lease expires.
                self._ended.wait(_SHORTEST_PAUSE)
                context.heartbeat()

    def _renew(self) -> bool:
        """Renew the lease once; returns whether the API responded, even if only to say that the lease is lost."""
        context = self.context
        progress, context._progress = context._progress, None  # noqa: SLF001 - its maker
        requested_at = time.monotonic()
        try:
            state = self._client.leases.renew(self.leased.id, *(progress or ()))
        except (Conflict, NotFound):
            # The attempt is over or belongs to another worker; if the handler has ended meanwhile, its outcome decides.
            if not self._ended.is_set():
                context._until = requested_at  # noqa: SLF001 - its maker
        except Exception as error:  # noqa: BLE001 - whatever it was, the next one may come through
            # Sent again with the next renewal, unless the API rejected it; if none succeeds, the lease expires.
            if not _is_refused(error):
                context._progress = context._progress or progress  # noqa: SLF001 - its maker
            return False
        else:
            # Measured from the request, because the API cannot have renewed the lease earlier.
            context._until = requested_at + state.lasts.total_seconds()  # noqa: SLF001 - its maker
            context._requested_action = state.requested_action  # noqa: SLF001 - its maker
        return True

    def _report(self, send: Callable[[], LeaseState]) -> str:
        """Report the outcome, with retries on network errors while the lease lasts."""
        pause, is_refused = _SHORTEST_PAUSE, False
        while not self.context.lost:
            try:
                return send().state
            except (Conflict, NotFound):
                return "lost"
            except ClientError as error:
                if _is_refused(error) and not is_refused:
                    # The API may enforce limits that this client does not know.
                    is_refused, send = True, self._failure("ResultNotJson", f"the API rejected it: {error}")
                    continue
                if not may_pass(error):
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return "lost"


def _refusal(value: object, most: int, name: str) -> tuple[str, str] | None:
    """Error type and message for a value that cannot be stored; `None` if it passes the client's checks."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        if (size := len(text.encode())) > most:
            return f"{name.capitalize()}TooLarge", f"the {name} has {size} bytes; {most} are allowed"
        json.loads(text, object_pairs_hook=_checked)
    except BaseException as error:  # noqa: BLE001 - the value may be of the author's own class
        return "ResultNotJson", f"the {name} of the handler is not JSON: {_message_of(error)}"
    return None


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
    """A traceback without the frame that called the handler; the API redacts likely secrets."""
    try:
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        return "".join(traceback.TracebackException(type(error), error, frames).format())
    except BaseException as defect:  # noqa: BLE001 - a class of errors may break whatever reads its attributes
        return f"its traceback cannot be read: {_CLASS_NAME.__get__(type(defect))}"


def _is_refused(error: Exception) -> bool:
    """Whether the API rejects a report for good."""
    return isinstance(error, ApiError) and error.status in _REFUSED


def may_pass(error: ClientError) -> bool:
    """Whether an error is temporary, so that a retry may succeed."""
    return isinstance(error, Unreachable | RateLimited) or (isinstance(error, ApiError) and error.status in PASSING)
