"""The attempts of a task, as responses show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import (
    Annotated,  # pydantic describes no other before Python 3.12
)

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.tasks.responses import Instant, TaskErrorResponse
from duetime.domain.tasks.attempt_records import AttemptOutcome


class AttemptErrorResponse(TaskErrorResponse):
    """Why an attempt failed."""

    traceback: Annotated[
        str | None,
        Field(
            description="Traceback of what a Python handler raised, the last part of it and without what looks like a "
            "secret; of the last failed attempt only, null for others."
        ),
    ]


class AttemptResponse(TypedDict):
    """An attempt of a task. Most fields of an attempt whose worker was lost are null."""

    attempt: Annotated[
        int,
        Field(
            description="Number of the attempt. A paused attempt does not count, and a retried task starts again "
            "with 1."
        ),
    ]
    fence: Annotated[int, Field(description="Fence of the attempt; unlike the number, it never repeats.")]
    worker: Annotated[str | None, Field(description="The worker that ran it.")]
    planned_at: Annotated[Instant | None, Field(description="When it was planned to start.")]
    started_at: Annotated[Instant | None, Field(description="When the target was called.")]
    lateness_ms: Annotated[
        int | None, Field(description="How long after its planned start it started, in milliseconds.")
    ]
    duration_ms: Annotated[int | None, Field(description="How long it took, in milliseconds.")]
    outcome: Annotated[AttemptOutcome, Field(description="How it ended.")]
    error: Annotated[
        AttemptErrorResponse | None,
        Field(description="Why it failed; the message can be cut, except that of the last failure."),
    ]
    cost_dollars: Annotated[
        float | None,
        Field(
            description="Estimated cost in US dollars, by assumed public prices: its writes, and its time in a worker."
        ),
    ]


class AttemptList(TypedDict):
    """The attempts of a task that have ended, oldest first."""

    attempts: Sequence[AttemptResponse]
