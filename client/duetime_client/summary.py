"""`client.summary`: counts of tasks."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

SUMMARY = "/v1/summary"


class TypeSummary(ResponseModel):
    """Counts of tasks of one type."""

    type: str
    total: int
    states: Mapping[str, int] = Field(default_factory=dict)


class Summary(ResponseModel):
    """The number of tasks, as of the latest counted change."""

    total: int
    states: Mapping[str, int] = Field(default_factory=dict)
    priorities: Mapping[str, int] = Field(default_factory=dict)
    types: list[TypeSummary]
    other_types: int = 0
    is_complete: bool = True
    as_of: datetime | None = None
    counted_since: datetime | None = None
    recounted_at: datetime | None = None


class OwnerSummary(ResponseModel):
    """The number of tasks of one owner, as of the latest counted change."""

    owner: str
    total: int
    states: Mapping[str, int] = Field(default_factory=dict)
    is_complete: bool = True
    as_of: datetime | None = None


class SummaryOperations(Resource):
    """The summary."""

    @Operation
    def get(self) -> Request[Summary]:
        """Get the numbers of the caller's tasks by state, type and priority; changes are counted within seconds."""
        return Request("GET", SUMMARY, one(Summary))

    @Stream
    def list_owners(self) -> Items[OwnerSummary]:
        """List the number of tasks of each owner, in order of owner; for operators only."""
        return pages(self._session, f"{SUMMARY}/owners", "owners", partial(read, OwnerSummary))


class SummaryResource(SummaryOperations, SyncResource):
    """`client.summary` of `Client`."""


class AsyncSummaryResource(SummaryOperations, AsyncResource):
    """`client.summary` of `AsyncClient`."""
