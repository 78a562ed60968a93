"""From what was chosen of a task to the bodies of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.tasks.option_responses import (
    DebounceResponse,
    NotifyOnResponse,
    RetryResponse,
    TaskLockResponse,
    TaskOptionsResponse,
    TaskRateResponse,
    UniqueResponse,
)

if TYPE_CHECKING:
    from duetime.domain.tasks import task_options
    from duetime.domain.tasks.task_options import RetryPolicy


def options_response(options: task_options.TaskOptions) -> TaskOptionsResponse:
    """What was chosen of a task."""
    return TaskOptionsResponse(
        name=options.name or None,
        tags=options.tags,
        priority=options.priority,
        retry=_retry(options.retry),
        timeout_seconds=options.timeout_seconds,
        notify_within_seconds=options.notify_within_seconds,
        rollback_on_failure=options.rollback_on_failure,
        lock=_lock(options.lock),
        rate=_rate(options.rate),
        callback_url=options.callback_url,
        notify_on=_notify_on(options.notify_on),
        expires_seconds=options.expires_seconds,
    )


def _lock(lock: task_options.LockSpec | None) -> TaskLockResponse | None:
    """What a task needs for itself while it runs."""
    if lock is None:
        return None
    return TaskLockResponse(
        key=lock.key, max_holders=lock.max_holders, scope=lock.scope, wait_seconds=lock.wait_seconds
    )


def _rate(rate: task_options.Rate | None) -> TaskRateResponse | None:
    """How often attempts of the task's key may start."""
    if rate is None:
        return None
    return TaskRateResponse(key=rate.key, limit=rate.limit, per_seconds=rate.per_seconds, burst=rate.burst)


def unique_response(unique: task_options.Unique | None) -> UniqueResponse | None:
    """That a task is the only one of its key."""
    if unique is None:
        return None
    return UniqueResponse(key=unique.key, until=unique.until, on_conflict=unique.on_conflict)


def debounce_response(debounce: task_options.Debounce | None) -> DebounceResponse | None:
    """How further creations put a task off."""
    if debounce is None:
        return None
    return DebounceResponse(key=debounce.key, seconds=debounce.seconds, max_seconds=debounce.max_seconds)


def _notify_on(notify_on: task_options.NotifyOn | None) -> NotifyOnResponse | None:
    if notify_on is None:
        return None
    return NotifyOnResponse(to=notify_on.to, failed=notify_on.failed, late_seconds=notify_on.late_seconds)


def _retry(policy: RetryPolicy) -> RetryResponse:
    """How often and how patiently a task is tried."""
    return RetryResponse(
        max_attempts=policy.max_attempts,
        initial_seconds=policy.initial_seconds,
        multiplier=policy.multiplier,
        max_seconds=policy.max_seconds,
        max_duration_seconds=policy.max_duration_seconds,
    )
