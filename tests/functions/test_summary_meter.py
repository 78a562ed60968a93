"""The exact costs of keeping the summary, over fakes of AWS."""

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


@dataclass
class Spent:
    """The calls, and the write units of transactions: each item's twice (Source: DynamoDB Developer Guide)."""

    stack: Stack
    requests: Counter[str] = field(default_factory=Counter)
    write_units: int = 0

    def heard(self, operation: str, request: dict[str, Any]) -> None:
        """Count a call."""
        self.requests[operation] += 1
        for write in request.get("TransactItems", []):
            ((_, one),) = write.items()
            key = {name: (one.get("Item") or one["Key"])[name] for name in ("p", "s")}
            item = self.stack.cloud.dynamodb.get_item(TableName=one["TableName"], Key=key)["Item"]
            self.write_units += 2 * write_units(item_size(item))
            self.requests["get_item"] -= 1


def stack_of(spread: int) -> Stack:
    """The functions, with the summary in this many parts."""
    return Stack.faked({Variable.SUMMARY_SPREAD: str(spread), Variable.SUMMARY_RECOUNT_MEGABYTES: "100"})


@pytest.fixture
def counting() -> Iterator[Stack]:
    """The functions, with the summary in one part; the function has counted a task of the owner before."""
    stack = stack_of(1)
    stream = stream_of(stack)
    stack.create(TaskSpec(type="canary.noop"))
    for record in stream.records:
        # The ids of records start anew with each fake of a stream, unlike those of a real table's stream.
        record["eventID"] = f"before-{record['eventID']}"
    stack.call("broadcast", stream.event())
    stack.clock.at += SECOND
    yield stack
    composition.use(None)


def test_what_a_process_does_not_know_yet_costs_three_reads_and_two_writes() -> None:
    """Once: the generation of the counts and its first value, one page of the table, and the list of owners.

    From then on, a process reads the generation once a minute.
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
    """The costs of the function for deliveries of the stream."""
    spent = Spent(stack)
    session: Any = stack.cloud.dynamodb
    session._session.heard = spent.heard
    for event in events:
        stack.call("broadcast", event)
    session._session.heard = lambda _operation, _request: None
    return spent


def test_a_delivery_of_a_minute_costs_four_units_however_many_tasks(counting: Stack) -> None:
    """Ten tasks created in one second and run in a later one, in one delivery: one read, one transaction of two items.

    The query is that of who watches.
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
    """Nothing is shared with others: created, begun and ended in three deliveries."""
    stream = stream_of(counting)
    counting.create(TaskSpec(type="canary.noop"))
    counting.work(Priority.NORMAL)
    spent = spent_on(counting, *(stream.event(n, n + 1) for n in range(3)))
    assert +spent.requests == {"query": 3, "get_item": 3, "transact_write_items": 3}
    assert spent.write_units == 12


def test_a_delivery_that_comes_again_costs_one_read(counting: Stack) -> None:
    """The function remembers what it has counted."""
    stream = stream_of(counting)
    counting.create(TaskSpec(type="canary.noop"))
    counting.call("broadcast", stream.event())
    assert +spent_on(counting, stream.event()).requests == {"query": 1, "get_item": 1}


def test_a_summary_that_is_off_costs_nothing() -> None:
    """Only who watches is read, once for each delivery."""
    stack = stack_of(0)
    stream = stream_of(stack)
    stack.create(TaskSpec(type="canary.noop"))
    assert +spent_on(stack, stream.event()).requests == {"query": 1}
    composition.use(None)
