"""The API's health, entry point and description."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Returns


class HealthResponse(TypedDict):
    """The API is available."""

    status: Annotated[Literal["ok"], Field(description="Always `ok`.")]
    version: Annotated[str, Field(description="Version of the API.")]


class ApiLinks(TypedDict):
    """Links to other parts of the API, as relative references (RFC 3986) that work behind any path prefix."""

    openapi: Annotated[str, Field(description="The OpenAPI document, relative to the URL of the request.")]
    health: Annotated[str, Field(description="The health check, relative to the URL of the request.")]


class ApiIndex(TypedDict):
    """The entry point of the API."""

    name: Annotated[Literal["duetime"], Field(description="Name of the API.")]
    version: Annotated[str, Field(description="Version of the API.")]
    documentation: Annotated[str, Field(description="URL of the documentation.")]
    links: ApiLinks


INDEX = Operation(
    "getApiIndex",
    "GET /v1",
    "Get the entry point of the API",
    Returns(ApiIndex, "Links to the OpenAPI document, the health check and the documentation."),
    description="Needs no credentials.",
    is_public=True,
)
HEALTH = Operation(
    "getHealth",
    "GET /v1/health",
    "Check whether the API is available",
    Returns(HealthResponse, "The API is available."),
    description="Needs no credentials.",
    is_public=True,
)
OPENAPI = Operation(
    "getOpenApiDocument",
    "GET /v1/openapi.json",
    "Get the OpenAPI document",
    Returns(dict, "This document."),
    description="Needs no credentials.",
    is_public=True,
)
