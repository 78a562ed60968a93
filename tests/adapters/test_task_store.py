from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duetime.domain.attempts import claim
from duetime.domain.dispatch import Entry, Wake
from duetime.domain.ids import TaskId
from duetime.domain.states import Move, State
from duetime.domain.task import Content, ContentPlace, Priority
from duetime.domain.times import MINUTE, minute_of
from duetime.domain.writes import Applied, Guard, Refused, Write, applied, permits
from duetime.ports.stores import ListQuery
from tests.adapters.examples import HOME, OWNER, numbered, task
from tests.adapters.strategies import TASKS, writes_to

if TYPE_CHECKING:
    from duetime.domain.task import Task
    from duetime.ports.stores import TaskStore

# Three implementations a property. One store serves all examples of a property: each has a task id of its own.
properties = settings(deadline=None, max_examples=75, suppress_health_check=[HealthCheck.function_scoped_fixture])
_FRESH = count(1)


def fresh(any_task: Task) -> Task:
    """The same task under an id that no other example has."""
    return replace(any_task, id=TaskId.of(any_task.id.home, any_task.id.shard, next(_FRESH)))


def test_a_created_record_is_read_as_it_was_written(task_store: TaskStore) -> None:
    """What `create` writes, `read` and `read_many` hand back, equal in every field."""
    wanted = task(name="nightly", tags={"team": "dba"}, priority=Priority.HIGH)
    assert task_store.create(wanted)
    assert task_store.read(wanted.id) == wanted
    assert task_store.read_many([wanted.id]) == {wanted.id: wanted}


def test_an_existing_record_is_not_overwritten(task_store: TaskStore) -> None:
    """A second task of the same id is refused, and the first stays."""
    first = task(nonce="first")
    task_store.create(first)
    assert not task_store.create(replace(first, nonce="second", type="other"))
    assert task_store.read(first.id) == first


def test_a_resent_creation_is_one_creation(task_store: TaskStore) -> None:
    """Creating the very same record again answers that it is there."""
    assert task_store.create(task())
    assert task_store.create(task())


def test_an_unknown_record_reads_as_none(task_store: TaskStore) -> None:
    """A task that was never created is `None`, and is left out of many."""
    known = task()
    task_store.create(known)
    assert task_store.read(numbered(9)) is None
    assert task_store.read_many([numbered(9), known.id]) == {known.id: known}


def test_any_number_of_records_is_read_at_once(task_store: TaskStore) -> None:
    """More ids than one request takes, with repetitions, give each existing task once."""
    ids = [numbered(each) for each in range(230)]
    for task_id in ids[::2]:
        task_store.create(task(id=task_id))
    assert list(task_store.read_many([*ids, *ids])) == ids[::2]


def test_a_write_to_an_unknown_record_is_refused_and_creates_nothing(task_store: TaskStore) -> None:
    """A write needs an existing record: nothing comes back from removed or invented ids."""
    write = Write(numbered(9), Move.CANCEL, "n")
    assert task_store.apply(write) == Refused(None)
    assert task_store.read(numbered(9)) is None


def test_an_applied_write_answers_the_record_after_it(task_store: TaskStore) -> None:
    """The answer of `apply` is the new record, which is also what is read."""
    task_store.create(task())
    end = task_store.apply(Write(task().id, Move.CHANGE, "n", sets={"name": "renamed"}, adds={"turn": 1}))
    assert end == Applied(replace(task(), name="renamed", turn=1, nonce="n", version=2))
    assert task_store.read(task().id) == end.task


def test_a_refused_write_answers_the_record_that_refused_it(task_store: TaskStore) -> None:
    """A refusal changes nothing and hands back the record, so that nobody need read it."""
    task_store.create(task())
    assert task_store.apply(Write(task().id, Move.SUCCEED, "n")) == Refused(task())
    assert task_store.read(task().id) == task()


@pytest.mark.parametrize(
    "write",
    [
        Write(task().id, Move.CHANGE, "mine", sets={"name": "renamed"}, adds={"turn": 1}),
        Write(task().id, Move.CANCEL, "mine", Guard(version=1)),
        claim(Entry.of(task()).message(HOME), holder="w", start=HOME, now=HOME, lease=30_000, nonce="mine"),
    ],
    ids=["change", "cancel", "claim"],
)
def test_a_resent_write_is_one_write(task_store: TaskStore, write: Write) -> None:
    """Making the very same write again answers as the first time and changes nothing more."""
    task_store.create(task())
    first = task_store.apply(write)
    assert isinstance(first, Applied)
    assert task_store.apply(write) == first


LEASED_TASK = task(state=State.RUNNING, turn=2, fence=3, version=4, lease_holder="w", lease_ends_at=HOME - 6_000)
WAITING_TASK = task(state=State.POSTPONED, turn=2, fence=3, version=4, lease_ends_at=HOME - 6_000)
HOLDING = [
    (WAITING_TASK, Guard(owner=OWNER, turn=2, fence=3, version=4, due_by=HOME)),
    (WAITING_TASK, Guard(turn=2, due_by=HOME, leased_until_before=0)),
    (LEASED_TASK, Guard(owner=OWNER, fence=3, version=4, leased_until_before=HOME - 6_000)),
    (LEASED_TASK, Guard(turn=9, due_by=0, leased_until_before=HOME - 6_000)),
    (replace(LEASED_TASK, lease_ends_at=None), Guard(leased_until_before=0)),
]
BROKEN = [
    (WAITING_TASK, Guard(owner="bob")),
    (WAITING_TASK, Guard(turn=1)),
    (WAITING_TASK, Guard(fence=2)),
    (WAITING_TASK, Guard(version=5)),
    (WAITING_TASK, Guard(due_by=HOME - 1)),
    (WAITING_TASK, Guard(turn=3, leased_until_before=HOME)),
    (LEASED_TASK, Guard(turn=3)),
    (LEASED_TASK, Guard(due_by=HOME - 1)),
    (LEASED_TASK, Guard(turn=2, leased_until_before=HOME - 6_001)),
    (LEASED_TASK, Guard(fence=4, leased_until_before=HOME)),
]


@pytest.mark.parametrize(("before", "guard"), HOLDING)
def test_a_write_is_applied_at_the_edge_of_its_guard(task_store: TaskStore, before: Task, guard: Guard) -> None:
    """Equal numbers and the very instants of a guard hold; a lease that is over needs neither turn nor due time."""
    task_store.create(before)
    assert isinstance(task_store.apply(Write(before.id, Move.CLAIM, "n", guard)), Applied)


@pytest.mark.parametrize(("before", "guard"), BROKEN)
def test_a_write_is_refused_beyond_the_edge_of_its_guard(task_store: TaskStore, before: Task, guard: Guard) -> None:
    """Each part of a guard refuses by itself, one number or one millisecond off."""
    task_store.create(before)
    assert task_store.apply(Write(before.id, Move.CLAIM, "n", guard)) == Refused(before)


@properties
@given(any_task=TASKS)
def test_every_task_is_stored_whole(task_store: TaskStore, any_task: Task) -> None:
    """Whatever a task holds comes back from the store as it was."""
    wanted = fresh(any_task)
    assert task_store.create(wanted)
    assert task_store.read(wanted.id) == wanted


@properties
@given(data=st.data(), any_task=TASKS)
def test_a_write_means_what_permits_and_applied_say(task_store: TaskStore, data: st.DataObject, any_task: Task) -> None:
    """The store's conditions and changes are exactly the domain's, for every task and write."""
    before = fresh(any_task)
    write = data.draw(writes_to(before))
    task_store.create(before)
    expected = Applied(applied(write, before)) if permits(write, before) else Refused(before)
    assert task_store.apply(write) == expected
    assert task_store.read(before.id) == expected.task


def test_a_minute_holds_its_records_and_wakes(task_store: TaskStore) -> None:
    """Reading one shard of a minute meets the records at home in it and the wakes put into it, and no others."""
    here, elsewhere, later = task(), task(id=TaskId.of(HOME, 4, 1)), task(id=TaskId.of(HOME + MINUTE, 3, 1))
    for each in (here, elsewhere, later):
        task_store.create(each)
    wake = Wake(later.id, 2, HOME + 5, Priority.LOW, OWNER)
    task_store.add_wake(wake)
    found = list(task_store.read_minute(minute_of(HOME), 3, consistent=True))
    assert found == [Entry.of(here), wake]


@properties
@given(any_task=TASKS)
def test_an_entry_says_what_the_whole_record_says(task_store: TaskStore, any_task: Task) -> None:
    """What the trigger reads of a record agrees with the record in every field it has."""
    wanted = fresh(any_task)
    task_store.create(wanted)
    entries = task_store.read_minute(wanted.id.minute, wanted.id.shard, consistent=False)
    assert Entry.of(wanted) in list(entries)


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("owner", ["ann", "a#b", "#"])
def test_a_wake_is_read_as_it_was_written(task_store: TaskStore, owner: str, sent: bool) -> None:  # noqa: FBT001 - parametrized
    """Every field of a wake comes back, and writing it twice leaves one."""
    wake = Wake(numbered(1), 12, HOME + 7 * MINUTE, Priority.NORMAL, owner, sent)
    task_store.add_wake(wake)
    task_store.add_wake(wake)
    assert list(task_store.read_minute(minute_of(wake.at), 3, consistent=True)) == [wake]


def test_a_minute_of_many_pages_is_read_to_its_end(task_store: TaskStore) -> None:
    """A partition larger than one answer of the store (1 MB) is read whole, each item once."""
    large = Content(ContentPlace.RECORD, "payload", Random(1).randbytes(150_000))  # noqa: S311 - an example, no secret
    wanted = [numbered(each) for each in range(12)]
    for task_id in wanted:
        task_store.create(task(id=task_id, payload=large))
    found = [item.task_id for item in task_store.read_minute(minute_of(HOME), 3, consistent=False)]
    assert found == wanted


def spread(store: TaskStore, owner: str, number: int) -> list[TaskId]:
    """Create tasks of an owner in consecutive seconds, over all partitions of its list."""
    ids = [TaskId.of(HOME + 1_000 * each, each % 20, each) for each in range(number)]
    for task_id in ids:
        store.create(task(id=task_id, owner=owner))
    return ids


def test_an_owners_tasks_are_listed_in_order_of_their_homes(task_store: TaskStore) -> None:
    """The list holds all of an owner's tasks and nobody else's, latest first unless asked otherwise."""
    ids = spread(task_store, "ann", 40)
    task_store.create(task(owner="ann#1"))
    assert task_store.list_ids(ListQuery("ann")) == ids[::-1]
    assert task_store.list_ids(ListQuery("ann", descending=False)) == ids
    assert task_store.list_ids(ListQuery("nobody")) == []


@pytest.mark.parametrize("descending", [True, False])
def test_pages_of_a_list_join_without_gap_or_repetition(task_store: TaskStore, descending: bool) -> None:  # noqa: FBT001 - parametrized
    """Each page goes on behind the last id of the page before."""
    ids = spread(task_store, "ann", 40)
    pages: list[TaskId] = []
    while page := task_store.list_ids(ListQuery("ann", pages[-1] if pages else None, descending, limit=7)):
        assert len(page) <= 7
        pages += page
    assert pages == (ids[::-1] if descending else ids)


def test_failed_tasks_have_a_list_of_their_own(task_store: TaskStore) -> None:
    """A task is in its owner's list of failed tasks from the write that fails it, and only such tasks are."""
    ids = spread(task_store, "ann", 6)
    running, created_failed = task(id=numbered(70), state=State.RUNNING), task(id=numbered(71), state=State.FAILED)
    task_store.create(replace(running, owner="ann"))
    task_store.create(replace(created_failed, owner="ann"))
    assert task_store.list_ids(ListQuery("ann", failed_only=True)) == [created_failed.id]
    task_store.apply(Write(running.id, Move.FAIL, "n"))
    assert task_store.list_ids(ListQuery("ann", failed_only=True)) == sorted([running.id, created_failed.id])[::-1]
    assert set(task_store.list_ids(ListQuery("ann"))) == {*ids, running.id, created_failed.id}


def test_a_wake_is_in_no_list(task_store: TaskStore) -> None:
    """Wakes cost no place in an index: an owner's list holds records only."""
    task_store.add_wake(Wake(numbered(1), 1, HOME, Priority.NORMAL, OWNER))
    assert task_store.list_ids(ListQuery(OWNER)) == []
