"""`client.ordered_keys`: ordered keys, and the tasks in the line of each key."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.open_literals import TaskState  # noqa: TC001 - pydantic reads the annotations
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

ORDERED_KEYS = "/v1/ordered-keys"


class OrderedTask(ResponseModel):
    """A task in the line of an ordered key."""

    task_id: str
    state: TaskState
    due_at: datetime


class OrderedKeyLine(ResponseModel):
    """An ordered key with the task whose turn it is and, except in lists, the waiting tasks in order."""

    key: str
    turn: OrderedTask | None
    waiting: list[OrderedTask] = Field(default_factory=list)


class OrderedKeyOperations(Resource):
    """Ordered keys."""

    @Stream
    def list(self) -> Items[OrderedKeyLine]:
        """List all ordered keys that were used in the last year or so, in order of key; pages are fetched as needed."""
        return pages(self._session, ORDERED_KEYS, "ordered_keys", partial(read, OrderedKeyLine))

    @Operation
    def get(self, key: str) -> Request[OrderedKeyLine]:
        """Get an ordered key with the first tasks in its line."""
        return Request("GET", f"{ORDERED_KEYS}/{segment(key)}", one(OrderedKeyLine))


class OrderedKeys(OrderedKeyOperations, SyncResource):
    """`client.ordered_keys` of `Client`."""


class AsyncOrderedKeys(OrderedKeyOperations, AsyncResource):
    """`client.ordered_keys` of `AsyncClient`."""
