"""Handler for the secrets that sign HTTP calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.http_calls import HttpServices
from duetime.contract.signing_secrets import LIST, signing_secrets_response
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(LIST)
def list_signing_secrets(request: Request) -> Response:
    """List the secrets of the caller."""
    secrets = composed(HttpServices).secrets_of(request.owner)
    return answer(json_text(signing_secrets_response(secrets)))
