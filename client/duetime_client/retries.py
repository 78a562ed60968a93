"""When a request is sent again, and after how long."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime_client.errors import ApiError, ClientError, Throttled, Unreachable

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
"""Statuses that may pass by themselves, but leave open whether the request was carried out."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how patiently a request is sent again."""

    attempts: int = 4
    initial_seconds: float = 0.2
    max_seconds: float = 10.0
    patience_seconds: float = 60.0
    """A `Retry-After` beyond this is the caller's to wait for."""

    def allows(self, error: ClientError, attempts: int, *, repeatable: bool) -> bool:
        """Whether to send again after so many attempts, the last of which ended in this error."""
        if attempts >= self.attempts:
            return False
        if isinstance(error, ApiError) and (error.retry_after or 0) > self.patience_seconds:
            return False
        return is_safe_again(error, repeatable=repeatable)

    def wait_seconds(self, error: ClientError, attempts: int, random_source: Callable[[], float]) -> float:
        """How long to wait after so many attempts: what the API asks for, plus backoff with full jitter."""
        asked = error.retry_after if isinstance(error, ApiError) else None
        backoff = min(self.max_seconds, self.initial_seconds * 2.0 ** (attempts - 1))
        return (asked or 0.0) + backoff * random_source()


def is_safe_again(error: ClientError, *, repeatable: bool) -> bool:
    """Whether sending again cannot do the same thing twice.

    Args:
        error: How the last attempt ended.
        repeatable: Whether the request does the same however often it arrives (a GET, or one with a key).
    """
    if isinstance(error, Unreachable):
        return repeatable or not error.sent
    if isinstance(error, Throttled):
        return True
    if not isinstance(error, ApiError) or error.status not in PASSING:
        return False
    # A 503 with Retry-After refuses the request; without one a gateway may have lost the answer to it.
    refused = error.status == HTTPStatus.SERVICE_UNAVAILABLE and error.retry_after is not None
    return repeatable or refused
