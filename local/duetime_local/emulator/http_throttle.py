"""Two things that the HTTP APIs of the embedded AWS leave out: a stage's throttle, and a limit of concurrency.

API Gateway keeps a stage to its rate and burst by a token bucket, and answers whoever comes beyond it 429, without
a `Retry-After`. MiniStack 1.5.33 keeps the settings and does nothing by them.

In AWS each concurrent invocation has a machine of its own. Here it is a process of 110 MB that takes a second of a core
to start: a burst of clients would start one for each, and none of them would come to anything. So few requests are
executed at a time, others wait in the order in which they came, and whoever cannot be served soon is answered 503, as
API Gateway does when a function is throttled.

Run by the emulator's own Python, so it imports the standard library and the emulator only.

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
"""Requests of all HTTP APIs that are executed at a time: the processes of their functions."""
FIRST_CONCURRENCY = 2
"""How many of them at first: each answer allows one more, so that few processes start at once."""
MOST_WAITING = 500
"""Requests that may wait for their turn."""
PATIENCE_SECONDS = 20.0
"""How long a request waits for its turn: API Gateway gives up after thirty seconds in all."""
BUSY: Answer = (
    503,
    {"Content-Type": "application/json", "Retry-After": "1"},
    b'{"message":"Service Unavailable"}',
)
REFUSAL: Answer = (429, {"Content-Type": "application/json"}, b'{"message":"Too Many Requests"}')


class Bucket:
    """Tokens that come back at a rate, up to a burst; it starts full."""

    def __init__(self) -> None:
        self._tokens = float("inf")
        self._seen = 0.0

    def admits(self, rate: float, burst: float, now: float) -> bool:
        """Take one token, if one is there.

        Args:
            rate: tokens that come back in a second.
            burst: tokens that it holds at most.
            now: in seconds, on a clock that never goes back.
        """
        self._tokens = min(burst, self._tokens + (now - self._seen) * rate)
        self._seen = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def throttle_of(stage: Mapping[str, Any]) -> tuple[float, float] | None:
    """Rate and burst of a stage, if it has both; CloudFormation spells them with a capital, the API without."""
    settings = {name.lower(): value for name, value in (stage.get("defaultRouteSettings") or {}).items()}
    rate, burst = settings.get("throttlingratelimit"), settings.get("throttlingburstlimit")
    return None if rate is None or burst is None else (float(rate), float(burst))


def gated(
    execute: Callable[..., Awaitable[Answer]], stage_of: Callable[[str, str], Mapping[str, Any]]
) -> Callable[..., Awaitable[Answer]]:
    """What executes requests of an API, kept to the throttle of the API's stage."""
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
    """What executes requests, only so many at a time.

    Args:
        execute: executes one.
        concurrency: most that are executed at a time.
        first: how many at first; each one that has ended allows one more.
        most_waiting: most that wait for their turn; whoever comes beyond them is refused at once.
        patience: for how many seconds one waits before it is refused.
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
