"""Tests the group store, and how many items it reads to find an open member."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.groups import DynamoGroupStore
from duetime.domain.groups import Member
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from tests.adapters.clouds import EXECUTOR
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZE = 800
ORDERS: dict[str, Callable[[list[TaskId]], Sequence[TaskId]]] = {
    "the earliest first": lambda ids: ids,
    "the latest first": lambda ids: ids[::-1],
    "any": lambda ids: Random(7).sample(ids, len(ids)),  # noqa: S311 - repeatable
    "from both ends": lambda ids: [each for pair in zip(ids, ids[::-1], strict=True) for each in pair][: len(ids)],
    "the middle last": lambda ids: ids[: len(ids) // 3] + ids[: len(ids) // 3 : -1] + [ids[len(ids) // 3]],
}


class Reading:
    """A group store that counts the items that its queries read."""

    def __init__(self) -> None:
        self.items = 0
        client: Any = FakeDynamoDB()
        self.table = new_table(client)
        self.client = client
        self.store = DynamoGroupStore(self, self.table, EXECUTOR)  # type: ignore[arg-type]  # delegates other calls

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of boto3's client
        return getattr(self.client, name)

    def query(self, **request: Any) -> Any:  # noqa: ANN401 - boto3's
        """Read a page and count its items."""
        page = self.client.query(**request)
        self.items += len(page["Items"])
        return page


@pytest.mark.parametrize("order", ORDERS)
def test_group_members_are_read_about_once_in_any_order(order: str) -> None:
    """All ends together read each member about once, because reading all members at each end would be expensive."""
    reading = Reading()
    ids = [TaskId.of(HOME + number * SECOND, 0, number) for number in range(SIZE)]
    for task_id in ids:
        reading.store.add_member("me", "g", task_id, HOME)
    ended = list(ORDERS[order](ids))
    assert sorted(each.text for each in ended) == sorted(each.text for each in ids)
    for number, task_id in enumerate(ended):
        reading.store.note("me", "g", Member(task_id, State.SUCCEEDED, 1, HOME), None)
        found = reading.store.open_members("me", "g", 1, near=task_id)
        assert bool(found) == (number < SIZE - 1)
        assert not {each.task_id for each in found} & set(ended[: number + 1])
    # Each end reads one page and the items that it passes; one page of these items can be read twice.
    assert reading.items <= 20 * SIZE + 4 * SIZE


def test_a_member_that_is_open_again_is_found() -> None:
    """All members are read before a group counts as complete, so a member that is open again is found."""
    reading = Reading()
    ids = [TaskId.of(HOME + number, 0, number) for number in range(200)]
    for task_id in ids:
        reading.store.add_member("me", "g", task_id, HOME)
    for task_id in ids[:-1]:
        reading.store.note("me", "g", Member(task_id, State.FAILED, 1, HOME), None)
        assert reading.store.open_members("me", "g", 1)
    for again in (ids[0], ids[77], ids[198]):
        reading.store.note("me", "g", Member(again, None, 2, HOME), None)
        reading.store.note("me", "g", Member(ids[-1], State.FAILED, 1, HOME), None)
        assert [each.task_id for each in reading.store.open_members("me", "g", 1, near=ids[5])] == [again]
        reading.store.note("me", "g", Member(again, State.FAILED, 2, HOME), None)
        assert reading.store.open_members("me", "g", 1) == []
