"""Handlers for ordered keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import LimitServices
from duetime.contract import ordered_keys
from duetime.contract.http import page_tokens
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(ordered_keys.LIST)
def list_ordered_keys(request: Request[ordered_keys.OrderedKeyListQuery]) -> Response:
    """Read a page of the owner's ordered keys."""
    query, scope = request.query, repr((request.owner, ordered_keys.LIST.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found, last = composed(LimitServices).ordered_keys.list(request.owner, after, query.limit)
    token = None if last is None else page_tokens.text_token(last, scope)
    keys = [ordered_keys.key_summary(each) for each in found]
    return answer(json_text(ordered_keys.OrderedKeyPage(ordered_keys=keys, next_token=token)))


@route(ordered_keys.READ)
def get_ordered_key(request: Request) -> Response:
    """Read one ordered key and the tasks in its queue."""
    key = ordered_keys.ordered_key(request.parameters["ordered_key"])
    return answer(json_text(ordered_keys.key_response(composed(LimitServices).ordered_keys.get(request.owner, key))))
