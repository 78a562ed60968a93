"""The routes about the API itself."""

from __future__ import annotations

from functools import cache

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.contract.http.routes import HEALTH, OPENAPI
from duetime.contract.http.version import CONTRACT_VERSION
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query
from duetime.contract.tasks.responses import HealthResponse

from . import requests
from .responses import answer

_OPENAPI_CACHED = {"Cache-Control": "public, max-age=300"}

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(HEALTH)
def get_health() -> Response[str]:
    """Say that the API answers."""
    no_query(requests.query(router.current_event.raw_event))
    return answer(json_text(HealthResponse(status="ok", version=CONTRACT_VERSION)))


@router.get(OPENAPI)
def get_openapi() -> Response[str]:
    """Describe the API."""
    no_query(requests.query(router.current_event.raw_event))
    return answer(_document(), headers=_OPENAPI_CACHED)


@cache
def _document() -> str:
    # Imported and built when it is asked for: no task should wait for it.
    from duetime.contract.http.openapi import document  # noqa: PLC0415 - see the line above

    return json_text(document())
