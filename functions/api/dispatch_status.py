"""Handler for the progress of dispatching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import DispatchStatusServices
from duetime.contract.dispatch_status import GET, dispatch_response
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(GET)
def get_dispatch_status(request: Request) -> Response:  # noqa: ARG001 - no parameters
    """Read the progress of dispatching; only operators may call this operation."""
    found = composed(DispatchStatusServices).reader.read()
    return answer(json_text(dispatch_response(found)))
