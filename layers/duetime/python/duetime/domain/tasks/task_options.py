"""How a task is to be run: its priority, its lock, and the rest that a user may choose."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import MAX_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a task is tried.

    Attributes:
        max_attempts: attempts in all, the first and those lost to a crash included; 1 means no retry.
        initial_seconds: upper bound of the first wait.
        multiplier: growth of the bound from one wait to the next.
        max_seconds: the bound grows no further than this.
        max_duration_seconds: how long after the start of the first attempt another one may start; `None` for no limit.
    """

    max_attempts: int = 5
    initial_seconds: float = 1.0
    multiplier: float = 2.0
    max_seconds: float = 300.0
    max_duration_seconds: int | None = None

    def bound(self, attempt: int) -> Millis:
        """Longest wait after the given attempt (1 is the first) has failed."""
        # No policy has more attempts; the powers of the largest multiplier stay within a float up to there.
        power = min(attempt - 1, MAX_ATTEMPTS)
        seconds = min(self.initial_seconds * self.multiplier**power, self.max_seconds)
        return int(seconds * 1000)

    def wait(self, attempt: int, fraction: float) -> Millis:
        """The wait after the given attempt, drawn evenly between nothing and its bound.

        Args:
            attempt: the attempt that failed, from 1.
            fraction: a random number, 0 <= fraction < 1.
        """
        return int(self.bound(attempt) * fraction)

    def allows_after(self, attempt: int) -> bool:
        """Whether another attempt may follow the given one."""
        return attempt < self.max_attempts


DEFAULT_RETRY = RetryPolicy()
"""That of a task which names none."""


class Priority(StrEnum):
    """The priority of a task: it orders tasks that are due at the same time."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class LockScope(StrEnum):
    """For which part of an attempt a lock is held.

    Attributes:
        TASK: for all its phases, from before `prepare` until after `clean`, and for a rollback.
        RUN: for `run` and a rollback only.
    """

    TASK = "task"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class LockSpec:
    """A named resource that a task needs while it runs.

    Attributes:
        key: its name among the owner's locks.
        max_holders: most tasks that may hold it at once.
        wait_seconds: how long an attempt may wait for it; `None` for no limit.
    """

    key: str
    max_holders: int = 1
    scope: LockScope = LockScope.TASK
    wait_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """How often attempts may start of all tasks of an owner that name the same key.

    Attributes:
        key: its name among the owner's rates.
        limit: attempts that may start in `per_seconds`.
        burst: how many more may start at once after a time in which fewer did.
    """

    key: str
    limit: int
    per_seconds: int = 1
    burst: int = 0


class Until(StrEnum):
    """How long a task holds its unique key.

    Attributes:
        STARTED: until its first attempt starts.
        ENDED: until it has an outcome.
    """

    STARTED = "started"
    ENDED = "ended"


class OnConflict(StrEnum):
    """What happens to a creation whose unique key is held by another task.

    Attributes:
        KEEP: nothing is created; the answer is the task that holds the key.
        REPLACE: the task that holds the key gets the fields of the creation, if it has not started.
        REFUSE: the creation is refused.
    """

    KEEP = "keep"
    REPLACE = "replace"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Unique:
    """That a task shall be the only one of its key, among those of its owner.

    Attributes:
        on_conflict: what happens to this creation if another task holds the key; it says nothing about later ones.
    """

    key: str
    until: Until = Until.ENDED
    on_conflict: OnConflict = OnConflict.KEEP


@dataclass(frozen=True, slots=True)
class Debounce:
    """That a task is put off by each further creation with its key, until there has been none for a while.

    Attributes:
        seconds: how long there must have been none.
        max_seconds: how long after its own creation it is due at the latest; `None` for no limit.
    """

    key: str
    seconds: int
    max_seconds: int | None = None

    @property
    def unique(self) -> Unique:
        """The unique key that follows from it."""
        return Unique(self.key, Until.STARTED, OnConflict.REPLACE)


def unique_of(unique: Unique | None, debounce: Debounce | None) -> Unique | None:
    """The unique key of a task, of its two fields that may say so; `None` if it has none."""
    return unique if debounce is None else debounce.unique


@dataclass(frozen=True, slots=True)
class NotifyOn:
    """What is told of a task, and to whom.

    Attributes:
        to: an HTTP URL, or the ARN of an SNS topic or of an event bus.
        failed: whether its final failure is notified.
        late_seconds: how long after its due time a notice is sent if it has not started; `None` for never.
    """

    to: str
    failed: bool = False
    late_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a client chooses of a task, and its record and its answers have under the same name.

    Attributes:
        notify_within_seconds: how long after the start of an attempt a target that has accepted the work may notify.
        rollback_on_failure: whether a final failure is undone by the target's `rollback`.
        lock: what it needs for itself, or shares with few, while it runs.
        rate: how often its attempts may start, together with those of the other tasks of a key.
        callback_url: where its outcome is posted.
        notify_on: who is notified if it fails for good, or does not start in time.
        expires_seconds: how long after its due time its first attempt may start; `None` for no limit.
    """

    priority: Priority = Priority.NORMAL
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_seconds: int = 60
    notify_within_seconds: int = 3600
    rollback_on_failure: bool = False
    lock: LockSpec | None = None
    rate: Rate | None = None
    callback_url: str | None = None
    notify_on: NotifyOn | None = None
    expires_seconds: int | None = None
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """The options by their names."""
        return {name: getattr(self, name) for name in TASK_OPTIONS}


TASK_OPTIONS = tuple(each.name for each in fields(TaskOptions))
"""The names of what a client chooses of a task."""
