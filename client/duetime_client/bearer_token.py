"""Authentication by a token of an identity provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from duetime_client.session import sendable

if TYPE_CHECKING:
    from collections.abc import Generator


class BearerToken(httpx.Auth):
    """Sends a token of the deployment's identity provider."""

    def __init__(self, token: str) -> None:
        self._headers = sendable({"Authorization": f"Bearer {token}"})

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Add the token to a request."""
        request.headers.update(self._headers)
        yield request
