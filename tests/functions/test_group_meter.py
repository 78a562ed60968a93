"""Tests of the exact costs of group members, counted over AWS fakes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.api import GroupServices
from duetime.composition.tasks import TaskServices
from duetime.domain.tasks.creation import Order
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime.services.group_admin import ClosingRequest
from duetime_common.cost_estimate import lines_of
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("noop")

TYPE = "canary.noop"
MEMBER = TaskSpec(TYPE, group="import-17")
_WRITES = frozenset({"put_item", "update_item", "delete_item"})


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions over AWS fakes, after one task has run."""
    made = Stack.faked({})
    made.create(TaskSpec(TYPE))
    made.work(Priority.NORMAL)
    yield made
    composition.use(None)


def spent(stack: Stack, act: Callable[[], object]) -> tuple[int, int, int]:
    """The numbers of writes, single-item reads and queries that a function call makes.

    All items are smaller than 1 KB.
    """
    calls: Counter[str] = Counter()

    def heard(operation: str, _request: dict[str, Any]) -> None:
        calls["writes"] += operation in _WRITES
        calls["reads"] += operation == "get_item"
        calls["queries"] += operation == "query"

    session: Any = stack.cloud.dynamodb
    session._session.heard = heard
    act()
    session._session.heard = lambda _operation, _request: None
    return calls["writes"], calls["reads"], calls["queries"]


def created(spec: TaskSpec = MEMBER) -> None:
    """Create a task, by default a group member."""
    composed(TaskServices).creator.create(OWNER, Order(spec))


def work(stack: Stack) -> None:
    """Let the worker process the messages that are ready."""
    assert stack.work(Priority.NORMAL) == []


def test_a_member_costs_two_units(stack: Stack) -> None:
    """A member costs two units more than another task: one write at its creation and one at its end.

    The first member also creates the group.
    """
    assert spent(stack, created) == (3, 2, 0)
    work(stack)
    assert spent(stack, created) == (2, 2, 0)
    assert spent(stack, partial(work, stack)) == (3, 1, 0)
    assert spent(stack, lambda: created(TaskSpec(TYPE))) == (1, 0, 0)
    assert spent(stack, partial(work, stack)) == (2, 0, 0)


def test_the_end_of_a_closed_groups_member_looks_for_an_open_member(stack: Stack) -> None:
    """The end of a closed group's member queries up to eight partitions for an open member, at no extra write."""
    created()
    created(TaskSpec(TYPE, group="import-17", delay=600_000))
    composed(GroupServices).manager.close(OWNER, "import-17", ClosingRequest(None, TriggerRule.ALL_DONE, "hash"))
    writes, reads, queries = spent(stack, partial(work, stack))
    assert (writes, reads) == (3, 1)
    assert 1 <= queries <= 8


@pytest.mark.usefixtures("noop", "stack")
def test_an_estimate_has_the_write_units_of_a_member() -> None:
    """The estimated cost of a member is two write units higher than the cost of another task."""
    found = [
        composed(TaskServices).workloads_of(OWNER).of_tasks([spec], has_key=False) for spec in (MEMBER, TaskSpec(TYPE))
    ]
    member, other = (lines_of(each.parts)[0].quantity for each in found)
    assert member - other == 2
