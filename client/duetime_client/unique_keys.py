"""`client.unique_keys`: unique keys, and the tasks that hold them."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from functools import partial
from typing import TYPE_CHECKING

from duetime_client.io_operations import Request
from duetime_client.open_literals import TaskState  # noqa: TC001 - pydantic reads the annotations
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

UNIQUE_KEYS = "/v1/unique-keys"


class UniqueKeyHolder(ResponseModel):
    """The task that holds a unique key."""

    task_id: str
    state: TaskState
    due_at: datetime


class HeldUniqueKey(ResponseModel):
    """A key of the given `kind` (`unique` or `debounce`), which is held until its task has `started` or `ended`."""

    key: str
    kind: str
    until: str
    holders: list[UniqueKeyHolder]


class UniqueKeyOperations(Resource):
    """Unique keys."""

    @Stream
    def list(self) -> Items[HeldUniqueKey]:
        """List all keys that tasks hold, in order of the tasks' due times; pages are fetched as needed."""
        return pages(self._session, UNIQUE_KEYS, "unique_keys", partial(read, HeldUniqueKey))

    @Operation
    def get(self, key: str) -> Request[HeldUniqueKey]:
        """Get a unique key with the task that holds it."""
        return Request("GET", f"{UNIQUE_KEYS}/{segment(key)}", one(HeldUniqueKey))


class UniqueKeys(UniqueKeyOperations, SyncResource):
    """`client.unique_keys` of `Client`."""


class AsyncUniqueKeys(UniqueKeyOperations, AsyncResource):
    """`client.unique_keys` of `AsyncClient`."""
