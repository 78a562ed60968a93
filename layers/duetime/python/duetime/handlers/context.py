"""What a handler is given beside its payload: the running attempt, and what it is a run of."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from duetime.handlers.errors import AttemptCancelled, AttemptPaused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NEVER = datetime.max.replace(tzinfo=UTC)


class Accepted:
    """What a handler returns that has only accepted the work: `return context.defer()`."""


@dataclass(frozen=True, slots=True)
class RunSchedule:
    """The schedule that a task, or the topology that it is a node of, is a run of.

    Attributes:
        name: of the schedule.
        scheduled_at: the time that this run stands for, before jitter and calendars, in UTC: also in a backfill.
        previous_at: the schedule's time before that one; `None` if there is none.
        next_at: the schedule's time after that one; `None` if there is none.
        cause: `schedule`, `catch_up`, `backfill` or `manual`.
    """

    name: str
    scheduled_at: datetime
    previous_at: datetime | None = None
    next_at: datetime | None = None
    cause: str = "schedule"


@dataclass(frozen=True, slots=True)
class RunTopology:
    """The topology that a task is a node of: its id, the number of its run, and the node's name."""

    id: str
    run: int
    node: str


@dataclass(frozen=True, slots=True)
class Context:
    """The running attempt, as its handler sees it.

    Attributes:
        task_id: stable over all attempts: the idempotency key to hand on.
        type: the task's type.
        attempt: 1 for the first.
        fence: grows with every attempt; a store can refuse writes of an older one.
        deadline: when the phase must have ended, in UTC.
        checkpoint: what an attempt that was paused left for this one; `None` if there is nothing.
        inputs: of a topology's node, the results of the parents that it named in `inputs`, by their names.
        traceparent: the trace in which the task was created (W3C Trace Context), to link spans to; `None` if the
            request named none.
        due_at: when the task was due, in UTC; `None` only in a context that a test has made without it.
        created_at: when the task was created, in UTC; `None` likewise.
        lateness_ms: how long after its due time the first attempt started, in milliseconds.
        schedule: the schedule that the task, or its topology, is a run of; `None` if it is none.
        topology: the topology that the task is a node of; `None` if it is none.
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

    @classmethod
    def for_test(  # noqa: PLR0913 - the attributes that a handler may look at
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
    ) -> Context:
        """A context for a unit test, which calls the handler itself: `charge(Context.for_test(), payload)`.

        `requested_action` is `pause` or `cancel`; `report` is called with each progress (percent and message).
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
        )

    @property
    def requested_action(self) -> str | None:
        """What the user asks of the attempt, as of the last heartbeat."""
        return self.ask()

    def stop_if_requested(self, checkpoint: object = None) -> None:
        """Stop here if the user asked for it: call it where the work can be left and taken up again.

        Args:
            checkpoint: what the attempt that goes on after a pause is given, at most 4 KB of JSON.

        Raises:
            AttemptPaused: let it pass through.
            AttemptCancelled: let it pass through.
        """
        match self.requested_action:
            case "pause":
                raise AttemptPaused(checkpoint)
            case "cancel":
                raise AttemptCancelled

    def defer(self) -> Accepted:
        """Say that the work is only accepted: `return context.defer()`.

        The task stays `running` until `POST /v1/tasks/{id}/notify` tells its end, or its deadline is over.
        """
        return Accepted()

    def progress(self, percent: int, message: str = "") -> None:
        """Tell how far the work has come.

        Args:
            percent: 0 to 100; anything beyond is taken to the nearer end, and a fraction is rounded down.
            message: a few words; anything that is no text is converted with `str`.
        """
        self.report(int(max(0, min(100, percent))), str(message))

    def heartbeat(self) -> None:
        """Say that the attempt is alive. The worker says so by itself; this only does it now."""
        self.report(None, "")
