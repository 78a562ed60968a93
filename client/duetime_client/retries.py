"""When and how often requests are retried."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime_client.errors import ApiError, ClientError, RateLimited, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

PASSING = frozenset(
    {
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Temporary errors after which the request may or may not have taken effect."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is retried, and how long the pauses are."""

    attempts: int = 4
    initial_seconds: float = 0.2
    max_seconds: float = 10.0
    patience_seconds: float = 60.0
    """Longest `Retry-After`, in seconds, for which the client waits; longer waits are left to the caller."""

    def allows(self, error: ClientError, attempts: int, *, repeatable: bool) -> bool:
        """Whether to retry after a number of attempts, given the last error."""
        if attempts >= self.attempts:
            return False
        if isinstance(error, ApiError) and (error.retry_after or 0) > self.patience_seconds:
            return False
        return is_safe_again(error, repeatable=repeatable)

    def wait_seconds(self, error: ClientError, attempts: int, random_source: Callable[[], float]) -> float:
        """Seconds to wait after a number of attempts: the API's `Retry-After` plus backoff with full jitter."""
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        backoff = min(self.max_seconds, self.initial_seconds * 2.0 ** (attempts - 1))
        return (retry_after or 0.0) + backoff * random_source()


def is_safe_again(error: ClientError, *, repeatable: bool) -> bool:
    """Whether a retry is safe, because the request cannot take effect twice.

    Args:
        error: How the last attempt ended.
        repeatable: Whether the request is idempotent (a GET, or one with a key).
    """
    if isinstance(error, Unreachable):
        return repeatable or not error.sent
    if isinstance(error, RateLimited):
        return True
    if not isinstance(error, ApiError) or error.status not in PASSING:
        return False
    # A 503 with Retry-After rejects the request; without it, a gateway may have lost the response.
    rejected = error.status == HTTPStatus.SERVICE_UNAVAILABLE and error.retry_after is not None
    return repeatable or rejected
