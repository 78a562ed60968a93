"""The possible changes to a task's record, by field, with types for the type checker."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from duetime.domain.tasks.action_history import NO_ACTIONS
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.action_history import ActionHistory, ActionRecord
    from duetime.domain.tasks.attempt_records import AttemptRecord, TaskError, Wait
    from duetime.domain.tasks.dependencies import Dependencies
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import NodeRef, Progress, RequestedAction
    from duetime.domain.tasks.task_options import Debounce, LockSpec, NotifyOn, OrderKey, Priority, Rate, Unique
    from duetime.domain.times import Millis


class TaskChanges(TypedDict, total=False):
    """New values of fields of `duetime.domain.tasks.task.Task`; `None` removes a value."""

    due_at: Millis
    next_at: Millis
    payload: Content
    priority: Priority
    target: Target
    retry: RetryPolicy
    timeout_seconds: int
    notify_within_seconds: int
    rollback_on_failure: bool
    lock: LockSpec | None
    locks: tuple[LockSpec, ...]
    rate: Rate | None
    callback_url: str | None
    notify_on: NotifyOn | None
    expires_seconds: int | None
    fair_key: str | None
    fair_weight: int
    unique: Unique | None
    debounce: Debounce | None
    order: OrderKey | None
    name: str
    tags: Mapping[str, str]
    node_ref: NodeRef | None
    group: str | None
    completes: str | None
    after: Dependencies | None
    has_dependents: bool
    generation: int
    fence: int
    attempt: int
    sent: bool
    lease_worker: str | None
    lease_expires_at: Millis | None
    unacknowledged: int | None
    lease_nonce: str | None
    deferred_fence: int | None
    job: str | None
    requested_action: RequestedAction | None
    waiting_for: str | None
    waits: tuple[Wait, ...]
    rate_places: Mapping[str, int]
    checkpoint: Content | None
    progress: Progress | None
    result: Content | None
    error: TaskError | None
    started_at: Millis | None
    started_late: bool
    run_at: Millis | None
    finished_at: Millis | None
    expires_at: Millis | None
    attempt_history: tuple[AttemptRecord, ...]
    reopened_fence: int | None
    rerun_nodes: tuple[str, ...]
    reopened_at: Millis | None
    erased: bool
    actions: ActionHistory
    cancellation: ActionRecord | None


NOTHING_LEFT = TaskChanges(
    erased=True,
    payload=Content(ContentPlace.RECORD, "payload", b"null"),
    target=HandlerTarget(),
    retry=RetryPolicy(),
    lock=None,
    locks=(),
    rate=None,
    rate_places={},
    fair_key=None,
    unique=None,
    debounce=None,
    order=None,
    callback_url=None,
    notify_on=None,
    name="",
    tags={},
    group=None,
    completes=None,
    rerun_nodes=(),
    checkpoint=None,
    progress=None,
    result=None,
    error=None,
    waiting_for=None,
    waits=(),
    lease_worker=None,
    job=None,
    attempt_history=(),
    actions=NO_ACTIONS,
    cancellation=None,
)
"""Resets the fields with content from the task's user or attempts; all other fields describe how the task ran."""
