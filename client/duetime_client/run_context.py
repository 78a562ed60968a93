"""The context of a pull worker's handler, with the data of the attempt and methods to report back."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, cast

from duetime_client.attempt_errors import AttemptCancelled, AttemptPaused, LeaseLost, StepInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_client.client import AsyncClient, Client
    from duetime_common.steps import StepKeeper, Steps

A = ParamSpec("A")
_MAKING = Lock()
"""Locks the creation of an attempt's steps, because several threads can use the same attempt."""


@dataclass(frozen=True)
class RunSchedule:
    """The schedule run that a task, or its topology, belongs to.

    Attributes:
        name: name of the schedule.
        scheduled_at: the run's nominal time, before jitter and calendars; also in a backfill.
        previous_at: the schedule's time before `scheduled_at`; `None` if there is none.
        next_at: the schedule's time after `scheduled_at`; `None` if there is none.
        cause: `schedule`, `catch_up`, `backfill` or `manual`.
    """

    name: str
    scheduled_at: datetime
    previous_at: datetime | None = None
    next_at: datetime | None = None
    cause: str = "schedule"

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> RunSchedule:
        """Parse a task's `schedule`."""
        before, after = (document.get(name) for name in ("previous_at", "next_at"))
        return cls(
            name=document["name"],
            scheduled_at=datetime.fromisoformat(document["scheduled_at"]),
            previous_at=None if before is None else datetime.fromisoformat(before),
            next_at=None if after is None else datetime.fromisoformat(after),
            cause=document["cause"],
        )


@dataclass(frozen=True)
class RunTopology:
    """The topology of a node: the topology's id and run number, and the node's name."""

    id: str
    run: int
    node: str

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> RunTopology:
        """Parse a task's `topology`."""
        return cls(document["id"], document["run"], document["node"])


class ClientMissing(RuntimeError):
    """A handler uses `context.client`, but its test created a context without a client."""

    def __init__(self) -> None:
        super().__init__("this context has no client: create it with Context.for_test(client=...)")


@dataclass
class Context:
    """The context of a running attempt, for its handler. Threads can share a context.

    Attributes:
        task_id: the task's id, which is the same for all attempts; use it as an idempotency key.
        type: the task's type.
        attempt: the number of the attempt; 1 for the first attempt.
        fence: a number that increases with every attempt, so that a store can reject writes of an older attempt.
        checkpoint: the latest checkpoint of the earlier attempts, or `None`.
        inputs: for a node of a topology, the results of the parents in its `inputs`, by name.
        traceparent: the W3C trace context in which the task was created, or `None`.
        due_at: when the task was due; `None` only in a test context created without a due time.
        created_at: when the task was created; `None` only in a test context created without this time.
        lateness_ms: how long after its due time the first attempt started, in milliseconds.
        schedule: the schedule that created the task or its topology, or `None`.
        topology: the topology of which the task is a node, or `None`.
        tags: the task's tags.
        phase: always `run`, the only phase in a pull worker.
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
    phase: str = "run"
    _requested_action: str | None = None
    _progress: tuple[int, str] | None = None
    _wake: Event = field(default_factory=Event)
    _step_keeper: Callable[[], StepKeeper] | None = None
    _save: Callable[[Any], None] | None = None
    _steps: Steps | None = None
    _clients: Callable[[], Any] | None = None

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
        steps: dict[str, Any] | None = None,
        checkpoints: list[Any] | None = None,
        client: Client | AsyncClient | None = None,
    ) -> Context:
        """A context for unit tests that call the handler directly: `resize(Context.for_test(), payload)`.

        `client` is the context's `client`. `steps` has the results, by name, of the steps that an earlier attempt has
        completed, and receives the results of this attempt; `checkpoints` receives the saved checkpoints.
        """
        from duetime_common.steps import MemorySteps  # noqa: PLC0415 - for tests only

        results: dict[str, Any] = {} if steps is None else steps
        saved: list[Any] = [] if checkpoints is None else checkpoints
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
            _step_keeper=lambda: MemorySteps(results),
            _save=saved.append,
            _clients=None if client is None else lambda: client,
        )

    @property
    def client(self) -> Client:
        """The worker's client for this task; the tasks that the client creates become the task's children.

        In a coroutine, the client is an `AsyncClient`, and the context should be annotated with `AsyncContext`. A
        repeated attempt creates nothing twice.

        Raises:
            ClientMissing: A test created the context without `client`.
        """
        if self._clients is None:
            raise ClientMissing
        found: Client = self._clients()
        return found

    @property
    def requested_action(self) -> str | None:
        """The action requested as of the last heartbeat: `pause`, `cancel` or `None`."""
        return self._requested_action

    @property
    def lost(self) -> bool:
        """Whether the lease has been lost; stop working, because another worker may have the task."""
        return time.monotonic() >= self._until

    def progress(self, percent: int, message: str = "") -> None:
        """Report progress, which is sent with the next heartbeat.

        Args:
            percent: 0 to 100; other values are clamped.
            message: a short text; anything else is converted with `str`.
        """
        self._progress = (int(max(0, min(100, percent))), str(message))

    def heartbeat(self) -> None:
        """Renew the lease now instead of at the next regular renewal."""
        self._wake.set()

    @property
    def idempotency_key(self) -> str:
        """A key for the handler's calls to services, which is the same in all attempts, but differs in each step."""
        from duetime_common.steps import idempotency_key  # noqa: PLC0415 - only handlers that use it need the import

        return idempotency_key(self.task_id)

    def step(self, name: str, function: Callable[A, Any], /, *args: A.args, **kwargs: A.kwargs) -> Any:  # noqa: ANN401 - any JSON
        """Call a function once across all attempts of a task: `receipt = context.step("charge", bank.charge, amount)`.

        The result is stored before `step` returns, and later attempts return the stored result without calling the
        function. If the function raises, nothing is stored, and the next attempt calls the function again, as after a
        crash; `context.idempotency_key` is then the same.

        Args:
            name: name of the step, which is unique in an attempt and has 1 to 64 letters, digits, `_`, `.` and `-`.
            function: the function.
            args: its arguments.
            kwargs: its keyword arguments.

        Returns:
            The result as decoded JSON, even in the first attempt; a dataclass or pydantic model becomes a dict.

        Raises:
            StepInvalid: the name is invalid or was used in this attempt, or the result is not JSON or too large.
            LeaseLost: the lease has been lost.
        """
        return self._all_steps.call(name, function, args, kwargs)

    @property
    def steps(self) -> dict[str, Any]:
        """The stored results of the task's steps by name."""
        return self._all_steps.results()

    @property
    def _all_steps(self) -> Steps:
        if self._steps is None:
            from duetime_client.handler_values import steps_of  # noqa: PLC0415 - only handlers with steps need it

            if self._step_keeper is None:
                raise StepInvalid("this context stores no steps")
            with _MAKING:
                self._steps = self._steps or steps_of(self.task_id, self._step_keeper())
        return self._steps

    def save_checkpoint(self, checkpoint: object) -> None:
        """Store a checkpoint now, for the next attempt if this attempt fails, is lost or is paused.

        Args:
            checkpoint: at most 4 KB of JSON; it replaces the earlier checkpoint.

        Raises:
            CheckpointInvalid: the checkpoint is not JSON or is too large.
            LeaseLost: the lease has been lost.
        """
        from duetime_client.handler_values import encoded_checkpoint  # noqa: PLC0415 - only handlers that use it need the import

        data = encoded_checkpoint(checkpoint)
        if self.lost:
            raise LeaseLost("the lease is over")
        if self._save is not None:
            self._save(json.loads(data))

    def stop_if_requested(self, checkpoint: object = None) -> None:
        """Raise if a stop was requested or the lease is lost; call this method where the work can be interrupted.

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


class AsyncContext(Context):
    """The context of a coroutine, with an asynchronous client; annotate a coroutine's context with this class."""

    @property
    def client(self) -> AsyncClient:  # type: ignore[override]  # a coroutine has the client that it can await
        """The asynchronous client."""
        found: Any = super().client
        return cast("AsyncClient", found)
