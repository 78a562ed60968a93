"""Handlers for rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import LimitServices
from duetime.contract import rates
from duetime.contract.http import page_tokens
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.domain.rates import RateStatus

    from .requests import Request


@route(rates.LIST)
def list_rates(request: Request[rates.RateListQuery]) -> Response:
    """Read a page of the owner's rates."""
    query, scope = request.query, repr((request.owner, rates.LIST.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found, last = composed(LimitServices).rates.list(request.owner, after, query.limit)
    token = None if last is None else page_tokens.text_token(last, scope)
    return answer(json_text(rates.RatePage(rates=[rates.rate_entry(each) for each in found], next_token=token)))


@route(rates.READ)
def get_rate(request: Request) -> Response:
    """Read one rate and the tasks in its queue."""
    return answer(json_text(rates.rate_response(*composed(LimitServices).rates.get(request.owner, _key(request)))))


@route(rates.PIN)
def pin_rate(request: Request) -> Response:
    """Set the limit that applies to a rate."""
    rate, reason = rates.pinned_rate(_key(request), request.document())
    return _answer(composed(LimitServices).rates.pin(request.owner, rate, request.attributed(reason)))


@route(rates.UNPIN)
def unpin_rate(request: Request) -> Response:
    """Let the limits that tasks request apply to a rate again."""
    request.reject_body()
    return _answer(composed(LimitServices).rates.unpin(request.owner, _key(request), request.attributed("")))


@route(rates.PAUSE)
def pause_rate(request: Request) -> Response:
    """Stop attempts from starting under a rate."""
    # Only the audit log keeps the reason; reading it here rejects a body with other fields.
    _ = request.attribution
    return _answer(composed(LimitServices).rates.pause(request.owner, _key(request)))


@route(rates.RESUME)
def resume_rate(request: Request) -> Response:
    """Let attempts start again under a paused rate."""
    return _answer(composed(LimitServices).rates.resume(request.owner, _key(request), request.attribution))


@route(rates.RESET)
def reset_rate(request: Request) -> Response:
    """Reset a rate's count of starts and its queue."""
    return _answer(composed(LimitServices).rates.reset(request.owner, _key(request), request.attribution))


def _answer(status: RateStatus) -> Response:
    return answer(json_text(rates.rate_entry(status)))


def _key(request: Request) -> str:
    return rates.rate_key(request.parameters["key"])
