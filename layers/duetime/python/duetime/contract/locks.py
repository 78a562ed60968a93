"""The REST API for locks: keys in paths, queries, responses and operations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.domain.errors import LockNotFound
from duetime.domain.limits import MAX_PAGE
from duetime.domain.locks import RESERVED
from duetime.domain.tasks.task_options import LockMode
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.locks import Holder, Lock, Waiter

_KEY = re.compile(LOCK_KEY_PATTERN)


class LockHolderResponse(TypedDict):
    """A task that holds a lock."""

    task_id: str
    fence: Annotated[
        int | None,
        Field(
            description="Fence of the task's attempt; null while the lock is reserved for a task that has not claimed "
            "it."
        ),
    ]
    mode: LockMode
    expires_at: Annotated[Instant, Field(description="When the task loses the lock unless a heartbeat renews it.")]


class LockWaiterResponse(TypedDict):
    """A task that waits for a lock."""

    task_id: str
    mode: LockMode
    due_at: Instant


class LockSummary(TypedDict):
    """A lock, as shown in lists."""

    key: str
    holders: list[LockHolderResponse]


class LockResponse(LockSummary):
    """A lock with its first waiting tasks, in order."""

    waiters: list[LockWaiterResponse]


class LockPage(TypedDict):
    """A page of locks."""

    locks: list[LockSummary]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class LockListQuery(Parameters):
    """Parameters of `GET /v1/locks`."""

    limit: Annotated[PageSize, Field(description="Maximum number of locks on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


def lock_key(text: str) -> str:
    """Parses the key in a path.

    Raises:
        LockNotFound: the text cannot be a key.
    """
    if _KEY.fullmatch(text) is None:
        raise LockNotFound(text)
    return text


def lock_entry(lock: Lock) -> LockSummary:
    """A lock in a list."""
    return LockSummary(key=lock.name.key, holders=[_holder(holder) for holder in lock.holders])


def lock_response(lock: Lock, line: Sequence[Waiter]) -> LockResponse:
    """A lock with its waiting tasks."""
    waiters = [
        LockWaiterResponse(task_id=waiter.task_id.text, mode=_mode(waiter), due_at=to_iso(waiter.due_at))
        for waiter in line
    ]
    return LockResponse(**lock_entry(lock), waiters=waiters)


def _holder(holder: Holder) -> LockHolderResponse:
    fence = None if holder.fence == RESERVED else holder.fence
    return LockHolderResponse(
        task_id=holder.task_id.text, fence=fence, mode=_mode(holder), expires_at=to_iso(holder.expires_at)
    )


def _mode(task: Holder | Waiter) -> LockMode:
    return LockMode.SHARED if task.is_shared else LockMode.EXCLUSIVE


LIST = Operation(
    "listLocks",
    "GET /v1/locks",
    "List locks",
    Returns(LockPage, "A page of locks."),
    description="Your locks that tasks have acquired within about the last day, ordered by key.",
    query=LockListQuery,
)
READ = Operation(
    "getLock",
    "GET /v1/locks/{key}",
    "Get a lock",
    Returns(LockResponse, "The lock."),
    description="The lock's holders, and the first tasks that wait for the lock.",
)
RELEASE = Operation(
    "releaseLock",
    "DELETE /v1/locks/{key}",
    "Release a lock by force",
    Returns(LockSummary, "The lock after the release."),
    description=(
        "The first waiting task gets the lock at once. The previous holder learns of the release at its next heartbeat "
        "and stops; until then, two tasks may believe that they hold the lock."
    ),
)
