"""The context of a handler: the running attempt, and the schedule or topology that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from duetime.handlers.errors import AttemptCancelled, AttemptPaused, ClientMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_client import AsyncClient, Client

_NEVER = datetime.max.replace(tzinfo=UTC)


class Accepted:
    """The return value of a handler that has only accepted the work: `return context.defer()`."""


@dataclass(frozen=True, slots=True)
class RunSchedule:
    """The schedule of a task's run, or of the run of its topology.

    Attributes:
        name: name of the schedule.
        scheduled_at: the run's scheduled time before jitter and calendars, in UTC, also in a backfill.
        previous_at: the previous scheduled time; `None` if there is none.
        next_at: the next scheduled time; `None` if there is none.
        cause: `schedule`, `catch_up`, `backfill` or `manual`.
    """

    name: str
    scheduled_at: datetime
    previous_at: datetime | None = None
    next_at: datetime | None = None
    cause: str = "schedule"


@dataclass(frozen=True, slots=True)
class RunTopology:
    """The topology of a node's task: its id, the number of its run, and the node's name."""

    id: str
    run: int
    node: str


@dataclass(frozen=True, slots=True)
class Context:
    """The running attempt, as seen by its handler.

    Attributes:
        task_id: the same for all attempts; use it as an idempotency key.
        type: the task's type.
        attempt: 1 for the first.
        fence: increases with every attempt; a store can reject writes of an older one.
        deadline: when the phase must have ended, in UTC.
        checkpoint: the checkpoint of a paused attempt; `None` if there is none.
        inputs: for a node of a topology, the results of the parents named in its `inputs`, by name.
        traceparent: the trace of the task's creation (W3C Trace Context), for links of spans; `None` if the
            request had none.
        due_at: when the task was due, in UTC; `None` only in a test's context without it.
        created_at: when the task was created, in UTC; `None` likewise.
        lateness_ms: how long after its due time the first attempt started, in milliseconds.
        schedule: the schedule of the task or of its topology; `None` if there is none.
        topology: the topology of the task; `None` if it is no node.
        tags: the task's tags.
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
        client: Client | AsyncClient | None = None,
    ) -> Context:
        """A context for a unit test that calls the handler itself: `charge(Context.for_test(), payload)`.

        `requested_action` is `pause` or `cancel`; `report` is called with each progress (percent and message).
        `client` is the context's `client`.
        """
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
            clients=None if client is None else lambda: client,
        )

    @property
    def client(self) -> Client:
        """A client of the API for this task: its owner, and the parent of the tasks that the client creates.

        In a coroutine, it is an `AsyncClient`: annotate the context with `AsyncContext` there. A repeated attempt
        creates nothing twice.

        Raises:
            ClientMissing: a test created the context without `client`.
        """
        if self.clients is None:
            raise ClientMissing
        found: Client = self.clients()
        return found

    @property
    def requested_action(self) -> str | None:
        """The user's request to the attempt, as of the last heartbeat."""
        return self.ask()

    def stop_if_requested(self, checkpoint: object = None) -> None:
        """Stop here if the user requested it; call it where the work can be interrupted and continued.

        Args:
            checkpoint: data for the attempt that continues after a pause, at most 4 KB of JSON.

        Raises:
            AttemptPaused: do not catch it.
            AttemptCancelled: do not catch it.
        """
        match self.requested_action:
            case "pause":
                raise AttemptPaused(checkpoint)
            case "cancel":
                raise AttemptCancelled

    def defer(self) -> Accepted:
        """Return this if the work is only accepted: `return context.defer()`.

        The task stays `running` until `POST /v1/tasks/{id}/notify` reports its end, or its deadline has passed.
        """
        return Accepted()

    def progress(self, percent: int, message: str = "") -> None:
        """Report the progress of the work.

        Args:
            percent: 0 to 100; other values are limited to this range, and fractions are rounded down.
            message: a few words; other values are converted with `str`.
        """
        self.report(int(max(0, min(100, percent))), str(message))

    def heartbeat(self) -> None:
        """Renew the lease now. The worker also does so by itself."""
        self.report(None, "")


class AsyncContext(Context):
    """The context of a coroutine, whose client is asynchronous: annotate it with this class."""

    __slots__ = ()

    @property
    def client(self) -> AsyncClient:  # type: ignore[override]  # a coroutine has the client that it can await
        """An asynchronous client of the API for this task."""
        found: Any = super().client
        return cast("AsyncClient", found)
