"""What answers show of what was chosen of a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.domain.tasks.task_options import LockScope, OnConflict, Priority, Until


class RetryResponse(TypedDict):
    """The retry policy of a task."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float
    max_duration_seconds: Annotated[
        int | None,
        Field(description="How long after the start of the first attempt another one can start; null for no limit."),
    ]


class TaskLockResponse(TypedDict):
    """The lock that a task holds while it runs."""

    key: str
    max_holders: int
    scope: LockScope
    wait_seconds: Annotated[int | None, Field(description="How long an attempt can wait for it; null for no limit.")]


class TaskRateResponse(TypedDict):
    """How often attempts of tasks with the same key can start."""

    key: str
    limit: int
    per_seconds: int
    burst: int


class UniqueResponse(TypedDict):
    """That a task is the only one of its key."""

    key: str
    until: Until
    on_conflict: OnConflict


class DebounceResponse(TypedDict):
    """That further creations with the key put a task off."""

    key: str
    seconds: int
    max_seconds: Annotated[int | None, Field(description="Counted from its creation; null for no limit.")]


class NotifyOnResponse(TypedDict):
    """Who is told of a failure for good, or of a late start."""

    to: Annotated[str, Field(description="Where notices are sent: a URL, or an ARN.")]
    failed: bool
    late_seconds: Annotated[
        int | None, Field(description="After how many seconds a late start is told; null for never.")
    ]


class TaskOptionsResponse(TypedDict):
    """What was chosen of a task."""

    name: str | None
    tags: Mapping[str, str]
    priority: Priority
    retry: RetryResponse
    timeout_seconds: int
    notify_within_seconds: int
    rollback_on_failure: bool
    lock: TaskLockResponse | None
    rate: TaskRateResponse | None
    callback_url: Annotated[str | None, Field(description="URL that the outcome is posted to; null for none.")]
    notify_on: NotifyOnResponse | None
    expires_seconds: Annotated[
        int | None, Field(description="How long after its due time its first attempt can start; null for no limit.")
    ]
