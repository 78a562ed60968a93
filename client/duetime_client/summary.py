"""The summary: how many tasks there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from typing import TYPE_CHECKING

from pydantic import Field

from duetime_client.lock_admin import read
from duetime_client.pages import pages
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.transport import Transport

SUMMARY = "/v1/summary"


class TypeSummary(ResponseModel):
    """How many tasks of one type there are."""

    type: str
    total: int
    states: Mapping[str, int] = Field(default_factory=dict)


class Summary(ResponseModel):
    """How many tasks there are, as of the latest change that is counted."""

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
    """How many tasks one owner has, as of the latest change that is counted."""

    owner: str
    total: int
    states: Mapping[str, int] = Field(default_factory=dict)
    is_complete: bool = True
    as_of: datetime | None = None


class Summaries:
    """The client's methods for the summary."""

    _transport: Transport

    def get_summary(self) -> Summary:
        """The numbers of the caller's tasks by state, type and priority; changes are counted within seconds."""
        response = self._transport.request("GET", SUMMARY)
        return read(Summary, response, document_of(response))

    def list_owner_summaries(self) -> Iterator[OwnerSummary]:
        """The numbers of tasks of each owner, by owner, page by page; for operators."""
        for response, entry in pages(self._transport, f"{SUMMARY}/owners", "owners"):
            yield read(OwnerSummary, response, entry)
