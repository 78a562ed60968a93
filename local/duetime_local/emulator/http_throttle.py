"""Adds stage throttling and a concurrency limit to the HTTP APIs of the embedded AWS.

API Gateway limits a stage's rate and burst with a token bucket, and rejects excess requests with 429, without a
`Retry-After` header. MiniStack 1.5.33 stores the settings but does not apply them.

In AWS, each concurrent invocation has its own machine. In the embedded AWS, each concurrent invocation needs a process
with 110 MB, which takes a second of CPU time to start, so a burst of requests would start many processes that slow each
other down. Therefore, only a few requests are executed at a time, and other requests wait in order of arrival. Requests
that wait too long get the status 503, which API Gateway also returns when a function is throttled.

The emulator's own Python runs this module, so it imports only the standard library and the emulator.

Source: API Gateway Developer Guide, "Throttle requests to your HTTP APIs for better throughput in API Gateway".
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Answer = tuple[int, dict[str, str], bytes]

CONCURRENCY = 12
"""The maximum number of concurrent requests to all HTTP APIs, which is also the maximum number of processes for their
functions."""
FIRST_CONCURRENCY = 2
"""The initial concurrency limit; each completed request raises the limit by one, so that few processes start at
once."""
MOST_WAITING = 500
"""The maximum number of waiting requests."""
PATIENCE_SECONDS = 20.0
"""The longest time that a request waits, in seconds; API Gateway times out after 30 seconds in total."""
BUSY: Answer = (
    503,
    {"Content-Type": "application/json", "Retry-After": "1"},
    b'{"message":"Service Unavailable"}',
)
REFUSAL: Answer = (429, {"Content-Type": "application/json"}, b'{"message":"Too Many Requests"}')


class Bucket:
    """A token bucket that starts full."""

    def __init__(self) -> None:
        self._tokens = float("inf")
        self._seen = 0.0

    def admits(self, rate: float, burst: float, now: float) -> bool:
        """Take one token if available, and return whether a token was taken.

        Args:
            rate: tokens added per second.
            burst: capacity in tokens.
            now: current time of a monotonic clock, in seconds.
        """
        self._tokens = min(burst, self._tokens + (now - self._seen) * rate)
        self._seen = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def throttle_of(stage: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return a stage's rate and burst limits if both are set.

    CloudFormation capitalizes the names of the settings, but the API does not.
    """
    settings = {name.lower(): value for name, value in (stage.get("defaultRouteSettings") or {}).items()}
    rate, burst = settings.get("throttlingratelimit"), settings.get("throttlingburstlimit")
    return None if rate is None or burst is None else (float(rate), float(burst))


def gated(
    execute: Callable[..., Awaitable[Answer]], stage_of: Callable[[str, str], Mapping[str, Any]]
) -> Callable[..., Awaitable[Answer]]:
    """Wrap the execution of API requests with the throttle of the API's stage; excess requests get 429."""
    buckets: dict[tuple[str, str], Bucket] = {}

    async def execute_or_reject(api_id: str, stage: str, *rest: object) -> Answer:
        throttle = throttle_of(stage_of(api_id, stage))
        bucket = buckets.setdefault((api_id, stage), Bucket())
        if throttle is not None and not bucket.admits(*throttle, time.monotonic()):
            return REFUSAL
        return await execute(api_id, stage, *rest)

    return execute_or_reject


def limited(
    execute: Callable[..., Awaitable[Answer]],
    concurrency: int = CONCURRENCY,
    first: int = FIRST_CONCURRENCY,
    most_waiting: int = MOST_WAITING,
    patience: float = PATIENCE_SECONDS,
) -> Callable[..., Awaitable[Answer]]:
    """Wrap the execution of requests with a concurrency limit.

    Args:
        execute: executes a request.
        concurrency: maximum number of requests that are executed at a time.
        first: initial limit; each completed request raises the limit by one.
        most_waiting: maximum number of waiting requests; additional requests are rejected at once.
        patience: seconds that a request waits before it is rejected.
    """
    allowed = min(first, concurrency)
    turns = asyncio.Semaphore(allowed)
    waiting = 0

    async def execute_in_turn(*request: object) -> Answer:
        nonlocal allowed, waiting
        if turns.locked():
            if waiting >= most_waiting:
                return BUSY
            waiting += 1
            try:
                await asyncio.wait_for(turns.acquire(), patience)
            except TimeoutError:
                return BUSY
            finally:
                waiting -= 1
        else:
            await turns.acquire()
        try:
            return await execute(*request)
        finally:
            turns.release()
            if allowed < concurrency:
                allowed += 1
                turns.release()

    return execute_in_turn
