"""The options of a task that a user can choose, such as its priority and its locks."""

from __future__ import annotations

from dataclasses import field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from zlib import crc32

from duetime.domain.limits import MAX_ATTEMPTS, MAX_LOCK_HOLDERS
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis


@frozen
class RetryPolicy:
    """How often and at which intervals a task is retried.

    Attributes:
        max_attempts: total number of attempts, including the first attempt and crashed attempts; 1 means no retry.
        initial_seconds: upper bound of the first wait.
        multiplier: factor by which the upper bound grows with each wait.
        max_seconds: maximum of the upper bound.
        max_duration_seconds: how long after the start of the first attempt another attempt may start; `None` for no
            limit.
    """

    max_attempts: int = 5
    initial_seconds: float = 1.0
    multiplier: float = 2.0
    max_seconds: float = 300.0
    max_duration_seconds: int | None = None

    def bound(self, attempt: int) -> Millis:
        """Longest wait, in milliseconds, after the failed attempt with this number (counted from 1)."""
        # No policy allows more attempts than this, and the largest multiplier to this power still fits into a float.
        power = min(attempt - 1, MAX_ATTEMPTS)
        seconds = min(self.initial_seconds * self.multiplier**power, self.max_seconds)
        return int(seconds * 1000)

    def wait(self, attempt: int, fraction: float) -> Millis:
        """The wait after a failed attempt, evenly distributed between 0 and its upper bound.

        Args:
            attempt: number of the failed attempt, counted from 1.
            fraction: a random number, 0 <= fraction < 1.
        """
        return int(self.bound(attempt) * fraction)

    def allows_after(self, attempt: int) -> bool:
        """Whether another attempt may follow the given attempt."""
        return attempt < self.max_attempts


DEFAULT_RETRY = RetryPolicy()
"""The default policy."""


class Priority(StrEnum):
    """The priority of a task, which orders tasks that are due at the same time."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class LockScope(StrEnum):
    """The part of an attempt during which a lock is held.

    Attributes:
        TASK: for all its phases, from before `prepare` until after `clean`, and for a rollback.
        RUN: for `run` and a rollback only.
    """

    TASK = "task"
    RUN = "run"


class LockMode(StrEnum):
    """Which tasks may hold a lock at the same time.

    Attributes:
        EXCLUSIVE: one task, or as many exclusive tasks as `max_holders` allows.
        SHARED: all tasks that share the lock.
    """

    EXCLUSIVE = "exclusive"
    SHARED = "shared"


@frozen
class LockSpec:
    """A named resource that a task needs while it runs.

    Attributes:
        key: name of the lock, which is unique among the owner's locks.
        max_holders: maximum number of concurrent holders; `None` for a shared lock without its own limit.
        wait_seconds: how long an attempt can wait for the lock; `None` for no limit.
    """

    key: str
    max_holders: int | None = 1
    scope: LockScope = LockScope.TASK
    wait_seconds: int | None = None
    mode: LockMode = LockMode.EXCLUSIVE

    @property
    def limit(self) -> int:
        """Maximum number of concurrent holders."""
        return MAX_LOCK_HOLDERS if self.max_holders is None else self.max_holders


def one_form(lock: LockSpec | None, locks: Iterable[LockSpec]) -> tuple[LockSpec | None, tuple[LockSpec, ...]]:
    """The stored form of a task's locks: a single lock as `lock`, or several locks as `locks`, ordered by key.

    Args:
        lock: the request's `lock`.
        locks: the request's `locks`; empty if `lock` is given.
    """
    several = tuple(sorted(locks, key=lambda each: each.key))
    return (several[0], ()) if len(several) == 1 else (lock, several)


@frozen
class Rate:
    """Limits how often attempts start, for all tasks of an owner with the same key.

    Attributes:
        key: name of the rate, which is unique among the owner's rates.
        limit: maximum number of starts in `per_seconds`.
        burst: additional starts that are allowed at once after a period with fewer starts.
    """

    key: str
    limit: int
    per_seconds: int = 1
    burst: int = 0


class Until(StrEnum):
    """How long a task holds its unique key.

    Attributes:
        STARTED: until its first attempt starts.
        ENDED: until the task has an outcome.
    """

    STARTED = "started"
    ENDED = "ended"


class OnConflict(StrEnum):
    """What happens to a creation whose unique key another task holds.

    Attributes:
        KEEP: no task is created; the response is the task that holds the key.
        REPLACE: the task that holds the key gets the creation's fields, if it has not started.
        REFUSE: the creation is rejected.
    """

    KEEP = "keep"
    REPLACE = "replace"
    REFUSE = "refuse"


@frozen
class Unique:
    """Makes a task the only task with its key among its owner's tasks.

    Attributes:
        on_conflict: what happens to this creation if another task holds the key; each later creation makes this choice
            itself.
    """

    key: str
    until: Until = Until.ENDED
    on_conflict: OnConflict = OnConflict.KEEP


@frozen
class Debounce:
    """Delays a task whenever another creation has the same key, until there has been no creation for a while.

    Attributes:
        seconds: required time without a creation.
        max_seconds: maximum delay after the task's own creation; `None` for no limit.
    """

    key: str
    seconds: int
    max_seconds: int | None = None

    @property
    def unique(self) -> Unique:
        """The unique key that this debounce option implies."""
        return Unique(self.key, Until.STARTED, OnConflict.REPLACE)


def unique_of(unique: Unique | None, debounce: Debounce | None) -> Unique | None:
    """The unique key from a task's `unique` or `debounce`; `None` if the task has no unique key."""
    return unique if debounce is None else debounce.unique


class AfterFailure(StrEnum):
    """What happens to an ordered key's line after a task's final failure.

    Attributes:
        CONTINUE: the next task runs.
        STOP: the next task waits until the failed task is retried and succeeds, or is deleted.
    """

    CONTINUE = "continue"
    STOP = "stop"


@frozen
class OrderKey:
    """Makes the tasks of an owner with the same key run one after another, in the order of their creation.

    Attributes:
        on_failure: what happens after this task's final failure.
    """

    key: str
    on_failure: AfterFailure = AfterFailure.CONTINUE


@frozen
class NotifyOn:
    """The task events that cause notices, and the receiver.

    Attributes:
        to: an HTTP URL, or the ARN of an SNS topic or of an event bus.
        failed: whether a notice is sent after the final failure.
        late_seconds: how long after its due time a notice is sent if the task has not started; `None` for no notice.
        running_seconds: how long after an attempt's start a notice is sent if the attempt has not ended; `None` for no
            notice.
    """

    to: str
    failed: bool = False
    late_seconds: int | None = None
    running_seconds: int | None = None


@frozen(kw_only=True)
class TaskOptions:
    """Options of a task that have the same name in requests, records and responses.

    Attributes:
        notify_within_seconds: how long after the start of an attempt a target that accepted the work may send a
            notification.
        rollback_on_failure: whether the target's `rollback` runs after a final failure.
        lock: the only lock that it needs while it runs; `None` if it needs no lock or several locks.
        locks: if it needs several locks, the locks that it needs while it runs, ordered by key.
        rate: limit on starts, shared with other tasks with the same key.
        callback_url: URL to which its outcome is posted.
        notify_on: notices about final failure, a late start or a long run.
        expires_seconds: how long after its due time its first attempt may start; `None` for no limit.
        fair_key: an owner's tasks with the same key share workers fairly with other keys' tasks; all tasks without a
            key (`None`) together count as one key.
        fair_weight: the key's share, compared with other keys.
    """

    priority: Priority = Priority.NORMAL
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_seconds: int = 60
    notify_within_seconds: int = 3600
    rollback_on_failure: bool = False
    lock: LockSpec | None = None
    locks: tuple[LockSpec, ...] = ()
    rate: Rate | None = None
    callback_url: str | None = None
    notify_on: NotifyOn | None = None
    expires_seconds: int | None = None
    fair_key: str | None = None
    fair_weight: int = 1
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_locks(self) -> tuple[LockSpec, ...]:
        """The locks that the task needs, ordered by key."""
        return self.locks if self.lock is None else (self.lock,)

    def options(self) -> dict[str, Any]:
        """The options by name."""
        return {name: getattr(self, name) for name in TASK_OPTIONS}


def fair_share(task_id: TaskId, key: str | None, weight: int) -> str:
    """The part of a fair key to which a task belongs; empty if there is no key. A key has as many parts as its weight.

    SQS treats all message groups equally, so a key with a weight has several groups.
    """
    return "" if key is None else f"{crc32(task_id.text.encode()) % weight}.{key}"


TASK_OPTIONS = tuple(each.name for each in fields(TaskOptions))
"""The names of all options."""
