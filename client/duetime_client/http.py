"""HTTP with httpx, which is imported with the first client because the import is slow."""

from __future__ import annotations

import ssl
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import httpx

from duetime_client.errors import AddressInvalid, Unreachable
from duetime_client.session import LOOPBACK, sendable

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECT_SECONDS = 5.0
KEY_PREFIX = "/key"
"""Path prefix of requests with an API key, which the gateway authorizes differently."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def http_options(url: str, headers: Mapping[str, str], timeout: float | httpx.Timeout) -> dict[str, Any]:
    """The httpx options that both clients share."""
    if not isinstance(timeout, httpx.Timeout):
        timeout = httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    parsed = httpx.URL(url)
    is_local = parsed.host in LOOPBACK
    return {
        "headers": {"User-Agent": _user_agent(), **sendable(headers)},
        "timeout": timeout,
        "trust_env": not is_local,
        "verify": _no_certificates() if is_local and parsed.scheme == "http" else _certificates(trust_env=not is_local),
    }


@cache
def _user_agent() -> str:
    """Return the client's name and version, or only the name in the worker function's layers, which lack metadata."""
    try:
        return f"duetime-client/{version('duetime-client')}"
    except PackageNotFoundError:
        return "duetime-client"


@cache
def _certificates(*, trust_env: bool) -> ssl.SSLContext:
    """Load the trusted certificate authorities, which all clients share because loading them is slow."""
    return httpx.create_ssl_context(trust_env=trust_env)


@cache
def _no_certificates() -> ssl.SSLContext:
    """A TLS context without trusted certificates, for clients that never use TLS."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def unreachable(url: str, error: httpx.RequestError) -> Unreachable:
    """The error for a request that got no response."""
    reason = str(error) or type(error).__name__
    return Unreachable(url, reason, sent=not isinstance(error, _NEVER_SENT))


def authorized(url: str, auth: httpx.Auth | None, api_key: str | None) -> tuple[str, httpx.Auth | None]:
    """Return the address and authentication of requests; requests with an API key use a separate path prefix.

    Args:
        url: The address of the API, without a trailing slash.
        auth: How requests are authenticated without a key.
        api_key: The key.

    Raises:
        CredentialsMissing: The key is empty.
        ValueError: Both `auth` and `api_key` are given.
    """
    if api_key is None:
        return url, auth
    if auth is not None:
        raise ValueError("give either auth or api_key")
    from duetime_client.bearer_token import BearerToken  # noqa: PLC0415 - most deployments use other credentials

    return f"{url}{KEY_PREFIX}", BearerToken(api_key)


def checked(url: str) -> str:
    """The address without its trailing slash, if it is a valid http or https URL."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise AddressInvalid(url) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.query or parsed.fragment:
        raise AddressInvalid(url)
    return url.rstrip("/")
