"""The write units and consistent reads of an ordered key."""

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

TYPE = "canary.noop"
ORDERED = TaskSpec(TYPE, order=OrderKey("customer-17"))
_WRITES = {"put_item": 1, "update_item": 1, "delete_item": 1}
_READS = {"get_item", "query"}


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The functions over fakes."""
    yield Stack.faked({})
    composition.use(None)


def create(spec: TaskSpec = ORDERED) -> str:
    """Create a task; its id."""
    return composed(TaskServices).creator.create_once(OWNER, Order(spec)).value.id.text


def spent(stack: Stack, act: Callable[[], object]) -> tuple[int, int]:
    """The write units that something costs, and its consistent reads, of one read unit each; all items are small."""
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
    """Process the messages on the queue."""
    stack.work(Priority.NORMAL)


def test_an_ordered_task_that_need_not_wait_costs_five_units_more(stack: Stack) -> None:
    """Its number, its place, the turn, the place removed, and the end of the follow-ups."""
    stack.create(TaskSpec(TYPE))
    work(stack)
    assert spent(stack, lambda: create(TaskSpec(TYPE))) == (1, 0)
    assert spent(stack, lambda: work(stack)) == (2, 0)
    assert spent(stack, create) == (3, 0)
    # Its gate reads the line and its own record; letting the next one in reads the line.
    assert spent(stack, lambda: work(stack)) == (5, 3)


def test_an_estimate_has_the_write_units_of_an_ordered_key(stack: Stack) -> None:
    """Those of the task, of its key, and of its place in the owner's list, which this meter does not count."""
    stack.create(TaskSpec(TYPE))
    work(stack)
    found = composed(TaskServices).workloads_of(OWNER).of_tasks([ORDERED], has_key=False)
    creation, _ = spent(stack, create)
    writes = creation + spent(stack, lambda: work(stack))[0]
    assert lines_of(found.parts)[0].quantity == writes + 1


def test_a_batch_of_one_key_takes_its_numbers_at_once(stack: Stack) -> None:
    """One unit for all numbers, and two for each task: its place and its record."""
    stack.create(TaskSpec(TYPE))
    creator = composed(TaskServices).batch_creator
    assert spent(stack, lambda: creator.create_many(OWNER, [Order(ORDERED)] * 10)) == (1 + 2 * 10, 0)


def test_a_task_that_waits_costs_a_check_and_its_enqueuing(stack: Stack) -> None:
    """Claim, return and timer when it finds another one's turn; then its timer and its record. No item grows."""
    later = TaskSpec(TYPE, delay=60_000, order=OrderKey("customer-17"))
    first, second = create(later), create()
    assert spent(stack, lambda: work(stack))[0] == 3
    task = composed(TaskServices).reader.record(OWNER, TaskId(second))
    assert (task.state, task.waiting_for) == (State.WAITING, "order customer-17")
    # The record and the place of the first one, the turn, and the record of the second one, still in its own minute.
    assert spent(stack, lambda: composed(TaskServices).updater.cancel(OWNER, TaskId(first), None))[0] == 4
