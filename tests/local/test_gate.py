"""Tests the throttle that the local stack applies to an API's stage."""

from __future__ import annotations

import asyncio

import pytest

from duetime_local.emulator.http_throttle import BUSY, REFUSAL, Bucket, gated, limited, throttle_of

API, STAGE = "api", "$default"
ANSWER: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")


def test_a_token_bucket_allows_a_burst_and_then_its_rate() -> None:
    """With a burst of five and a rate of two, five of ten requests pass at once, and two more after a second."""
    bucket = Bucket()
    assert sum(bucket.admits(2, 5, now=100.0) for _ in range(10)) == 5
    assert sum(bucket.admits(2, 5, now=101.0) for _ in range(10)) == 2
    assert sum(bucket.admits(2, 5, now=161.0) for _ in range(10)) == 5


@pytest.mark.parametrize(
    ("settings", "throttle"),
    [
        ({"ThrottlingRateLimit": 50, "ThrottlingBurstLimit": 100}, (50, 100)),
        ({"throttlingRateLimit": 0.5, "throttlingBurstLimit": 1}, (0.5, 1)),
        ({"ThrottlingRateLimit": 50}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_throttle_of_a_stage_is_read(settings: object, throttle: object) -> None:
    """A throttle that CloudFormation or the API has set is read; without a throttle, the result is `None`."""
    assert throttle_of({"defaultRouteSettings": settings}) == throttle


def test_requests_above_the_throttle_are_rejected_and_not_executed() -> None:
    """Each stage is throttled separately, and refused requests are not executed."""
    executed: list[str] = []

    async def execute(api_id: str, *_: object) -> tuple[int, dict[str, str], bytes]:
        executed.append(api_id)
        return ANSWER

    narrow = {"defaultRouteSettings": {"ThrottlingRateLimit": 0.001, "ThrottlingBurstLimit": 2}}
    gate = gated(execute, lambda api_id, _stage: narrow if api_id == API else {})

    async def calls() -> list[object]:
        return [await gate(name, STAGE, "/v1/tasks") for name in (API, API, API, "other", "other", "other")]

    assert asyncio.run(calls()) == [ANSWER, ANSWER, REFUSAL, ANSWER, ANSWER, ANSWER]
    assert executed == [API, API, "other", "other", "other"]


class Upstream:
    """Requests that run until the test ends them."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.most = self.running = 0
        self.ends: dict[str, asyncio.Event] = {}

    async def execute(self, name: str, *_: object) -> tuple[int, dict[str, str], bytes]:
        """Execute a request for as long as the test wants."""
        self.begun.append(name)
        self.running += 1
        self.most = max(self.most, self.running)
        await self.ends.setdefault(name, asyncio.Event()).wait()
        self.running -= 1
        return 200, {}, name.encode()


async def _settled() -> None:
    """Let every asyncio task run until it has to wait."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_burst_is_executed_in_order_with_limited_concurrency() -> None:
    """If eighty requests arrive at once, they are executed in order, three at a time, and each gets its response."""

    async def burst() -> tuple[Upstream, list[object]]:
        upstream = Upstream()
        gate = limited(upstream.execute, concurrency=3, first=3)
        names = [f"{number:02}" for number in range(80)]
        calls = [asyncio.ensure_future(gate(name)) for name in names]
        for name in names:
            await _settled()
            upstream.ends[name].set()
        return upstream, [await call for call in calls]

    upstream, answers = asyncio.run(burst())
    assert upstream.most == 3
    assert upstream.begun == sorted(upstream.begun)
    assert answers == [(200, {}, f"{number:02}".encode()) for number in range(80)]


def test_requests_beyond_the_waiting_limit_get_503_at_once() -> None:
    """While one request is executed and two are waiting, three more requests get 503; the first three are served."""

    async def burst() -> list[object]:
        upstream = Upstream()
        gate = limited(upstream.execute, concurrency=1, most_waiting=2)
        calls = [asyncio.ensure_future(gate(name)) for name in "abcdef"]
        await _settled()
        assert [call.done() for call in calls] == [False, False, False, True, True, True]
        for name in "abc":
            upstream.ends.setdefault(name, asyncio.Event()).set()
        return [await call for call in calls]

    served: list[object] = [(200, {}, name) for name in (b"a", b"b", b"c")]
    assert asyncio.run(burst()) == [*served, BUSY, BUSY, BUSY]


def test_a_request_that_waited_too_long_gets_503_and_is_not_executed() -> None:
    """A request that has waited too long gets 503 and is never executed, and the next request is executed."""

    async def burst() -> tuple[list[str], list[object]]:
        upstream = Upstream()
        gate = limited(upstream.execute, concurrency=1, patience=0)
        first = asyncio.ensure_future(gate("first"))
        await _settled()
        second = await gate("second")
        upstream.ends["first"].set()
        answers = [await first, second]
        upstream.ends["third"] = asyncio.Event()
        upstream.ends["third"].set()
        return upstream.begun, [*answers, await gate("third")]

    begun, answers = asyncio.run(burst())
    assert begun == ["first", "third"]
    assert answers == [(200, {}, b"first"), BUSY, (200, {}, b"third")]


def test_the_concurrency_increases_with_each_completed_request() -> None:
    """At first, one request is executed at a time, and each completed request raises the limit by one, up to three."""

    async def burst() -> list[int]:
        upstream = Upstream()
        gate = limited(upstream.execute, concurrency=3, first=1)
        calls = [asyncio.ensure_future(gate(name)) for name in "abcdefgh"]
        running = []
        for name in "abcdef":
            await _settled()
            running.append(upstream.running)
            upstream.ends[name].set()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return running

    assert asyncio.run(burst()) == [1, 2, 3, 3, 3, 3]


def test_a_failed_request_does_not_block_the_next_request() -> None:
    """An error from the emulator is raised again, and the next request is executed."""

    async def burst() -> object:
        async def execute(name: str) -> tuple[int, dict[str, str], bytes]:
            if name == "broken":
                raise ValueError(name)
            return ANSWER

        gate = limited(execute, concurrency=1)
        with pytest.raises(ValueError, match="broken"):
            await gate("broken")
        return await gate("sound")

    assert asyncio.run(burst()) == ANSWER
