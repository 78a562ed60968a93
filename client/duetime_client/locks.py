"""`client.locks`: locks, their holders and waiting tasks."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.literals import TaskLockMode  # noqa: TC001 - pydantic reads the annotations
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

LOCKS = "/v1/locks"


class LockHolder(ResponseModel):
    """A task that holds a lock; the fence is `None` while the lock is only reserved for the task."""

    task_id: str
    mode: TaskLockMode = "exclusive"
    fence: int | None
    expires_at: datetime


class LockWaiter(ResponseModel):
    """A task that waits for a lock."""

    task_id: str
    mode: TaskLockMode = "exclusive"
    due_at: datetime


class Lock(ResponseModel):
    """A named resource with its holders and, except in lists, the waiting tasks in order."""

    key: str
    holders: list[LockHolder]
    waiters: list[LockWaiter] = Field(default_factory=list)


class LockOperations(Resource):
    """Locks."""

    @Stream
    def list(self) -> Items[Lock]:
        """List all locks that were used in the last day or so, in order of key; pages are fetched as needed."""
        return pages(self._session, LOCKS, "locks", partial(read, Lock))

    @Operation
    def get(self, key: str) -> Request[Lock]:
        """Get a lock with its first waiting tasks."""
        return Request("GET", path_of(key), one(Lock))

    @Operation
    def release(self, key: str) -> Request[Lock]:
        """Take a lock from its holders by force, and give it to the first waiting task."""
        return Request("DELETE", path_of(key), one(Lock))


class Locks(LockOperations, SyncResource):
    """`client.locks` of `Client`."""


class AsyncLocks(LockOperations, AsyncResource):
    """`client.locks` of `AsyncClient`."""


def path_of(key: str) -> str:
    """The path of a lock; the key is escaped as one path segment."""
    return f"{LOCKS}/{segment(key)}"
