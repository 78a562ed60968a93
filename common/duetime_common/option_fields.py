"""Typed dictionaries for task options, with the same fields as in API requests."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations
from typing import Literal, NotRequired, TypedDict


class RetryPolicy(TypedDict, total=False):
    """How often a failed task is retried, and how long to wait before each retry."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float
    max_duration_seconds: int | None


class LockSpec(TypedDict):
    """A named resource that at most `max_holders` tasks hold, in all phases (`task`) or only in `run`.

    `shared` tasks can hold the lock at the same time; an `exclusive` task excludes all shared tasks.
    """

    key: str
    mode: NotRequired[Literal["exclusive", "shared"]]
    max_holders: NotRequired[int | None]
    scope: NotRequired[Literal["task", "run"]]
    wait_seconds: NotRequired[int | None]


class RateSpec(TypedDict):
    """Rate limit for all tasks with the same key: `limit` attempts per `per_seconds`, plus `burst` attempts at once."""

    key: str
    limit: int
    per_seconds: NotRequired[int]
    burst: NotRequired[int]


class UniqueKey(TypedDict):
    """Allows only one task per key until the task starts or ends.

    `on_conflict` decides what happens if another task holds the key.
    """

    key: str
    until: NotRequired[Literal["started", "ended"]]
    on_conflict: NotRequired[Literal["keep", "replace", "refuse"]]


class OrderedKey(TypedDict):
    """Runs tasks with the same key one after another, in creation order.

    After a final failure, the next task runs (`continue`) or waits until the failed task is retried or deleted
    (`stop`).
    """

    key: str
    on_failure: NotRequired[Literal["continue", "stop"]]


class NotifyOn(TypedDict, total=False):
    """Where to send notices about a final failure, a late start or a long run.

    `to` is a URL, or the ARN of an SNS topic or event bus.
    """

    to: str
    failed: bool
    late_seconds: int | None
    running_seconds: int | None


class TypeOptions(TypedDict, total=False):
    """Task options that can have defaults per task type; `None` disables the handler's default."""

    priority: Literal["high", "normal", "low"] | None
    retry: RetryPolicy | None
    timeout_seconds: int | None
    notify_within_seconds: int | None
    rollback_on_failure: bool | None
    lock: LockSpec | None
    locks: Sequence[LockSpec] | None
    rate: RateSpec | None
    notify_on: NotifyOn | None
    expires_seconds: int | None
    fair_key: str | None
    fair_weight: int | None
    unique: UniqueKey | None
