"""Handlers for locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.attempts import LockServices
from duetime.contract import locks
from duetime.contract.http import page_tokens
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(locks.LIST)
def list_locks(request: Request[locks.LockListQuery]) -> Response:
    """Read a page of the owner's locks."""
    query, scope = request.query, repr((request.owner, locks.LIST.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found, last = composed(LockServices).admin.list(request.owner, after, query.limit)
    token = None if last is None else page_tokens.text_token(last, scope)
    return answer(json_text(locks.LockPage(locks=[locks.lock_entry(lock) for lock in found], next_token=token)))


@route(locks.READ)
def get_lock(request: Request) -> Response:
    """Read one lock."""
    return answer(json_text(locks.lock_response(*composed(LockServices).admin.get(request.owner, _key(request)))))


@route(locks.RELEASE)
def release_lock(request: Request) -> Response:
    """Release one lock by force."""
    request.reject_body()
    return answer(json_text(locks.lock_entry(composed(LockServices).admin.release(request.owner, _key(request)))))


def _key(request: Request) -> str:
    return locks.lock_key(request.parameters["key"])
