"""A task's recorded waits: since when it waits, and for what.

A record contains the start and the reason of the latest waits (`duetime.domain.tasks.attempt_records.Wait`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RECORDED_WAIT_LENGTH, MAX_RECORDED_WAITS
from duetime.domain.tasks.attempt_records import FORGOTTEN, Wait
from duetime.domain.tasks.wait_reasons import APPROVAL_AWAITED, EVENT_AWAITED
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def waits_with(task: Task, reason: str, now: Millis) -> tuple[Wait, ...]:
    """A postponed task's waits including the new wait; if a wait continues, its original start is kept."""
    wait = Wait(now, reason[:MAX_RECORDED_WAIT_LENGTH])
    last = task.waits[-1] if task.waits else None
    if last is not None and last.reason == wait.reason and last.since > _began_anew(task):
        return task.waits
    waits = (*task.waits, wait)
    # The time limit for a lock counts from the first wait for it, regardless of other waits in between.
    return bounded(waits, _first_for_a_lock(task, waits))


def waiting_for_locks_since(task: Task) -> Millis | None:
    """When the attempt first waited for one of the task's locks; `None` if it has not waited for a lock."""
    first = _first_for_a_lock(task, task.waits)
    return None if first is None else first.since


def has_awaited_target(task: Task) -> bool:
    """Whether a task has begun to wait for its approval or its event; the wait is not an attempt."""
    return next(_waits_for_target(task), None) is not None


def awaits_target_since(task: Task, now: Millis) -> Millis:
    """When a task began to wait for its approval or its event, or begins to wait now.

    The wait begins when the task is due, or later when its turn comes. A task that was due before its creation gets the
    full time, and a retried task waits again for the full time.
    """
    since = max(task.due_at, task.created_at, task.reopened_at or 0)
    if not waits_for_turn(task):
        return since
    began = next((wait.since for wait in _waits_for_target(task) if wait.since > _began_anew(task)), None)
    # The wait is recorded a moment later than now, and must have ended when the task is checked at its end.
    return max(since, now + SECOND if began is None else began)


def waits_for_turn(task: Task) -> bool:
    """Whether other tasks can delay a due task, which are runs of its schedule, members of its group or earlier tasks.

    Other tasks that it waits for, such as its parents, delay its due time.
    """
    return task.schedule_ref is not None or task.completes is not None or task.order is not None


def _waits_for_target(task: Task) -> Iterator[Wait]:
    return (wait for wait in task.waits if wait.reason.startswith((APPROVAL_AWAITED, EVENT_AWAITED)))


def _first_for_a_lock(task: Task, waits: Iterable[Wait]) -> Wait | None:
    reasons = {f"lock {lock.key}"[:MAX_RECORDED_WAIT_LENGTH] for lock in task.all_locks}
    after = _began_anew(task)
    return next((wait for wait in waits if wait.reason in reasons and wait.since > after), None)


def _began_anew(task: Task) -> Millis:
    """Start of the current attempt's waits: the start of the previous attempt, or the retry after the task's end."""
    starts = [line.started_at for line in task.attempt_history[-1:]]
    return max([*starts, task.reopened_at or -1, -1])


def bounded(waits: tuple[Wait, ...], kept: Wait | None = None) -> tuple[Wait, ...]:
    """The latest waits and `kept`; all earlier waits are merged into one wait with the first start time."""
    if kept is None or kept in waits[1 - MAX_RECORDED_WAITS :]:
        return _latest(waits, MAX_RECORDED_WAITS)
    place = waits.index(kept)
    before = _latest(waits[:place], 1)
    return (*before, kept, *_latest(waits[place + 1 :], MAX_RECORDED_WAITS - 1 - len(before)))


def _latest(waits: tuple[Wait, ...], most: int) -> tuple[Wait, ...]:
    """The latest waits; all earlier waits are merged into one wait with the first start time."""
    if len(waits) <= most:
        return waits
    return (Wait(waits[0].since, FORGOTTEN), *waits[len(waits) - most + 1 :])
