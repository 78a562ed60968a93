"""Handlers for API keys."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import ApiKeyServices
from duetime.contract import api_keys
from duetime.contract.http import page_tokens
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(api_keys.CREATE)
def create_api_key(request: Request) -> Response:
    """Create a key."""
    now = composed().runtime.now()
    wanted = api_keys.new_api_key(request.document(), now)
    key, text = composed(ApiKeyServices).admin.create(request.caller, wanted)
    return answer(json_text(api_keys.created_api_key(key, text, now)), HTTPStatus.CREATED)


@route(api_keys.LIST)
def list_api_keys(request: Request[api_keys.ApiKeyListQuery]) -> Response:
    """Read a page of keys."""
    query, scope, now = request.query, api_keys.LIST.path, composed().runtime.now()
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found, last = composed(ApiKeyServices).admin.list(after, query.limit)
    token = None if last is None else page_tokens.text_token(last, scope)
    keys = [api_keys.api_key_response(each, now) for each in found]
    return answer(json_text(api_keys.ApiKeyPage(keys=keys, next_token=token)))


@route(api_keys.REVOKE)
def revoke_api_key(request: Request) -> Response:
    """Revoke a key."""
    key = composed(ApiKeyServices).admin.revoke(request.parameters["key_id"])
    return answer(json_text(api_keys.api_key_response(key, composed().runtime.now())))
