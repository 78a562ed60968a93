"""`client.rates`: rates, their usage and their waiting tasks."""

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
    """How often attempts can start: `limit` times per `per_seconds` seconds, and `burst` more times after a pause."""

    limit: int
    per_seconds: int = 1
    burst: int = 0


class RateWaiter(ResponseModel):
    """A task that waits for a rate; `next_at` is the time of its turn or, if the rate is paused, its next check."""

    task_id: str
    due_at: datetime
    next_at: datetime


class Rate(ResponseModel):
    """A rate with the limit in force, its usage and, except in lists, the first waiting tasks in order.

    `limit` comes from `pinned` or else from `asked`, the limit that the latest task requested. `used` is the number of
    starts that currently count, and `available` the number of starts that are possible at once. `waiting` and
    `next_free_at` are `None` while the rate is paused.
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

    A rate stays paused or pinned until it is resumed or unpinned. The audit log contains the reasons.
    """

    @Stream
    def list(self) -> Items[Rate]:
        """List all rates that were used in the last week, or are paused or pinned, in order of key."""
        return pages(self._session, RATES, "rates", partial(read, Rate))

    @Operation
    def get(self, key: str) -> Request[Rate]:
        """Get a rate with its first waiting tasks."""
        return Request("GET", path_of(key), one(Rate))

    @Operation
    def pin(self, key: str, limit: int, *, per_seconds: int = 1, burst: int = 0, reason: str = "") -> Request[Rate]:
        """Set a limit that replaces the limits requested by tasks."""
        body: dict[str, Any] = {"limit": limit, "per_seconds": per_seconds, "burst": burst, "reason": reason}
        return Request("PUT", path_of(key), one(Rate), body=body, repeatable=True)

    @Operation
    def unpin(self, key: str) -> Request[Rate]:
        """Remove the pinned limit, so that the limits requested by tasks apply again."""
        return Request("DELETE", path_of(key), one(Rate))

    @Operation
    def pause(self, key: str, *, reason: str = "") -> Request[Rate]:
        """Let no more attempts of the rate's tasks start; running attempts continue."""
        return _action(key, "pause", reason)

    @Operation
    def resume(self, key: str, *, reason: str = "") -> Request[Rate]:
        """Let attempts of a paused rate start again."""
        return _action(key, "resume", reason)

    @Operation
    def reset(self, key: str, *, reason: str = "") -> Request[Rate]:
        """Clear the counted starts and the line of waiting tasks."""
        return _action(key, "reset", reason)


class Rates(RateOperations, SyncResource):
    """`client.rates` of `Client`."""


class AsyncRates(RateOperations, AsyncResource):
    """`client.rates` of `AsyncClient`."""


def path_of(key: str) -> str:
    """The path of a rate; the key is escaped as one path segment."""
    return f"{RATES}/{segment(key)}"


def _action(key: str, name: str, reason: str) -> Request[Rate]:
    body = {"reason": reason} if reason else None
    return Request("POST", f"{path_of(key)}/{name}", one(Rate), body=body)
