"""Authentication with a token from an identity provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from duetime_client.errors import CredentialsMissing
from duetime_client.session import sendable

if TYPE_CHECKING:
    from collections.abc import Generator


class BearerToken(httpx.Auth):
    """Sends a token from the deployment's identity provider.

    Raises:
        CredentialsMissing: The token is empty.
    """

    def __init__(self, token: str) -> None:
        # An unset environment variable results in an empty token.
        if not token or token.isspace():
            raise CredentialsMissing("the bearer token is empty; BearerToken needs the token of the identity provider")
        self._headers = sendable({"Authorization": f"Bearer {token}"})

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Add the token to a request."""
        request.headers.update(self._headers)
        yield request
