"""Tests of the write units and consistent reads that an ordered key costs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.ids import TaskId
from duetime.domain.tasks.creation import Order
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import OrderKey, Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime_common.cost_estimate import lines_of
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("noop")

TYPE = "canary.noop"
ORDERED = TaskSpec(TYPE, order=OrderKey("customer-17"))
_WRITES = {"put_item": 1, "update_item": 1, "delete_item": 1}
_READS = {"get_item", "query"}


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions over AWS fakes."""
    yield Stack.faked({})
    composition.use(None)


def create(spec: TaskSpec = ORDERED) -> str:
    """Create a task, by default with an ordered key, and return its id."""
    return composed(TaskServices).creator.create_once(OWNER, Order(spec)).value.id.text


def spent(stack: Stack, act: Callable[[], object]) -> tuple[int, int]:
    """The write units and consistent reads of a function call.

    Each read costs one unit, because all items are small.
    """
    calls: Counter[str] = Counter()

    def heard(operation: str, request: dict[str, Any]) -> None:
        calls["units"] += _WRITES.get(operation, 0)
        calls["reads"] += operation in _READS and request.get("ConsistentRead", False)

    session: Any = stack.cloud.dynamodb
    session._session.heard = heard
    act()
    session._session.heard = lambda _operation, _request: None
    return calls["units"], calls["reads"]


def work(stack: Stack) -> None:
    """Let the worker process the messages that are ready."""
    stack.work(Priority.NORMAL)


def test_an_ordered_task_that_need_not_wait_costs_five_units_more(stack: Stack) -> None:
    """An ordered task that need not wait costs five more units.

    The units are for its number, its place in line, its turn, the removal of the place, and the end of the follow-ups.
    """
    stack.create(TaskSpec(TYPE))
    work(stack)
    assert spent(stack, lambda: create(TaskSpec(TYPE))) == (1, 0)
    assert spent(stack, lambda: work(stack)) == (2, 0)
    assert spent(stack, create) == (3, 0)
    # The gate reads the line and the task's record, and letting the next task in reads the line.
    assert spent(stack, lambda: work(stack)) == (5, 3)


def test_an_estimate_has_the_write_units_of_an_ordered_key(stack: Stack) -> None:
    """The estimate has the task, its ordered key, and its place in the owner's list, which the meter does not count."""
    stack.create(TaskSpec(TYPE))
    work(stack)
    found = composed(TaskServices).workloads_of(OWNER).of_tasks([ORDERED], has_key=False)
    creation, _ = spent(stack, create)
    writes = creation + spent(stack, lambda: work(stack))[0]
    assert lines_of(found.parts)[0].quantity == writes + 1


def test_a_batch_of_one_ordered_key_costs_one_unit_for_all_numbers(stack: Stack) -> None:
    """A batch with one ordered key costs one unit for all numbers, and two units for each task's place and record."""
    stack.create(TaskSpec(TYPE))
    creator = composed(TaskServices).batch_creator
    assert spent(stack, lambda: creator.create_many(OWNER, [Order(ORDERED)] * 10)) == (1 + 2 * 10, 0)


def test_a_task_that_waits_for_its_turn_costs_a_claim_and_timers(stack: Stack) -> None:
    """A task that must wait for its turn costs a claim, its reversal and a timer.

    A turn costs a timer and the record, and no item grows.
    """
    later = TaskSpec(TYPE, delay=60_000, order=OrderKey("customer-17"))
    first, second = create(later), create()
    assert spent(stack, lambda: work(stack))[0] == 3
    task = composed(TaskServices).reader.record(OWNER, TaskId(second))
    assert (task.state, task.waiting_for) == (State.WAITING, "order customer-17")
    # These units are for the first task's record and place, the turn, and the second task's record in its own minute.
    assert spent(stack, lambda: composed(TaskServices).updater.cancel(OWNER, TaskId(first), None))[0] == 4
