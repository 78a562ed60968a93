"""The routes of the tasks that gave up."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.bulk.bodies import RedriveMany
from duetime.contract.http import page_tokens, routes
from duetime.contract.tasks.queries import dead_letter_query
from duetime.ports.tasks import ListQuery

from . import requests
from .filter_actions import take
from .identity import asked
from .responses import page_response

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(routes.DEAD_LETTERS)
def list_dead_letters() -> Response[str]:
    """Read a page of the tasks that gave up."""
    event, owner = asked(router)
    query = dead_letter_query(requests.query(event))
    scope = query.scope(owner)
    after = None if query.next_token is None else page_tokens.after_of(query.next_token, scope)
    wanted = ListQuery(owner, after, descending=query.order == "desc", limit=query.limit)
    page = composed().task_reader.list(wanted, query.filter)
    return page_response(page.tasks, None if page.after is None else page_tokens.token_of(page.after, scope))


@router.post(routes.REDRIVE)
def redrive_dead_letters() -> Response[str]:
    """Have them tried again."""
    return take(router, RedriveMany)
