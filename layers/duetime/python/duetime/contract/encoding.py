"""From tasks to the bodies of answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from duetime.contract.answers import (
    ErrorAnswer,
    HandlerTargetAnswer,
    HttpTargetAnswer,
    LeaseAnswer,
    ProgressAnswer,
    RetryAnswer,
    TaskEntry,
)
from duetime.domain import task as domain
from duetime.domain.states import LEASED
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.task import Content, Task
    from duetime.domain.times import Millis

_OFFERED: tuple[Literal["prepare", "clean", "rollback"], ...] = ("prepare", "clean", "rollback")


def entry(task: Task) -> TaskEntry:
    """A task as lists show it."""
    return TaskEntry(
        id=str(task.id),
        state=task.state,
        type=task.type,
        name=task.name or None,
        tags=task.tags,
        priority=task.priority,
        target=_target(task.target),
        retry=_retry(task),
        timeout_seconds=task.timeout_seconds,
        deadline_seconds=task.deadline_seconds,
        rollback=task.rollback,
        due_at=to_iso(task.due_at),
        next_at=None if task.is_terminal else to_iso(task.next_at),
        created_at=to_iso(task.created_at),
        started_at=_instant(task.started_at),
        finished_at=_instant(task.finished_at),
        attempt=task.attempt,
        fence=task.fence,
        lease=_lease(task),
        deferred=task.deferred,
        asked=task.asked,
        progress=_progress(task.progress),
        error=_error(task.error),
        lateness_ms=task.lateness,
        version=task.version,
    )


def task_text(task: Task) -> str:
    """A task, whole, as JSON text. Its payload and result are JSON already, and stay as they are."""
    known = json_text(entry(task))
    return f'{known[:-1]},"payload":{_json_of(task.payload)},"result":{_json_of(task.result)}}}'


def json_text(value: Mapping[str, object]) -> str:
    """An answer as JSON text without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _json_of(content: Content | None) -> str:
    return "null" if content is None or content.data is None else content.data.decode()


def _instant(at: Millis | None) -> str | None:
    return None if at is None else to_iso(at)


def _lease(task: Task) -> LeaseAnswer | None:
    """The lease of an attempt. A worker that does what follows an outcome holds one, but works no more."""
    if task.state not in LEASED or task.lease_ends_at is None:
        return None
    return LeaseAnswer(holder=task.lease_holder or "", ends_at=to_iso(task.lease_ends_at))


def _progress(progress: domain.Progress | None) -> ProgressAnswer | None:
    return None if progress is None else ProgressAnswer(percent=progress.percent, message=progress.message)


def _error(error: domain.TaskError | None) -> ErrorAnswer | None:
    return None if error is None else ErrorAnswer({"class": error.kind, "message": error.message})


def _target(target: domain.Target) -> HandlerTargetAnswer | HttpTargetAnswer:
    if isinstance(target, domain.HttpTarget):
        return HttpTargetAnswer(
            kind="http", url=target.url, phases=[phase for phase in _OFFERED if phase in target.phases]
        )
    return HandlerTargetAnswer(kind="handler")


def _retry(task: Task) -> RetryAnswer:
    policy = task.retry
    return RetryAnswer(
        max_attempts=policy.max_attempts,
        initial_seconds=policy.initial_seconds,
        multiplier=policy.multiplier,
        max_seconds=policy.max_seconds,
    )
