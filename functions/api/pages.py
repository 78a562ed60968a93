"""Reads pages of an owner's tasks, and encodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.contract.http import page_tokens
from duetime.contract.tasks.encoding import page_text
from duetime.ports.tasks import ListQuery

from .responses import Response, answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.tasks.queries import ListedQuery, TaskListQuery
    from duetime.contract.tasks.responses import AppliedList
    from duetime.services.tasks.read import Page


def read_page(owner: str, query: ListedQuery) -> Page:
    """Read the requested page of an owner's task list."""
    return composed(TaskServices).reader.list(_wanted(owner, query), query.filter)


def _wanted(owner: str, query: ListedQuery) -> ListQuery:
    after = None if query.next_token is None else page_tokens.after_of(query.next_token, query.scope(owner))
    return ListQuery(
        owner,
        after,
        descending=query.order == "desc",
        limit=query.page_size,
        with_nodes=query.with_nodes,
        by_end=query.by_end,
    )


def next_token(page: Page, owner: str, query: ListedQuery) -> str | None:
    """The token for the next page; `None` on the last page."""
    return None if page.after is None else page_tokens.token_of(page.after, query.scope(owner))


def applied(page: Page, owner: str, query: ListedQuery) -> AppliedList:
    """A page's filters, the number of tasks read for the page and, if requested, the number of matching tasks."""
    count = composed(TaskServices).reader.count(_wanted(owner, query), query.filter) if query.count else None
    return query.applied(page.examined, page.after, page.changed_at, count)


def page_response(page: Page, owner: str, query: TaskListQuery, headers: Mapping[str, str] | None = None) -> Response:
    """The response with a page's tasks and filters, and with the token for the next page."""
    rest = {"applied": applied(page, owner, query), "next_token": next_token(page, owner, query)}
    return answer(page_text(page.tasks, query.expand, rest), headers=headers)
