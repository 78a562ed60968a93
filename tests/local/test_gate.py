"""The throttle of a stage, as the local stack keeps it."""

from __future__ import annotations

import asyncio

import pytest

from local.emulator.gate import REFUSAL, Bucket, gated, throttle_of

API, STAGE = "api", "$default"
ANSWER: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    """Of ten requests at once five pass, and two more for each second that goes by, five at most."""
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
def test_a_stage_tells_its_throttle(settings: object, throttle: object) -> None:
    """However it was set: by CloudFormation, by the API, or not at all."""
    assert throttle_of({"defaultRouteSettings": settings}) == throttle


def test_whoever_comes_beyond_the_throttle_is_refused_and_not_executed() -> None:
    """Each stage by itself: a narrow one is used up, the one beside it is not."""
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
