"""The routes that cancel and change tasks by a filter."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition import composed
from duetime.contract import routes
from duetime.contract.decoding import change_of
from duetime.contract.encoding import json_text
from duetime.contract.queries import no_query
from duetime.contract.refusals import Fault, FieldsInvalid
from duetime.contract.sweeps import CancelMany, ChangeMany, read_sweep, scope_of, sweep_of, swept_answer
from duetime.domain.errors import FieldInvalid

from . import requests
from .identity import asked
from .responses import answer

_CHANGE = "change"
_WRAPPED = 1
"""Levels of nesting that a body puts around what is changed."""

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(routes.CANCEL_MANY)
def cancel_tasks() -> Response[str]:
    """Cancel a piece of what a filter means."""
    event, owner = asked(router)
    no_query(requests.query(event))
    body = read_sweep(CancelMany, requests.body(event))
    scope = scope_of(body, owner)
    swept = composed().sweeping.cancel(owner, sweep_of(body, scope), force=body.force)
    return answer(json_text(swept_answer(swept, scope)))


@router.post(routes.CHANGE_MANY)
def change_tasks() -> Response[str]:
    """Change a piece of what a filter means."""
    event, owner = asked(router)
    no_query(requests.query(event))
    body = read_sweep(ChangeMany, requests.body(event, wrapped=_WRAPPED))
    scope = scope_of(body, owner)
    change = change_of(body.change, (_CHANGE,))
    try:
        swept = composed().sweeping.change(owner, sweep_of(body, scope), change)
    except FieldInvalid as refusal:
        raise FieldsInvalid([Fault(f"{_CHANGE}.{refusal.field}", refusal.reason)]) from None
    return answer(json_text(swept_answer(swept, scope)))
