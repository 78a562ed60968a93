"""Options of tasks as typed dictionaries, in the form of the API's requests."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations
from typing import Literal, NotRequired, TypedDict


class RetryPolicy(TypedDict, total=False):
    """How often a failed task is retried, and how long it waits before each retry."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float
    max_duration_seconds: int | None


class LockSpec(TypedDict):
    """A named resource that at most `max_holders` tasks hold, in all phases (`task`) or only in `run`.

    Tasks whose `mode` is `shared` hold it together, an `exclusive` one only without them.
    """

    key: str
    mode: NotRequired[Literal["exclusive", "shared"]]
    max_holders: NotRequired[int | None]
    scope: NotRequired[Literal["task", "run"]]
    wait_seconds: NotRequired[int | None]


class RateSpec(TypedDict):
    """Rate limit for attempts of all tasks with the same key: `limit` in `per_seconds`, and `burst` more at once."""

    key: str
    limit: int
    per_seconds: NotRequired[int]
    burst: NotRequired[int]


class UniqueKey(TypedDict):
    """Makes a task the only one with its key until it starts or has ended.

    `on_conflict` decides what happens if another task holds the key.
    """

    key: str
    until: NotRequired[Literal["started", "ended"]]
    on_conflict: NotRequired[Literal["keep", "replace", "refuse"]]


class OrderedKey(TypedDict):
    """Makes the tasks with the same key run one after another, in the order of their creation.

    After a final failure the next one runs (`continue`), or waits until the failed one is retried or deleted (`stop`).
    """

    key: str
    on_failure: NotRequired[Literal["continue", "stop"]]


class NotifyOn(TypedDict, total=False):
    """Where to send notices of a final failure, a late start or a long run.

    `to` is a URL, or the ARN of an SNS topic or of an event bus.
    """

    to: str
    failed: bool
    late_seconds: int | None
    running_seconds: int | None


class TypeOptions(TypedDict, total=False):
    """The options that a type can have defaults for; `None` disables a default of the handler."""

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
