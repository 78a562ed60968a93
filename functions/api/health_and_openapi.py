"""Handlers for the API's health and its descriptions."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.contract import health_and_openapi
from duetime.contract.http.operation import CONTRACT_VERSION
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request

_DOCUMENTATION = "docs/reference/api.md in the source of this deployment"
_OPENAPI_CACHED = {"Cache-Control": "public, max-age=300"}


@route(health_and_openapi.INDEX)
def get_index(request: Request) -> Response:
    """Return links to the API's descriptions."""
    openapi, health = (request.reference_to(each) for each in (health_and_openapi.OPENAPI, health_and_openapi.HEALTH))
    links = health_and_openapi.ApiLinks(openapi=openapi, health=health)
    index = health_and_openapi.ApiIndex(
        name="duetime", version=CONTRACT_VERSION, documentation=_DOCUMENTATION, links=links
    )
    return answer(json_text(index))


@route(health_and_openapi.HEALTH)
def get_health(request: Request) -> Response:  # noqa: ARG001 - no parameters
    """Report that the API is up."""
    return answer(json_text(health_and_openapi.HealthResponse(status="ok", version=CONTRACT_VERSION)))


@route(health_and_openapi.OPENAPI)
def get_openapi(request: Request) -> Response:  # noqa: ARG001 - no parameters
    """Return the OpenAPI document."""
    return answer(_document(), headers=_OPENAPI_CACHED)


@cache
def _document() -> str:
    # The document is imported and built on request, so that requests for tasks do not wait for the import.
    from duetime.contract.openapi.document import document  # noqa: PLC0415 - see the line above

    settings = composed().settings
    return json_text(document(settings.authentication.value, keys=settings.accepts_api_keys))
