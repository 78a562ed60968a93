"""The routes of the tasks that gave up."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition import composed
from duetime.contract import routes, tokens
from duetime.contract.queries import dead_letter_query
from duetime.contract.sweeps import RedriveMany
from duetime.ports.stores import ListQuery

from . import requests
from .identity import asked
from .responses import page_answer
from .sweeps import take

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(routes.DEAD_LETTERS)
def list_dead_letters() -> Response[str]:
    """Read a page of the tasks that gave up."""
    event, owner = asked(router)
    query = dead_letter_query(requests.query(event))
    scope = query.scope(owner)
    after = None if query.next_token is None else tokens.after_of(query.next_token, scope)
    wanted = ListQuery(owner, after, descending=query.order == "desc", limit=query.limit)
    page = composed().reading.list(wanted, query.filter)
    return page_answer(page.tasks, None if page.after is None else tokens.token_of(page.after, scope))


@router.post(routes.REDRIVE)
def redrive_dead_letters() -> Response[str]:
    """Have them tried again."""
    return take(router, RedriveMany)
