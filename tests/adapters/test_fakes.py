"""Tests that the fakes and the embedded engine respond alike to the same calls."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.sqs import FakeSQS
from duetime_testing.fakes.task_table import new_table
from tests.fakes.calls import Drawn, StoreCalls
from tests.fakes.queue_calls import QueueCalls

if TYPE_CHECKING:
    from tests.adapters.clouds import Cloud

QUICK, SEEDS = 2, 20
"""How many seeds `make test` and `make test-slow` each use to draw calls."""
CALLS = 250
pytestmark = pytest.mark.engine
from_seeds = pytest.mark.parametrize(
    "seed", [*range(QUICK), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, SEEDS))]
)


def outcome(client: Any, call: Drawn) -> Any:  # noqa: ANN401 - whatever it answers
    """Return a call's response without request ids, or the error's code and item if the call failed."""
    try:
        answer = getattr(client, call.operation)(**call.request)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response.get("Item")
    return {name: value for name, value in answer.items() if name not in {"ResponseMetadata", "ConsumedCapacity"}}


@from_seeds
def test_the_dynamodb_fake_responds_like_the_engine(engine_cloud: Cloud, seed: int) -> None:
    """Writes, conditions, updates, reads, pages and hostile requests have the same responses from fake and engine."""
    fake = FakeDynamoDB()
    drawn = StoreCalls(random.Random(seed))  # noqa: S311 - repeatable on purpose
    real_table, fake_table = engine_cloud.table(), new_table(fake)  # type: ignore[arg-type]  # stands in for a client
    for number in range(CALLS):
        call = drawn.draw()
        real = outcome(engine_cloud.dynamodb, call.on(real_table))
        mine = outcome(fake, call.on(fake_table))
        assert call.comparable(mine, fake_table) == call.comparable(real, real_table), (
            f"seed {seed}, call {number}: {call}"
        )


@pytest.mark.slow
@from_seeds
def test_the_sqs_fake_responds_like_the_engine(engine_cloud: Cloud, seed: int) -> None:
    """Sends, receipts, visibility, deletions and hostile batches have the same responses from fake and engine.

    The engine does not implement fair queues; `tests/scenarios/test_fair_keys.py` tests them.
    """
    fake = FakeSQS()
    fake.is_fair = False
    sides = [QueueCalls(client, random.Random(seed)) for client in (engine_cloud.sqs, fake)]  # noqa: S311 - same
    for number in range(CALLS):
        real, mine = (side.next() for side in sides)
        assert mine == real, f"seed {seed}, call {number}"
