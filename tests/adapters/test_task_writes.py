from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.conditional_writes import Applied, ConditionFailed, Guard, Write
from duetime.domain.dispatch.enqueue_plan import Entry
from duetime.domain.tasks.attempt_run import Claimant
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.targets import DefinitionRef, HttpRequest, HttpTarget, TopologyTarget
from duetime.domain.tasks.task import RequestedAction
from tests.adapters.examples import HOME, OWNER, fresh, numbered, task
from tests.adapters.strategies import TASKS, properties, writes_to
from tests.domain.write_semantics import applied, permits

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.tasks import TaskStore


def test_a_write_to_an_unknown_record_is_rejected_and_creates_nothing(task_store: TaskStore) -> None:
    """A write to an unknown id is refused and creates no record."""
    write = Write(numbered(9), Move.CANCEL, "n")
    assert task_store.apply(write) == ConditionFailed(None)
    assert task_store.read(numbered(9)) is None


def test_an_applied_write_returns_the_new_record(task_store: TaskStore) -> None:
    """`apply` returns the new record, which is also the record that is read later."""
    task_store.create(task())
    end = task_store.apply(Write(task().id, Move.CHANGE, "n", sets={"name": "renamed"}, adds={"generation": 1}))
    assert end == Applied(replace(task(), name="renamed", generation=1, nonce="n", version=2))
    assert task_store.read(task().id) == end.task


def test_a_rejected_write_returns_the_current_record(task_store: TaskStore) -> None:
    """A refused write changes nothing and returns the record, so that no read is needed."""
    task_store.create(task())
    assert task_store.apply(Write(task().id, Move.SUCCEED, "n")) == ConditionFailed(task())
    assert task_store.read(task().id) == task()


@pytest.mark.parametrize(
    "write",
    [
        Write(task().id, Move.CHANGE, "mine", sets={"name": "renamed"}, adds={"generation": 1}),
        Write(task().id, Move.CANCEL, "mine", Guard(version=1)),
        Claimant("w", HOME, 30_000).claim(Entry.of(task()).message(HOME), "mine"),
    ],
    ids=["change", "cancel", "claim"],
)
def test_a_repeated_write_is_applied_once(task_store: TaskStore, write: Write) -> None:
    """Repeating the same write returns the same response and changes nothing more."""
    task_store.create(task())
    first = task_store.apply(write)
    assert isinstance(first, Applied)
    assert task_store.apply(write) == first


LEASED_TASK = task(
    state=State.RUNNING, generation=2, fence=3, version=4, lease_worker="w", lease_expires_at=HOME - 6_000
)
WAITING_TASK = task(state=State.WAITING, generation=2, fence=3, version=4, lease_expires_at=HOME - 6_000)
HOLDING = [
    (WAITING_TASK, Guard(owner=OWNER, generation=2, fence=3, version=4, due_by=HOME)),
    (WAITING_TASK, Guard(generation=2, due_by=HOME, leased_until_before=HOME - 6_000)),
    (replace(WAITING_TASK, lease_expires_at=None), Guard(generation=2, due_by=HOME, leased_until_before=0)),
    (LEASED_TASK, Guard(owner=OWNER, fence=3, version=4, leased_until_before=HOME - 6_000)),
    (LEASED_TASK, Guard(generation=9, due_by=HOME, leased_until_before=HOME - 6_000)),
    (replace(LEASED_TASK, lease_expires_at=None), Guard(leased_until_before=0)),
    (LEASED_TASK, Guard(fence=3, not_cancelled=True)),
    (replace(LEASED_TASK, requested_action=RequestedAction.PAUSE), Guard(fence=3, not_cancelled=True)),
    (WAITING_TASK, Guard(alone=True)),
    (replace(WAITING_TASK, target=HttpTarget("https://topology/topology")), Guard(alone=True)),
    (replace(WAITING_TASK, target=HttpTarget("https://a/b", request=HttpRequest("GET"))), Guard(alone=True)),
]
BROKEN = [
    (WAITING_TASK, Guard(owner="bob")),
    (WAITING_TASK, Guard(generation=1)),
    (WAITING_TASK, Guard(fence=2)),
    (WAITING_TASK, Guard(version=5)),
    (WAITING_TASK, Guard(due_by=HOME - 1)),
    (WAITING_TASK, Guard(generation=3, leased_until_before=HOME)),
    (WAITING_TASK, Guard(generation=2, leased_until_before=HOME - 6_001)),
    (LEASED_TASK, Guard(generation=3)),
    (LEASED_TASK, Guard(due_by=HOME - 1)),
    (LEASED_TASK, Guard(generation=2, leased_until_before=HOME - 6_001)),
    (LEASED_TASK, Guard(fence=4, leased_until_before=HOME)),
    (LEASED_TASK, Guard(due_by=HOME - 1, leased_until_before=HOME)),
    (replace(LEASED_TASK, finished_at=HOME), Guard(open=True)),
    (replace(LEASED_TASK, requested_action=RequestedAction.CANCEL), Guard(fence=3, not_cancelled=True)),
    (replace(WAITING_TASK, target=TopologyTarget()), Guard(alone=True)),
    (replace(WAITING_TASK, target=TopologyTarget(DefinitionRef("d", 7, '{"a":1}'))), Guard(alone=True)),
]


@pytest.mark.parametrize(("before", "guard"), HOLDING)
def test_a_write_is_applied_at_the_limits_of_its_guard(task_store: TaskStore, before: Task, guard: Guard) -> None:
    """A write is applied at its guard's exact limits; if the lease has expired, the generation may differ."""
    task_store.create(before)
    assert isinstance(task_store.apply(Write(before.id, Move.CLAIM, "n", guard)), Applied)


@pytest.mark.parametrize(("before", "guard"), BROKEN)
def test_a_write_is_rejected_beyond_the_limits_of_its_guard(task_store: TaskStore, before: Task, guard: Guard) -> None:
    """A write is refused if any part of its guard differs by one, or by a millisecond."""
    task_store.create(before)
    assert task_store.apply(Write(before.id, Move.CLAIM, "n", guard)) == ConditionFailed(before)


@pytest.mark.slow
@properties
@given(data=st.data(), any_task=TASKS)
def test_store_writes_match_the_conditions_and_changes_of_the_domain(
    task_store: TaskStore, data: st.DataObject, any_task: Task
) -> None:
    """For every task and write, the store accepts and changes exactly what the domain's rules accept and change."""
    before = fresh(any_task)
    write = data.draw(writes_to(before))
    task_store.create(before)
    expected = Applied(applied(write, before)) if permits(write, before) else ConditionFailed(before)
    assert task_store.apply(write) == expected
    assert task_store.read(before.id) == expected.task


@pytest.mark.parametrize(
    ("move", "state"), [(Move.CLAIM_FOLLOW_UP, State.SUCCEEDED), (Move.CLAIM_ROLLBACK, State.ROLLING_BACK)]
)
def test_a_guard_on_the_lease_is_a_valid_request(task_store: TaskStore, move: Move, state: State) -> None:
    """The store accepts a guard on the lease even for changes that do not leave a waiting state."""
    before = replace(LEASED_TASK, state=state)
    task_store.create(before)
    assert task_store.apply(Write(before.id, move, "n", Guard(leased_until_before=HOME - 6_001))) == ConditionFailed(
        before
    )
    assert isinstance(task_store.apply(Write(before.id, move, "n", Guard(leased_until_before=HOME - 6_000))), Applied)
