"""`client.purges`: removal of all stored data of tasks, or of an owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from duetime_client.bulk_operations import FIRST_PAUSE, GROWTH, LONGEST_PAUSE, BulkOperation
from duetime_client.io_operations import Item, Pause, Request
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one
from duetime_client.session import segment
from duetime_client.task import ResponseModel
from duetime_client.task_request_fields import body_of

if TYPE_CHECKING:
    from duetime_client.io_operations import Items
    from duetime_client.task_request_fields import EndedTaskFilter

PURGES = "/v1/purges"


class PurgeLeftover(ResponseModel):
    """Data that is left after a purge, and the time until which it is kept."""

    kind: str
    until: datetime


class PurgeReceipt(ResponseModel):
    """The data that a purge has removed, by kind, and what is left."""

    owner: str
    removed: Mapping[str, int] = Field(default_factory=dict)
    left: Sequence[PurgeLeftover] = ()


class Purge(BulkOperation):
    """A purge, which is a bulk operation with a receipt."""

    receipt: PurgeReceipt


class PurgeOperations(Resource):
    """Purges."""

    @Operation
    def create(
        self,
        *,
        task_ids: Sequence[str] = (),
        filter: EndedTaskFilter | None = None,  # noqa: A002 - the API's name
        all: bool = False,  # noqa: A002 - same
        owner: str | None = None,
        open_tasks: Literal["refuse", "cancel"] = "refuse",
        per_second: float | None = None,
        reason: str = "",
    ) -> Request[Purge]:
        """Start to permanently remove all stored data of some tasks or, with `all`, of an owner.

        Pass exactly one of `task_ids`, `filter` and `all`. Only operators can name another `owner`. Tasks that have not
        ended are kept, unless `open_tasks` is `cancel`. Use `follow` to wait for the receipt.
        """
        fields = {
            "task_ids": list(task_ids) or None,
            "filter": None if filter is None else body_of(filter),
            "all": all,
            "owner": owner,
            "open_tasks": open_tasks,
            "per_second": per_second,
            "reason": reason,
        }
        return Request("POST", PURGES, one(Purge), body=fields, repeatable=True)

    @Operation
    def get(self, operation_id: str) -> Request[Purge]:
        """Get the current state of a purge, with its receipt."""
        return _get(operation_id)

    @Stream
    def follow(self, operation_id: str) -> Items[Purge]:
        """Yield the current state of a purge at each poll until it has ended."""
        pause = FIRST_PAUSE
        while True:
            purge = yield from self._session.send(_get(operation_id))
            yield Item(purge)
            if not purge.is_running:
                return
            yield Pause(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)


def _get(operation_id: str) -> Request[Purge]:
    return Request("GET", f"{PURGES}/{segment(operation_id)}", one(Purge))


class Purges(PurgeOperations, SyncResource):
    """`client.purges` of `Client`."""


class AsyncPurges(PurgeOperations, AsyncResource):
    """`client.purges` of `AsyncClient`."""
