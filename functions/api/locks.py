"""The routes of locks."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import page_tokens, routes
from duetime.contract.locks import LockPage, lock_entry, lock_key, lock_list_query, lock_response
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query

from . import requests
from .identity import asked
from .responses import answer

_LOCK = requests.pattern(routes.LOCK)

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(routes.LOCKS)
def list_locks() -> Response[str]:
    """Read a page of one's locks."""
    event, owner = asked(router)
    query = lock_list_query(requests.query(event))
    scope = repr((owner, routes.LOCKS))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    locks, last = composed().lock_admin.list(owner, after, query.limit)
    token = None if last is None else page_tokens.text_token(last, scope)
    return answer(json_text(LockPage(locks=[lock_entry(lock) for lock in locks], next_token=token)))


@router.get(_LOCK)
def get_lock(key: str) -> Response[str]:
    """Read one lock."""
    event, owner = asked(router)
    no_query(requests.query(event))
    return answer(json_text(lock_response(*composed().lock_admin.get(owner, lock_key(key)))))


@router.delete(_LOCK)
def free_lock(key: str) -> Response[str]:
    """Free one lock by force."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    return answer(json_text(lock_entry(composed().lock_admin.free(owner, lock_key(key)))))
