"""The API about itself: whether it answers, and its description."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.operation import Operation, Returns


class HealthResponse(TypedDict):
    """The API answers."""

    status: Literal["ok"]
    version: str


class ApiLinks(TypedDict):
    """Where to go on from here."""

    openapi: str
    health: str


class ApiIndex(TypedDict):
    """What this is, and where it is described."""

    name: Literal["duetime"]
    version: str
    documentation: str
    links: ApiLinks


INDEX = Operation(
    "getApiIndex",
    "GET /v1",
    "Find the description of the API",
    Returns(ApiIndex, "Links to the OpenAPI document and the health check, and which page explains the API."),
    is_public=True,
)
HEALTH = Operation(
    "getHealth",
    "GET /v1/health",
    "Ask whether the API answers",
    Returns(HealthResponse, "It does."),
    is_public=True,
)
OPENAPI = Operation(
    "getOpenApiDocument",
    "GET /v1/openapi.json",
    "Describe the API",
    Returns(dict, "This document."),
    is_public=True,
)
