"""Handlers for the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import SummaryServices
from duetime.contract import summary
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(summary.GET)
def get_summary(request: Request) -> Response:
    """Read the owner's task counts."""
    return answer(json_text(summary.summary_response(composed(SummaryServices).reader.read(request.owner))))


@route(summary.LIST_OWNERS)
def list_owner_summaries(request: Request[summary.OwnerSummaryQuery]) -> Response:
    """Read the task counts of all owners; only operators may call this operation."""
    query, scope = request.query, summary.LIST_OWNERS.path
    after = summary.owner_after(query.next_token, scope)
    found, last = composed(SummaryServices).reader.read_owners(after, query.limit)
    return answer(json_text(summary.owner_summary_page(found, last, scope)))
