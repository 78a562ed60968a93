"""What lies outside the record, and what is made good with it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import Unavailable
from duetime.domain.limits import CONTENT_OUTLIVES_RECORD
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import ContentPlace, TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.services.tasks.create import IdempotencyKey, Order
from tests.virtual.world import OWNER, RETENTION, START, World

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work

BIG = b'"' + random.Random(7).randbytes(3000).hex().encode() + b'"'  # noqa: S311 - the same bytes in every run
"""A payload that does not fit into a record."""


def test_followups_of_an_outcome_are_done_by_whoever_comes_next() -> None:
    """A worker that dies between the outcome and what follows it leaves that to its message."""
    world = World()
    task = world.create(TaskSpec("report", payload=BIG))
    deaths: list[int] = []

    def die_once() -> None:
        if not deaths:
            deaths.append(world.time.now())
            world.time.kill(world.time.process())

    world.contents.before_expiry = die_once
    world.pass_time(SECOND)
    half_done = world.get(task)
    assert (half_done.state, half_done.finished_at) == (State.SUCCEEDED, None)
    world.pass_time(2 * MINUTE)
    done = world.get(task)
    assert done.finished_at is not None
    assert len(world.effects) == 1


def test_a_payload_outside_the_record_is_handed_on_and_expires_with_it() -> None:
    """What does not fit lies outside, reaches the target whole, and is removed when the record is."""
    world = World()
    seen: list[bytes] = []

    def look(work: Work) -> Ending:
        seen.append(work.payload)
        return world.take(0)

    world.behave = look
    task = world.create(TaskSpec("report", payload=BIG))
    world.pass_time(SECOND)
    done = world.get(task)
    assert seen == [BIG]
    assert done.payload.place is not ContentPlace.RECORD
    assert done.expires_at is not None
    assert world.contents.expiries[task.id, "payload"] == done.expires_at + CONTENT_OUTLIVES_RECORD
    assert done.expires_at >= START + RETENTION


def test_old_ledger_lines_move_out_of_the_record() -> None:
    """Eight attempts: the record keeps the last five lines, the first three are kept beside it."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=7)
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=9, initial_seconds=0)))
    world.pass_time(MINUTE)
    done = world.get(task)
    assert [line.attempt for line in done.attempt_history] == [4, 5, 6, 7, 8]
    assert sorted(attempt for _task, attempt in world.contents.lines) == [1, 2, 3]


def test_a_replayed_request_makes_the_task_that_was_lost_on_the_way() -> None:
    """The API dies between the idempotency key and the record: the same request makes that very task."""
    world = World()
    order = Order(TaskSpec("report", delay=MINUTE), IdempotencyKey("k", "hash"))
    world.tasks.creatable = False
    with pytest.raises(Unavailable):
        world.task_creator.create(OWNER, order)
    world.tasks.creatable = True
    world.pass_time(10 * SECOND)
    first = world.task_creator.create(OWNER, order)
    again = world.task_creator.create(OWNER, order)
    assert first.id == again.id
    assert first.due_at == START + MINUTE
    world.pass_time(5 * MINUTE)
    assert len(world.effects) == 1
