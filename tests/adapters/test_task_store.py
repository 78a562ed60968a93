from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from duetime.domain.conditional_writes import Write
from duetime.domain.dispatch.enqueue_plan import Entry, ScheduleTimer, Timer
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, minute_of
from duetime.ports.tasks import Insertions, ListQuery
from tests.adapters.examples import HOME, OWNER, fresh, numbered, task
from tests.adapters.strategies import TASKS, properties
from tests.minutes import items_of

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.tasks import TaskStore


def test_a_created_record_is_read_back_unchanged(task_store: TaskStore) -> None:
    """`read` and `read_many` return a created record, equal in every field."""
    wanted = task(name="nightly", tags={"team": "dba"}, priority=Priority.HIGH)
    assert task_store.create(wanted)
    assert task_store.read(wanted.id) == wanted
    assert task_store.read_many([wanted.id]) == {wanted.id: wanted}


def test_an_existing_record_is_not_overwritten(task_store: TaskStore) -> None:
    """Creating a second task with the same id is refused, and the first record is unchanged."""
    first = task(nonce="first")
    task_store.create(first)
    assert not task_store.create(replace(first, nonce="second", type="other"))
    assert task_store.read(first.id) == first


def test_a_repeated_creation_of_the_same_record_succeeds(task_store: TaskStore) -> None:
    """Creating the same record again succeeds, because the stored record is the given one."""
    assert task_store.create(task())
    assert task_store.create(task())


def test_any_number_of_records_is_written_at_once(batch_store: TaskStore) -> None:
    """More records than one request allows are written unchanged."""
    many = [task(id=numbered(each), name=f"task {each}", priority=Priority.HIGH) for each in range(53)]
    assert batch_store.insert(many) == Insertions(many, [])
    assert batch_store.read_many([each.id for each in many]) == {each.id: each for each in many}


def test_a_batch_does_not_overwrite_existing_records(batch_store: TaskStore) -> None:
    """A batch does not overwrite existing records, and still writes the new records."""
    first = task(id=numbered(1), nonce="first")
    batch_store.create(first)
    others = [task(id=numbered(each), nonce="second") for each in (0, 2)]
    again = replace(first, nonce="second", type="other")
    assert batch_store.insert([others[0], again, others[1]]) == Insertions(others, [again])
    assert batch_store.read_many([numbered(each) for each in range(3)]) == {
        each.id: each for each in (others[0], first, others[1])
    }


def test_only_one_of_two_records_with_an_id_is_written(batch_store: TaskStore) -> None:
    """If two records in a batch have the same id, only the record that was written is reported."""
    twice = [task(id=numbered(1), nonce="first"), task(id=numbered(1), nonce="second")]
    (written,) = batch_store.insert(twice).written
    assert written in twice
    assert batch_store.read(numbered(1)) == written


@properties
@given(any_task=TASKS)
def test_a_batch_stores_every_field_of_a_task(batch_store: TaskStore, any_task: Task) -> None:
    """A batch stores every field of a task."""
    wanted = fresh(any_task)
    assert batch_store.insert([wanted]) == Insertions([wanted], [])
    assert batch_store.read(wanted.id) == wanted


def test_an_unknown_record_reads_as_none(task_store: TaskStore) -> None:
    """An unknown task is read as `None`, and is left out when many tasks are read."""
    known = task()
    task_store.create(known)
    assert task_store.read(numbered(9)) is None
    assert task_store.read_many([numbered(9), known.id]) == {known.id: known}


def test_any_number_of_records_is_read_at_once(task_store: TaskStore) -> None:
    """A read of more ids than one request allows, some of them repeated, returns each existing task once."""
    ids = [numbered(each) for each in range(230)]
    for task_id in ids[::2]:
        task_store.create(task(id=task_id))
    assert list(task_store.read_many([*ids, *ids])) == ids[::2]


@properties
@given(any_task=TASKS)
def test_every_task_is_read_back_unchanged(task_store: TaskStore, any_task: Task) -> None:
    """Every task is read back unchanged from the store."""
    wanted = fresh(any_task)
    assert task_store.create(wanted)
    assert task_store.read(wanted.id) == wanted


def test_a_minute_holds_its_records_and_timers(task_store: TaskStore) -> None:
    """A minute's shard contains exactly the records and timers that belong to this shard."""
    here, elsewhere, later = task(), task(id=TaskId.of(HOME, 4, 1)), task(id=TaskId.of(HOME + MINUTE, 3, 1))
    for each in (here, elsewhere, later):
        task_store.create(each)
    timer = Timer(later.id, 2, HOME + 5, Priority.LOW, OWNER)
    task_store.add_timer(timer)
    found = items_of(task_store, minute_of(HOME), 3)
    assert found == [Entry.of(here), timer]


@properties
@given(any_task=TASKS)
def test_a_trigger_entry_equals_the_record_in_its_fields(task_store: TaskStore, any_task: Task) -> None:
    """Every field in the trigger's view of a record equals the record's field."""
    wanted = fresh(any_task)
    task_store.create(wanted)
    entries = items_of(task_store, wanted.id.minute, wanted.id.shard, consistent=False)
    assert Entry.of(wanted) in list(entries)


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("owner", ["ann", "a#b", "#"])
def test_a_timer_is_read_back_unchanged(task_store: TaskStore, owner: str, sent: bool) -> None:  # noqa: FBT001 - parametrized
    """Every field of a timer is read back, and writing the timer twice leaves one item."""
    timer = Timer(numbered(1), 12, HOME + 7 * MINUTE, Priority.NORMAL, owner, sent)
    task_store.add_timer(timer)
    task_store.add_timer(timer)
    assert items_of(task_store, minute_of(timer.at), 3) == [timer]


@pytest.mark.parametrize(
    "other",
    [
        {"generation": 3},
        {"at": HOME + 6},
        {"priority": Priority.LOW},
        {"sent": True},
        {"pull_queue": "resize"},
        {"fair_share": "0.#w#"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_timer_does_not_replace_a_different_timer(task_store: TaskStore, other: dict[str, Any]) -> None:
    """If two changes put a timer into the same minute before either is accepted, both timers are read."""
    timer = Timer(numbered(1), 2, HOME + 5, Priority.NORMAL, OWNER)
    timers = [timer, replace(timer, **other)]
    for each in timers:
        task_store.add_timer(each)
    found = items_of(task_store, minute_of(HOME), 3)
    assert sorted(found, key=repr) == sorted(timers, key=repr)


def test_a_timer_of_a_pulled_task_keeps_its_lane(task_store: TaskStore) -> None:
    """A timer contains the lane, which tells the trigger which queue to use."""
    timer = Timer(numbered(1), 12, HOME, Priority.NORMAL, OWNER, pull_queue="resize")
    task_store.add_timer(timer)
    assert items_of(task_store, minute_of(HOME), 3) == [timer]


def test_a_minute_of_many_pages_is_read_completely(task_store: TaskStore) -> None:
    """A partition larger than one response (1 MB) is read completely, and each item once."""
    large = Content(ContentPlace.RECORD, "payload", Random(1).randbytes(150_000))  # noqa: S311 - an example, no secret
    wanted = [numbered(each) for each in range(12)]
    for task_id in wanted:
        task_store.create(task(id=task_id, payload=large))
    found = items_of(task_store, minute_of(HOME), 3, consistent=False)
    assert [item.task_id for item in found if isinstance(item, Entry)] == wanted


def spread(store: TaskStore, owner: str, number: int) -> list[TaskId]:
    """Create tasks for an owner in consecutive seconds, spread over all partitions of the owner's list."""
    ids = [TaskId.of(HOME + 1_000 * each, each % 20, each) for each in range(number)]
    for task_id in ids:
        store.create(task(id=task_id, owner=owner))
    return ids


def test_the_tasks_of_an_owner_are_listed_latest_first(task_store: TaskStore) -> None:
    """The list contains exactly the owner's tasks, latest first by default."""
    ids = spread(task_store, "ann", 40)
    task_store.create(task(owner="ann#1"))
    assert task_store.list_ids(ListQuery("ann")) == ids[::-1]
    assert task_store.list_ids(ListQuery("ann", descending=False)) == ids
    assert task_store.list_ids(ListQuery("nobody")) == []


@pytest.mark.parametrize("descending", [True, False])
def test_pages_of_a_list_have_no_gap_or_repetition(task_store: TaskStore, descending: bool) -> None:  # noqa: FBT001 - parametrized
    """Each page of the list continues after the last id on the previous page."""
    ids = spread(task_store, "ann", 40)
    pages: list[TaskId] = []
    while page := task_store.list_ids(ListQuery("ann", pages[-1] if pages else None, descending, limit=7)):
        assert len(page) <= 7
        pages += page
    assert pages == (ids[::-1] if descending else ids)


def test_failed_tasks_have_a_separate_list(task_store: TaskStore) -> None:
    """The write that fails a task also adds the task to its owner's list of failed tasks, which has no other tasks."""
    ids = spread(task_store, "ann", 6)
    running, created_failed = task(id=numbered(70), state=State.RUNNING), task(id=numbered(71), state=State.FAILED)
    task_store.create(replace(running, owner="ann"))
    task_store.create(replace(created_failed, owner="ann"))
    assert task_store.list_ids(ListQuery("ann", failed_only=True)) == [created_failed.id]
    task_store.apply(Write(running.id, Move.FAIL, "n"))
    assert task_store.list_ids(ListQuery("ann", failed_only=True)) == sorted([running.id, created_failed.id])[::-1]
    assert set(task_store.list_ids(ListQuery("ann"))) == {*ids, running.id, created_failed.id}


def test_timers_are_not_listed(task_store: TaskStore) -> None:
    """Timers have no index entry, so an owner's list contains only records."""
    task_store.add_timer(Timer(numbered(1), 1, HOME, Priority.NORMAL, OWNER))
    assert task_store.list_ids(ListQuery(OWNER)) == []


def test_a_schedule_timer_is_read_back_unchanged(task_store: TaskStore) -> None:
    """A schedule's timer is in the shard of its id, beside tasks, and writing it twice leaves one item."""
    here = task()
    task_store.create(here)
    timer = ScheduleTimer(numbered(7), "an#owner", "nightly", 12, HOME + 5)
    later = replace(timer, generation=13, at=HOME + MINUTE)
    for each in (timer, timer, later):
        task_store.add_schedule_timer(each)
    found = items_of(task_store, minute_of(HOME), here.id.shard)
    assert sorted(map(repr, found)) == sorted(map(repr, [Entry.of(here), timer]))
    assert items_of(task_store, minute_of(HOME) + 1, here.id.shard) == [later]
