"""A handler's context, with the running attempt and the schedule or topology of its task."""

from __future__ import annotations

import json
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, cast, overload

from duetime.domain.json_values import ValueRefused
from duetime.domain.limits import MAX_CHECKPOINT_BYTES
from duetime.handlers.errors import (
    AttemptCancelled,
    AttemptPaused,
    CheckpointInvalid,
    ClientMissing,
    LeaseLost,
    StepInvalid,
)
from duetime.handlers.payload_codec import encoded, present_codec
from duetime_common.frozen_classes import frozen
from duetime_common.payload_codecs import decrypted_json, encrypted_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from duetime_client import AsyncClient, Client
    from duetime_common.steps import StepKeeper, Steps

A = ParamSpec("A")
_NEVER = datetime.max.replace(tzinfo=UTC)


class Accepted:
    """The return value of a handler that only accepts the work and returns `context.defer()`."""


@frozen
class RunSchedule:
    """The schedule for which a task or its topology runs.

    Attributes:
        name: name of the schedule.
        scheduled_at: the run's scheduled time before jitter and calendars, in UTC. In a backfill, this time is in the
            past.
        previous_at: the previous scheduled time; `None` if there is none.
        next_at: the next scheduled time; `None` if there is none.
        cause: `schedule`, `catch_up`, `backfill` or `manual`.
    """

    name: str
    scheduled_at: datetime
    previous_at: datetime | None = None
    next_at: datetime | None = None
    cause: str = "schedule"


@frozen
class RunTopology:
    """The topology of a node's task, with the topology's id, the run's number, and the node's name."""

    id: str
    run: int
    node: str


@frozen
class Context:
    """The running attempt, as the handler sees it.

    Attributes:
        task_id: the task's id, which is the same for all attempts, so it can be an idempotency key.
        type: the task's type.
        attempt: the attempt's number; the first is 1.
        fence: a number that increases with every attempt, so that a store can reject writes from an older attempt.
        deadline: when the phase must end, in UTC.
        checkpoint: the latest checkpoint from earlier attempts; `None` if there is none.
        inputs: for a topology node, the results of the parents in the node's `inputs`, by name; for a group's
            completion task, the `group`.
        traceparent: W3C trace context of the task's creation, for span links; `None` if the request had none.
        due_at: when the task was due, in UTC; `None` only in test contexts.
        created_at: when the task was created, in UTC; `None` only in test contexts.
        lateness_ms: how long after the due time the first attempt started, in milliseconds.
        schedule: the schedule of the task or its topology; `None` if there is none.
        topology: the topology of the task; `None` if the task is not a node.
        tags: the task's tags.
        phase: the running phase: `prepare`, `run`, `clean` or `rollback`.
    """

    task_id: str
    type: str
    attempt: int
    fence: int
    deadline: datetime
    checkpoint: Any
    report: Callable[[int | None, str], None]
    ask: Callable[[], str | None]
    inputs: Any = None
    traceparent: str | None = None
    due_at: datetime | None = None
    created_at: datetime | None = None
    lateness_ms: int | None = None
    schedule: RunSchedule | None = None
    topology: RunTopology | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    phase: str = "run"
    step_keeper: Callable[[], StepKeeper] | None = None
    checkpoint_writer: Callable[[bytes], bool] | None = None
    _made: dict[str, Steps] = field(default_factory=dict, repr=False, compare=False)
    clients: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def for_test(  # noqa: PLR0913 - the attributes that a handler may read
        cls,
        task_type: str = "test",
        *,
        task_id: str = "01KAJ0000000000000000TEST0",
        attempt: int = 1,
        fence: int | None = None,
        deadline: datetime = _NEVER,
        checkpoint: Any = None,  # noqa: ANN401 - any JSON
        inputs: Any = None,  # noqa: ANN401 - any JSON
        due_at: datetime | None = None,
        created_at: datetime | None = None,
        lateness_ms: int | None = None,
        schedule: RunSchedule | None = None,
        topology: RunTopology | None = None,
        tags: Mapping[str, str] | None = None,
        requested_action: str | None = None,
        report: Callable[[int | None, str], None] = lambda _percent, _message: None,
        steps: dict[str, Any] | None = None,
        checkpoints: list[Any] | None = None,
        client: Client | AsyncClient | None = None,
    ) -> Context:
        """A context for a unit test that calls the handler directly, as in `charge(Context.for_test(), payload)`.

        `requested_action` is `pause` or `cancel`; `report` is called with the percentage and message of each progress
        report, and with `None` and an empty message for a heartbeat. `steps` contains the results of an earlier
        attempt's steps by name, and collects the results of this attempt's steps. `checkpoints` collects the saved
        checkpoints. `client` becomes the context's `client`.
        """
        from duetime_common.steps import MemorySteps  # noqa: PLC0415 - for tests only

        results: dict[str, Any] = {} if steps is None else steps
        saved: list[Any] = [] if checkpoints is None else checkpoints

        def save(data: bytes) -> bool:
            saved.append(json.loads(decrypted_json(present_codec(), data)))
            return True

        return cls(
            task_id=task_id,
            type=task_type,
            attempt=attempt,
            fence=attempt if fence is None else fence,
            deadline=deadline,
            checkpoint=checkpoint,
            report=report,
            ask=lambda: requested_action,
            inputs=inputs,
            due_at=due_at,
            created_at=created_at,
            lateness_ms=lateness_ms,
            schedule=schedule,
            topology=topology,
            tags=tags or {},
            step_keeper=lambda: MemorySteps(results),
            checkpoint_writer=save,
            clients=None if client is None else lambda: client,
        )

    @property
    def client(self) -> Client:
        """An API client that acts for the task's owner, and creates tasks as children of this task.

        In a coroutine, the client is an `AsyncClient`, so annotate the context with `AsyncContext`. If an attempt is
        repeated, the client does not create tasks twice.

        Raises:
            ClientMissing: a test created the context without `client`.
        """
        if self.clients is None:
            raise ClientMissing
        found: Client = self.clients()
        return found

    @property
    def requested_action(self) -> str | None:
        """The action that the user requested (`pause` or `cancel`) before the last heartbeat; `None` for no request."""
        return self.ask()

    def stop_if_requested(self, checkpoint: object = None) -> None:
        """Stop if the user requested a pause or cancellation. Call this method where the work can be interrupted.

        Args:
            checkpoint: data for the attempt that continues after a pause, at most 4 KB of JSON.

        Raises:
            AttemptPaused: do not catch this exception.
            AttemptCancelled: do not catch this exception.
        """
        match self.requested_action:
            case "pause":
                raise AttemptPaused(checkpoint)
            case "cancel":
                raise AttemptCancelled

    def defer(self) -> Accepted:
        """Return this value (`return context.defer()`) if the handler only accepts the work.

        The task stays `running` until `POST /v1/tasks/{id}/notify` reports the end of the work, or until the deadline
        has passed.
        """
        return Accepted()

    def progress(self, percent: int, message: str = "") -> None:
        """Report the progress of the work.

        Args:
            percent: 0 to 100. Values outside this range are replaced by its nearest end, and fractions are rounded
                down.
            message: a few words. Values of other types are converted with `str`.
        """
        self.report(int(max(0, min(100, percent))), str(message))

    def heartbeat(self) -> None:
        """Renew the lease now. The worker also renews the lease automatically; for a package, only the worker does."""
        self.report(None, "")

    @property
    def idempotency_key(self) -> str:
        """An idempotency key for calls to other services; the same in all attempts but different in each step."""
        from duetime_common.steps import idempotency_key  # noqa: PLC0415 - for handlers that use it only

        return idempotency_key(self.task_id)

    @overload
    def step(
        self, name: str, function: Callable[A, Awaitable[Any]], /, *args: A.args, **kwargs: A.kwargs
    ) -> Awaitable[Any]: ...

    @overload
    def step(self, name: str, function: Callable[A, Any], /, *args: A.args, **kwargs: A.kwargs) -> Any: ...  # noqa: ANN401 - any JSON

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function once across all attempts, as in `receipt = context.step("charge", bank.charge, amount)`.

        The result is stored before this method returns. Later attempts return the stored result without calling the
        function. If the function raises an exception, or if the process crashes, no result is stored, and the next
        attempt calls the function again with the same `context.idempotency_key`. If the function is a coroutine
        function, `await` its step.

        Args:
            name: the step's name, which can be used once per attempt: 1 to 64 letters, digits, `_`, `.` and `-`.
            function: the function.
            args: arguments of the function.
            kwargs: keyword arguments of the function.

        Returns:
            The result as decoded JSON, even in the first attempt. A dataclass or pydantic model becomes a dict.

        Raises:
            StepInvalid: the name is invalid or was used in this attempt, or the result is not JSON or too large.
            LeaseLost: another worker may have the task; do not catch this exception.
        """
        return self._steps.call(name, function, args, kwargs)

    @property
    def steps(self) -> dict[str, Any]:
        """The stored results of the steps in `run`, by name. A rollback can use these results."""
        return self._steps.results()

    @property
    def _steps(self) -> Steps:
        if "steps" not in self._made:
            self._made.setdefault("steps", steps_of(self.task_id, self.phase, self.step_keeper))
        return self._made["steps"]

    def save_checkpoint(self, checkpoint: object) -> None:
        """Store a checkpoint now for the next attempt, in case this attempt fails, crashes or is paused.

        Args:
            checkpoint: at most 4 KB of JSON, which replaces the earlier checkpoint.

        Raises:
            CheckpointInvalid: the checkpoint is not JSON or too large, or the phase is `clean`.
            LeaseLost: another worker may have the task; do not catch this exception.
        """
        save_checkpoint(checkpoint, self.phase, self.checkpoint_writer)


class AsyncContext(Context):
    """The context of a coroutine, which has an asynchronous client. Use this class in the coroutine's annotation."""

    __slots__ = ()

    @property
    def client(self) -> AsyncClient:  # type: ignore[override]  # coroutines get an asynchronous client
        """An asynchronous API client for this task."""
        found: Any = super().client
        return cast("AsyncClient", found)


def steps_of(task_id: str, phase: str, keeper: Callable[[], StepKeeper] | None) -> Steps:
    """The steps of an attempt's phase. Without a keeper, their results are kept in memory."""
    from duetime_common.steps import MemorySteps, Steps  # noqa: PLC0415 - for handlers with steps only

    kept = MemorySteps({}) if keeper is None else keeper()
    # Results in memory are not encrypted, because tests read them.
    codec = None if isinstance(kept, MemorySteps) else present_codec()
    return Steps(
        task_id,
        phase,
        kept,
        encode=lambda result: encrypted_json(codec, encoded(result)),
        decode=lambda stored: decrypted_json(codec, stored),
        invalid=StepInvalid,
        lost=LeaseLost,
    )


def save_checkpoint(checkpoint: object, phase: str, writer: Callable[[bytes], bool] | None) -> None:
    """Store a checkpoint now.

    Raises:
        CheckpointInvalid: the checkpoint is not JSON or too large, or the phase stores no checkpoints.
        LeaseLost: the attempt has lost its lease.
    """
    if writer is None:
        raise CheckpointInvalid(f"the phase {phase!r} cannot save a checkpoint")
    try:
        data = encrypted_json(present_codec(), encoded(checkpoint))
    except ValueRefused as error:
        raise CheckpointInvalid(f"the checkpoint is not JSON: {error}") from None
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise CheckpointInvalid(f"the checkpoint has {len(data)} bytes; {MAX_CHECKPOINT_BYTES} are allowed")
    if not writer(data):
        raise LeaseLost
