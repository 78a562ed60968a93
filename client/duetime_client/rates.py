"""`client.rates`: rates, their use and their waiting tasks."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

RATES = "/v1/rates"


class RateLimit(ResponseModel):
    """How often attempts can start: `limit` times in `per_seconds`, and `burst` more after a pause."""

    limit: int
    per_seconds: int = 1
    burst: int = 0


class RateWaiter(ResponseModel):
    """A task that waits for a rate; `next_at` is its turn, or its next check while the rate is paused."""

    task_id: str
    due_at: datetime
    next_at: datetime


class Rate(ResponseModel):
    """A rate: the limit in force, its use and, except in lists, the first waiting tasks in their order.

    `limit` is that of `pinned`, or else of `asked`: the limit that the latest task requested. `used` starts count at
    present, and `available` more are possible at once. `waiting` and `next_free_at` are `None` while it is paused.
    """

    key: str
    limit: int | None
    per_seconds: int | None
    burst: int | None
    pinned: RateLimit | None
    asked: RateLimit | None
    paused_at: datetime | None
    used: int
    available: int
    waiting: int | None
    next_free_at: datetime | None
    waiters: list[RateWaiter] = Field(default_factory=list)


class RateOperations(Resource):
    """Rates.

    A paused or pinned rate stays so until it is resumed or unpinned. The reasons are in the audit log.
    """

    @Stream
    def list(self) -> Items[Rate]:
        """All rates that were used in the last week, or are paused or pinned, by key, page by page."""
        return pages(self._session, RATES, "rates", partial(read, Rate))

    @Operation
    def get(self, key: str) -> Request[Rate]:
        """One rate, with the first of its waiting tasks."""
        return Request("GET", path_of(key), one(Rate))

    @Operation
    def pin(self, key: str, limit: int, *, per_seconds: int = 1, burst: int = 0, reason: str = "") -> Request[Rate]:
        """Set a limit that replaces those that tasks request."""
        body: dict[str, Any] = {"limit": limit, "per_seconds": per_seconds, "burst": burst, "reason": reason}
        return Request("PUT", path_of(key), one(Rate), body=body, repeatable=True)

    @Operation
    def unpin(self, key: str) -> Request[Rate]:
        """Apply the limits that tasks request again."""
        return Request("DELETE", path_of(key), one(Rate))

    @Operation
    def pause(self, key: str, *, reason: str = "") -> Request[Rate]:
        """Let no attempt of its tasks start; those that run continue."""
        return _action(key, "pause", reason)

    @Operation
    def resume(self, key: str, *, reason: str = "") -> Request[Rate]:
        """Let attempts of a paused rate start again."""
        return _action(key, "resume", reason)

    @Operation
    def reset(self, key: str, *, reason: str = "") -> Request[Rate]:
        """Forget the counted starts and the waiting line."""
        return _action(key, "reset", reason)


class Rates(RateOperations, SyncResource):
    """`client.rates` of `Client`."""


class AsyncRates(RateOperations, AsyncResource):
    """`client.rates` of `AsyncClient`."""


def path_of(key: str) -> str:
    """The path of a rate; the key is one segment of it, whatever characters it has."""
    return f"{RATES}/{segment(key)}"


def _action(key: str, name: str, reason: str) -> Request[Rate]:
    body = {"reason": reason} if reason else None
    return Request("POST", f"{path_of(key)}/{name}", one(Rate), body=body)
