"""Tests of the exact costs of keeping the summary, over AWS fakes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.environment_variables import Variable
from tests.functions.stack import Stack
from tests.functions.test_broadcast import stream_of
from tests.metering import item_size, write_units

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.usefixtures("noop")


@dataclass
class Spent:
    """The calls, and the write units of transactions (two units for each item). Source: DynamoDB Developer Guide."""

    stack: Stack
    requests: Counter[str] = field(default_factory=Counter)
    write_units: int = 0

    def heard(self, operation: str, request: dict[str, Any]) -> None:
        """Count a call and the write units of a transaction."""
        self.requests[operation] += 1
        for write in request.get("TransactItems", []):
            ((_, one),) = write.items()
            key = {name: (one.get("Item") or one["Key"])[name] for name in ("p", "s")}
            item = self.stack.cloud.dynamodb.get_item(TableName=one["TableName"], Key=key)["Item"]
            self.write_units += 2 * write_units(item_size(item))
            self.requests["get_item"] -= 1


def stack_of(spread: int) -> Stack:
    """The Lambda functions, with a summary that is split into this many parts."""
    return Stack.faked({Variable.SUMMARY_SPREAD: str(spread), Variable.SUMMARY_RECOUNT_MEGABYTES: "100"})


@pytest.fixture
def counting() -> Iterator[Stack]:
    """The Lambda functions with a summary in one part, after the owner's first task has been counted."""
    stack = stack_of(1)
    stream = stream_of(stack)
    stack.create(TaskSpec(type="canary.noop"))
    for record in stream.records:
        # Each stream fake numbers its records from the beginning, unlike the stream of a real table.
        record["eventID"] = f"before-{record['eventID']}"
    stack.call("broadcast", stream.event())
    stack.clock.at += SECOND
    yield stack
    composition.use(None)


def test_a_new_process_costs_three_reads_and_two_writes() -> None:
    """A new process reads the generation of the counts, a page of the table and the list of owners once.

    The process also writes the first generation and the owner's entry in the list. Later, it reads only the generation,
    once a minute.
    """
    stack = stack_of(1)
    stream = stream_of(stack)
    stack.create(TaskSpec(type="canary.noop"))
    first = spent_on(stack, stream.event())
    assert +first.requests == {"query": 1, "get_item": 4, "scan": 1, "put_item": 2, "transact_write_items": 1}
    stack.clock.at += MINUTE
    stack.create(TaskSpec(type="canary.noop"))
    later = spent_on(stack, stream.event(1, 2))
    assert +later.requests == {"query": 1, "get_item": 2, "transact_write_items": 1}
    composition.use(None)


def spent_on(stack: Stack, *events: dict[str, Any]) -> Spent:
    """The costs of processing these stream events."""
    spent = Spent(stack)
    session: Any = stack.cloud.dynamodb
    session._session.heard = spent.heard
    for event in events:
        stack.call("broadcast", event)
    session._session.heard = lambda _operation, _request: None
    return spent


def test_a_delivery_of_a_minute_costs_four_units_however_many_tasks(counting: Stack) -> None:
    """A delivery for ten tasks that are created in one second and run in a later second costs four units.

    The units are for one transaction with two items. The function also reads the counts once, and queries which clients
    watch tasks.
    """
    stream = stream_of(counting)
    for _ in range(10):
        counting.create(TaskSpec(type="canary.noop"))
    counting.clock.at += 4 * SECOND
    counting.work(Priority.NORMAL)
    spent = spent_on(counting, stream.event())
    assert len({record["dynamodb"]["ApproximateCreationDateTime"] for record in stream.records}) == 2
    assert len(stream.records) == 30
    assert +spent.requests == {"query": 1, "get_item": 1, "transact_write_items": 1}
    assert spent.write_units == 4


def test_a_task_alone_costs_four_units_for_each_delivery(counting: Stack) -> None:
    """A task that is created, begun and ended in three separate deliveries costs one transaction for each delivery."""
    stream = stream_of(counting)
    counting.create(TaskSpec(type="canary.noop"))
    counting.work(Priority.NORMAL)
    spent = spent_on(counting, *(stream.event(n, n + 1) for n in range(3)))
    assert +spent.requests == {"query": 3, "get_item": 3, "transact_write_items": 3}
    assert spent.write_units == 12


def test_a_repeated_delivery_costs_one_read(counting: Stack) -> None:
    """A repeated delivery costs only one read of the counts, because the function remembers the counted changes."""
    stream = stream_of(counting)
    counting.create(TaskSpec(type="canary.noop"))
    counting.call("broadcast", stream.event())
    assert +spent_on(counting, stream.event()).requests == {"query": 1, "get_item": 1}


def test_a_summary_that_is_off_costs_nothing() -> None:
    """If the summary is off, a delivery only queries which clients watch tasks."""
    stack = stack_of(0)
    stream = stream_of(stack)
    stack.create(TaskSpec(type="canary.noop"))
    assert +spent_on(stack, stream.event()).requests == {"query": 1}
    composition.use(None)
