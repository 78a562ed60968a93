"""Tests operations that have exactly one winner, with sixteen threads that compete repeatedly on an atomic engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb.keys import DynamoKeyStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore
from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.dispatch.cursors import Cursors
from duetime.domain.dispatch.enqueue_plan import Entry
from duetime.domain.tasks.attempt_run import Claimant
from duetime.domain.tasks.creation import RememberedKey
from duetime.domain.tasks.states import Move, State
from duetime.domain.times import DAY, MINUTE
from tests.adapters.clouds import EXECUTOR, SILENT, Cloud
from tests.adapters.examples import HOME, numbered, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task

CONTENDERS = 16
ROUNDS, MANY_ROUNDS = 30, 200
pytestmark = pytest.mark.engine


in_rounds = pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=pytest.mark.slow)])


def winners(contend: Callable[[int, int], bool], rounds: int) -> list[int]:
    """Return how many contenders won in each round; all contenders of a round start together."""
    counts = []
    with ThreadPoolExecutor(CONTENDERS) as pool:
        for number in range(rounds):
            start = Barrier(CONTENDERS)

            def enter(contender: int, number: int = number, start: Barrier = start) -> bool:
                start.wait()
                return contend(number, contender)

            counts.append(sum(pool.map(enter, range(CONTENDERS))))
    return counts


def store_of(cloud: Cloud, tasks: list[Task] | None = None) -> DynamoTaskStore:
    """Return a new store with the given tasks."""
    store = DynamoTaskStore(cloud.dynamodb, cloud.table(), EXECUTOR, SILENT)
    assert all(EXECUTOR.map(store.create, tasks or []))
    return store


@pytest.mark.slow
@in_rounds
def test_one_creation_of_an_id_wins(engine_cloud: Cloud, rounds: int) -> None:
    """Exactly one of several concurrent creations with the same id becomes the record."""
    store = store_of(engine_cloud)

    def contend(number: int, who: int) -> bool:
        return store.create(task(id=numbered(number), nonce=f"{who}"))

    assert winners(contend, rounds) == [1] * rounds


@pytest.mark.slow
@in_rounds
def test_one_claim_or_cancel_wins(engine_cloud: Cloud, rounds: int) -> None:
    """Exactly one of several concurrent claims, takeovers and cancellations of a task wins."""
    waiting = [task(), task(state=State.WAITING)]
    lost = task(state=State.RUNNING, lease_worker="lost", lease_expires_at=HOME - DAY)
    starts = [*waiting, lost]
    tasks = [replace(starts[number % 3], id=numbered(number)) for number in range(rounds)]
    store = store_of(engine_cloud, tasks)

    def contend(number: int, who: int) -> bool:
        message = Entry.of(tasks[number]).message(HOME)
        take = Claimant(f"w{who}", HOME, MINUTE).claim(message, f"{who}")
        cancel = Write(message.task_id, Move.CANCEL, f"{who}", Guard(version=1))
        return isinstance(store.apply(cancel if who == 0 else take), Applied)

    assert winners(contend, rounds) == [1] * rounds
    after = store.read_many([each.id for each in tasks]).values()
    assert {(each.version, each.fence) for each in after} <= {(2, 0), (2, 1)}


@pytest.mark.slow
@in_rounds
def test_one_end_of_an_attempt_wins(engine_cloud: Cloud, rounds: int) -> None:
    """Exactly one of several concurrent ends of the same attempt becomes the outcome."""
    tasks = [task(id=numbered(number), state=State.RUNNING, fence=3) for number in range(rounds)]
    store = store_of(engine_cloud, tasks)
    moves = [Move.SUCCEED, Move.FAIL, Move.RETRY]

    def contend(number: int, who: int) -> bool:
        write = Write(tasks[number].id, moves[who % 3], f"{who}", Guard(fence=3), {"finished_at": HOME})
        return isinstance(store.apply(write), Applied)

    assert winners(contend, rounds) == [1] * rounds
    assert {found.version for found in store.read_many([each.id for each in tasks]).values()} == {2}


@pytest.mark.slow
@in_rounds
def test_one_reader_takes_a_group(engine_cloud: Cloud, rounds: int) -> None:
    """Exactly one of several concurrent readers that try to take a group of shards gets the group."""
    store = DynamoCursorStore(engine_cloud.dynamodb, engine_cloud.table(), SILENT)

    def contend(number: int, who: int) -> bool:
        return store.take(number, f"{who}", HOME, HOME + MINUTE, Cursors.at((0, 0, 0, 0))) is not None

    assert winners(contend, rounds) == [1] * rounds


@pytest.mark.slow
@in_rounds
def test_one_value_of_an_idempotency_key_wins(engine_cloud: Cloud, rounds: int) -> None:
    """Exactly one of several concurrent requests with the same new key decides which task the key refers to."""
    store = DynamoKeyStore(engine_cloud.dynamodb, engine_cloud.table())

    def contend(number: int, who: int) -> bool:
        wanted = RememberedKey(numbered(who), HOME, HOME, "hash", HOME + DAY)
        return store.remember("ann", f"key {number}", wanted, HOME) == wanted

    assert winners(contend, rounds) == [1] * rounds
