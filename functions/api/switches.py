"""The routes of switches."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import routes
from duetime.contract.switches import switch_key, switch_of, switch_response, switches_response
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query

from . import requests
from .identity import asked
from .responses import answer

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(routes.SWITCHES)
def list_switches() -> Response[str]:
    """Read what is held back."""
    event, caller = asked(router)
    no_query(requests.query(event))
    return answer(json_text(switches_response(*composed().switch_admin.list(caller))))


@router.put(routes.SWITCHES)
def put_switch() -> Response[str]:
    """Set a switch."""
    event, caller = asked(router)
    no_query(requests.query(event))
    switch = switch_of(requests.body(event))
    return answer(json_text(switch_response(composed().switch_admin.put(caller, switch))))


@router.delete(routes.SWITCHES)
def remove_switch() -> Response[str]:
    """Lift a switch."""
    event, caller = asked(router)
    key = switch_key(requests.query(event))
    requests.no_body(event)
    return answer(json_text(switch_response(composed().switch_admin.remove(caller, key))))
