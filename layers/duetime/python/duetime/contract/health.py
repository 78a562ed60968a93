"""The API about itself: whether it answers, and its description."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.operation import Operation, Returns


class HealthResponse(TypedDict):
    """The API answers."""

    status: Literal["ok"]
    version: str


HEALTH = Operation(
    "getHealth",
    "GET /v1/health",
    "Ask whether the API answers",
    Returns(HealthResponse, "It does."),
    is_public=True,
)
OPENAPI = Operation(
    "getOpenApi",
    "GET /v1/openapi.json",
    "Describe the API",
    Returns(dict, "This document."),
    is_public=True,
)
