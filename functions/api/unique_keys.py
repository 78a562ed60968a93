"""Handlers for unique keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import LimitServices
from duetime.contract import unique_keys
from duetime.contract.http import page_tokens
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(unique_keys.LIST)
def list_unique_keys(request: Request[unique_keys.UniqueKeyListQuery]) -> Response:
    """Read a page of the unique keys that the owner's tasks hold."""
    query, scope = request.query, repr((request.owner, unique_keys.LIST.path))
    after = None if query.next_token is None else page_tokens.after_of(query.next_token, scope)
    holders, last = composed(LimitServices).unique_keys.list(request.owner, after, query.limit)
    token = None if last is None else page_tokens.token_of(last, scope)
    found = [unique_keys.key_response(task) for task in holders]
    return answer(json_text(unique_keys.UniqueKeyPage(unique_keys=found, next_token=token)))


@route(unique_keys.READ)
def get_unique_key(request: Request) -> Response:
    """Read the task that holds a unique key."""
    key = unique_keys.unique_key(request.parameters["unique_key"])
    return answer(json_text(unique_keys.key_response(composed(LimitServices).unique_keys.holder(request.owner, key))))
