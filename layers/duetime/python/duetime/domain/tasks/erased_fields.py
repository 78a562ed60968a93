"""What the fields become in the record of an erased task."""

from __future__ import annotations

from duetime.domain.tasks.action_history import NO_ACTIONS
from duetime.domain.tasks.content import Content, ContentPlace
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task_changes import TaskChanges

NOTHING_LEFT = TaskChanges(
    erased=True,
    payload=Content(ContentPlace.RECORD, "payload", b"null"),
    target=HandlerTarget(),
    retry=RetryPolicy(),
    lock=None,
    rate=None,
    unique=None,
    debounce=None,
    callback_url=None,
    notify_on=None,
    name="",
    tags={},
    checkpoint=None,
    progress=None,
    result=None,
    error=None,
    waiting_for=None,
    waits=(),
    lease_worker=None,
    attempt_history=(),
    actions=NO_ACTIONS,
    cancellation=None,
)
"""What becomes of the fields in which its user or its attempts said something; the others say how it went."""
