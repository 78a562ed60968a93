"""Handlers for switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.attempts import SwitchServices
from duetime.contract import switches
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(switches.LIST)
def list_switches(request: Request) -> Response:
    """List the switches and open circuits, which postpone tasks."""
    return answer(json_text(switches.switches_response(*composed(SwitchServices).admin.list(request.caller))))


@route(switches.READ)
def get_switch(request: Request) -> Response:
    """Read one switch."""
    switch = composed(SwitchServices).admin.get(request.caller, switches.switch_key(request.parameters))
    return answer(json_text(switches.switch_response(switch)))


@route(switches.PUT)
def put_switch(request: Request) -> Response:
    """Set a switch."""
    wanted = switches.switch_of(switches.switch_key(request.parameters), request.document())
    switch = composed(SwitchServices).admin.put(request.caller, wanted)
    return answer(json_text(switches.switch_response(switch)))


@route(switches.DELETE)
def delete_switch(request: Request) -> Response:
    """Delete a switch."""
    request.reject_body()
    switch = composed(SwitchServices).admin.delete(request.caller, switches.switch_key(request.parameters))
    return answer(json_text(switches.switch_response(switch)))
