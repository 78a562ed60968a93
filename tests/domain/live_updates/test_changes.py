from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.change_events import Change, ChangeBatch, ScheduleSnapshot
from duetime.domain.limits import MAX_PUSHED_CHANGES
from duetime.domain.live_updates import Connection, Topic, TopicKind, by_owner, latest, pushes, watched
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause, NodeRef, ScheduleRef
from tests.domain.factories import NOW
from tests.domain.live_updates.change_snapshots import CONNECTION, change, snapshot, subscription, task_id, write


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5))))
def test_of_several_changes_of_a_record_the_newest_is_told_in_whatever_order_they_come(
    writes: list[tuple[int, int]],
) -> None:
    """Repeated, reordered and omitted writes merge into one change, from the oldest state to the newest."""
    found = {each.subject.name: each for each in latest(write(*each) for each in writes)}
    assert found.keys() == {task_id(number).text for number, _ in writes}
    for number in {number for number, _ in writes}:
        versions = [version for each, version in writes if each == number]
        merged = found[task_id(number).text]
        assert merged.version == max(versions)
        assert merged.after == snapshot(number, max(versions))
        assert merged.before == (snapshot(number, min(versions) - 1) if min(versions) > 1 else None)


def test_a_removal_is_newer_than_what_was_removed() -> None:
    """A deletion is reported even if the last write is in the same batch or comes later."""
    last = snapshot(1, 3)
    removed = change(last, None)
    assert (removed.version, removed.after) == (4, None)
    (merged,) = latest([removed, write(1, 3)])
    assert (merged.version, merged.after) == (4, None)


def test_an_erased_task_is_gone_for_its_owner() -> None:
    """When a task is erased, its record is kept for a while, but watchers get a deletion."""
    before, after = snapshot(1, 3), snapshot(1, 4, erased=True)
    assert change(before, after).after is None
    assert change(after, None).before is None


def test_a_connection_is_told_of_what_it_watches_only() -> None:
    """A subscription covers one task, a topology with its nodes, a schedule with its runs, or a filter's matches."""
    node = replace(snapshot(2, 1), node_ref=NodeRef(task_id(9), 1, "a"))
    run = replace(snapshot(3, 1), schedule_ref=ScheduleRef("nightly", 1, NOW, Cause.SCHEDULE))
    failed = snapshot(4, 1, state=State.FAILED)
    schedule = ScheduleSnapshot(
        owner="me", name="nightly", uid=task_id(5), state=ScheduleState.ACTIVE, version=1, edition=6
    )
    batch = ChangeBatch(
        tuple(Change("e", NOW, None, each) for each in (snapshot(1, 1), node, run, failed, snapshot(9, 1))),
        (Change("e", NOW, None, schedule),),
    )
    wanted = [
        subscription(Topic(TopicKind.TASK, task_id(1).text), "task"),
        subscription(Topic(TopicKind.TOPOLOGY, task_id(9).text), "topology"),
        subscription(Topic(TopicKind.SCHEDULE, "nightly"), "schedule"),
        subscription(ref="failed", task_filter=TaskFilter(states=(State.FAILED,))),
    ]
    (push,) = pushes(wanted, watched(batch))
    assert {notice.change.subject.name: notice.refs for notice in push.notices} == {
        task_id(1).text: ("task",),
        task_id(2).text: ("topology",),
        task_id(9).text: ("topology",),
        task_id(3).text: ("schedule",),
        task_id(4).text: ("failed",),
        "nightly": ("schedule",),
    }


def test_a_task_that_leaves_a_list_is_told_to_those_who_list_it() -> None:
    """A subscription to running tasks reports a task that has ended and left the list."""
    ended = change(snapshot(1, 2, state=State.RUNNING), snapshot(1, 3, state=State.SUCCEEDED))
    running = subscription(ref="running", task_filter=TaskFilter(states=(State.RUNNING,)))
    all_tasks = subscription(ref="all")
    (push,) = pushes([running, all_tasks], [ended])
    ((notice),) = push.notices
    assert (notice.refs, notice.left) == (("all",), ("running",))


def test_too_many_changes_for_a_connection_are_told_as_one_word() -> None:
    """Up to a hundred changes are sent; for more changes, each subscription is asked to read its list again."""
    many = [write(number, 1) for number in range(MAX_PUSHED_CHANGES + 1)]
    one = subscription(Topic(TopicKind.TASK, task_id(0).text), "one", connection=Connection("c2", "me", NOW))
    flooded, calm = pushes([subscription(ref="a"), subscription(ref="b"), one], many)
    assert (flooded.connection, flooded.notices, flooded.stale) == (CONNECTION.id, (), ("a", "b"))
    assert (calm.connection, len(calm.notices), calm.stale) == ("c2", 1, ())
    (full,) = pushes([subscription()], many[:-1])
    assert (len(full.notices), full.stale) == (MAX_PUSHED_CHANGES, ())


def test_nobody_who_watches_something_else_is_told_anything() -> None:
    """A connection without matching changes gets no push."""
    assert pushes([subscription(Topic(TopicKind.TASK, task_id(7).text))], [write(1, 1)]) == []


def test_changes_are_told_by_owner() -> None:
    """Changes are separated by owner first, so that no filter can reach another owner's changes."""
    mine, others = write(1, 1), write(2, 1, owner="you")
    assert by_owner([mine, others, write(1, 2)]) == {"me": [replace(write(1, 2), before=None)], "you": [others]}
