"""Tests of the exact costs of unique keys, over AWS fakes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.tasks.creation import IdempotencyKey, Order
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Debounce, OnConflict, Priority, Unique
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime_common.cost_estimate import lines_of
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.creation import Accepted
    from duetime.domain.tasks.task import Task

pytestmark = pytest.mark.usefixtures("noop")

TYPE = "canary.noop"
_WRITES = {"put_item": 1, "update_item": 1, "delete_item": 1}


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions over AWS fakes."""
    yield Stack.faked({})
    composition.use(None)


def created(spec: TaskSpec, key: str | None = None) -> Accepted[Task]:
    """Create a task, with an idempotency key if a key is given."""
    order = Order(spec, None if key is None else IdempotencyKey(key, "hash"))
    return composed(TaskServices).creator.create_once(OWNER, order)


def spent(stack: Stack, act: Callable[[], object]) -> tuple[int, int]:
    """The write units and consistent reads of a function call; each item in a transaction costs two units.

    All items are smaller than 1 KB. Source: DynamoDB Developer Guide, "DynamoDB read and write operations".
    """
    calls: Counter[str] = Counter()

    def heard(operation: str, request: dict[str, Any]) -> None:
        calls["units"] += _WRITES.get(operation, 0) + 2 * len(request.get("TransactItems", []))
        calls["reads"] += operation == "get_item" and request["ConsistentRead"]

    session: Any = stack.cloud.dynamodb
    session._session.heard = heard
    act()
    session._session.heard = lambda _operation, _request: None
    return calls["units"], calls["reads"]


def test_a_unique_key_costs_four_units_and_a_read(stack: Stack) -> None:
    """A unique key and its task's record are written in one transaction, which costs four units instead of one.

    The key's expiry costs another unit at the task's end.
    """
    stack.create(TaskSpec(TYPE))
    stack.work(Priority.NORMAL)
    assert spent(stack, lambda: created(TaskSpec(TYPE))) == (1, 0)
    assert spent(stack, lambda: stack.work(Priority.NORMAL)) == (2, 0)
    assert spent(stack, lambda: created(TaskSpec(TYPE, unique=Unique("a")))) == (4, 1)
    assert spent(stack, lambda: stack.work(Priority.NORMAL)) == (3, 0)


def test_an_estimate_has_the_write_units_of_unique_and_debounced_tasks(stack: Stack) -> None:
    """The estimate has the task, its unique key, and its place in the owner's list, which this meter does not count."""
    stack.create(TaskSpec(TYPE))
    stack.work(Priority.NORMAL)
    for spec in (TaskSpec(TYPE, unique=Unique("a")), TaskSpec(TYPE, debounce=Debounce("b", 1))):
        found = composed(TaskServices).workloads_of(OWNER).of_tasks([spec], has_key=False)
        writes, _ = spent(stack, partial(_run, stack, spec))
        assert lines_of(found.parts)[0].quantity == writes + 1


def _run(stack: Stack, spec: TaskSpec) -> None:
    created(spec)
    stack.clock.at += 2 * SECOND
    stack.work(Priority.NORMAL)


def test_a_creation_that_keeps_the_existing_task_costs_two_reads(stack: Stack) -> None:
    """If the task that holds a unique key is kept, a creation reads the key and the task.

    An idempotency key costs two more units.
    """
    later = TaskSpec(TYPE, delay=60 * SECOND, unique=Unique("a"))
    created(later)
    assert spent(stack, lambda: created(later)) == (0, 2)
    assert spent(stack, lambda: created(later, "k")) == (2, 2)


def test_debouncing_a_task_costs_as_much_as_changing_its_due_time(stack: Stack) -> None:
    """Debouncing a task costs a timer and a record, like any change to the due time, and three reads.

    The shard count is also read every 5 s.
    """
    debounced = TaskSpec(TYPE, debounce=Debounce("a", 600))
    first = created(debounced).value
    stack.clock.at += 120 * SECOND
    assert spent(stack, lambda: created(debounced)) == (2, 3 + 1)
    assert created(debounced).on_conflict is OnConflict.REPLACE
    assert composed(TaskServices).reader.record(OWNER, first.id).state is State.SCHEDULED


def test_an_idempotency_key_is_written_with_the_debounced_task(stack: Stack) -> None:
    """With an idempotency key, debouncing costs six units.

    The key and a timer are written first, then the record and the key in one transaction, and finally the task is read
    again.
    """
    created(TaskSpec(TYPE, debounce=Debounce("a", 600)))
    stack.clock.at += 120 * SECOND
    assert spent(stack, lambda: created(TaskSpec(TYPE, debounce=Debounce("a", 600)), "k")) == (6, 4 + 1)
