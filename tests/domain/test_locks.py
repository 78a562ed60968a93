"""Tests who holds a lock, when a hold has ended by every clock, and how long a lock is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_LEASE_SECONDS
from duetime.domain.locks import RESERVED, HandOver, Holder, Lock, LockClaim, LockName, Waiter, is_dead
from duetime.domain.operating_parameters import LOCK_LIFE, LONGEST_LOCK_HOLD, MAX_CLOCK_DIFFERENCE, TOPOLOGY_MARGIN
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import MINUTE, SECOND
from tests.clocks import NOW
from tests.domain.factories import task as waiting_task

NAME = LockName("me", "db-17")
TASKS = [TaskId.of(NOW, 0, number) for number in range(4)]
HOLDERS = st.lists(
    st.builds(Holder, st.sampled_from(TASKS), st.integers(0, 200), st.integers(NOW - MINUTE, NOW + LONGEST_LOCK_HOLD)),
    max_size=4,
    unique_by=lambda holder: holder.task_id,
)


def _claim(limit: int = 1, *, is_shared: bool = False) -> LockClaim:
    return LockClaim(NAME, limit, LockScope.TASK, is_shared)


@pytest.mark.parametrize("is_shared", [False, True])
def test_shared_and_exclusive_holders_exclude_each_other(is_shared: bool) -> None:  # noqa: FBT001 - a test parameter
    """Holders in the other mode leave no room; holders in the same mode share the lock up to its limit."""
    lock = Lock(NAME, (Holder(TASKS[0], 1, NOW, is_shared),))
    assert lock.room(_claim(100, is_shared=not is_shared)) == 0
    assert lock.room(_claim(100, is_shared=is_shared)) == 99


def test_a_shared_lock_has_no_room_behind_an_exclusive_waiter() -> None:
    """A shared lock has no room behind an exclusive waiter, because that waiter could otherwise wait forever."""
    lock = Lock(NAME, (Holder(TASKS[0], 1, NOW, is_shared=True),))
    sharing, alone = Waiter(NOW, TASKS[1], 0, is_shared=True), Waiter(NOW, TASKS[1], 0)
    shared = _claim(100, is_shared=True)
    assert not lock.is_closed_for(shared, TASKS[2], [])
    assert not lock.is_closed_for(shared, TASKS[2], [sharing])
    assert lock.is_closed_for(shared, TASKS[2], [alone])
    assert Lock(NAME).is_closed_for(_claim(2), TASKS[2], [sharing])


def test_a_shared_reservation_does_not_count_for_an_exclusive_lock() -> None:
    """A task that has a shared reservation and now needs the lock exclusively waits until no other holder is left."""
    lock = Lock(NAME, (Holder(TASKS[0], RESERVED, NOW, is_shared=True), Holder(TASKS[1], 1, NOW, is_shared=True)))
    assert lock.is_closed_for(_claim(), TASKS[0], [])
    assert not lock.without(TASKS[1], 1).is_closed_for(_claim(), TASKS[0], [])


def test_an_exclusive_waiter_waits_until_the_last_shared_hold_has_ended() -> None:
    """An exclusive waiter waits until the last shared hold has ended by every clock."""
    lock = Lock(NAME, tuple(Holder(task, 1, NOW + number, is_shared=True) for number, task in enumerate(TASKS)))
    assert lock.frees_at(_claim(9)) == NOW + len(TASKS) - 1 + MAX_CLOCK_DIFFERENCE
    assert lock.frees_at(_claim(9, is_shared=True)) == 0


def test_a_hand_over_ends_at_the_first_waiter_of_the_other_mode() -> None:
    """When a lock is passed on, tasks that share it are let in together, up to the first exclusive task."""
    made = [waiting_task(id=task_id) for task_id in TASKS]
    hand_over = HandOver(Lock(NAME))
    for task, is_shared in zip(made, (True, True, False, True), strict=True):
        if not hand_over.is_full:
            claim = _claim(100 if is_shared else 1, is_shared=is_shared)
            hand_over = hand_over.admit(Waiter(NOW, task.id, 0, is_shared), task, claim, NOW)
    assert [task.id for _, task in hand_over.admitted] == TASKS[:2]
    assert hand_over.is_full


def test_a_hold_ends_for_others_only_when_it_is_over_by_every_clock() -> None:
    """Because clocks may differ by five seconds, a hold ends for other tasks only five seconds after its expiry."""
    lock = Lock(NAME, (Holder(TASKS[0], 1, NOW),))
    assert lock.living(NOW + MAX_CLOCK_DIFFERENCE - 1) == lock
    assert lock.living(NOW + MAX_CLOCK_DIFFERENCE).holders == ()


def test_a_waiter_checks_when_the_next_hold_is_over_by_every_clock() -> None:
    """A waiter checks at the end of the first hold that makes room, or at once if there is room."""
    lock = Lock(NAME, (Holder(TASKS[0], 1, NOW + MINUTE), Holder(TASKS[1], 1, NOW)))
    assert lock.frees_at(_claim(2)) == NOW + MAX_CLOCK_DIFFERENCE
    assert lock.frees_at(_claim(1)) == NOW + MINUTE + MAX_CLOCK_DIFFERENCE
    assert lock.frees_at(_claim(3)) == 0


@given(HOLDERS, st.sampled_from(TASKS), st.integers(RESERVED, 200))
def test_the_latest_attempt_of_a_task_holds_its_lock(holders: list[Holder], task: TaskId, fence: int) -> None:
    """A late writer with an older fence replaces no hold, and each task has only one hold on a lock."""
    lock = Lock(NAME, tuple(holders))
    held = lock.held_by(Holder(task, fence, NOW))
    before = lock.holder(task)
    after = held.holder(task)
    assert after is not None
    assert after.fence == max(fence, before.fence if before else fence)
    assert len({holder.task_id for holder in held.holders}) == len(held.holders)
    assert {h for h in held.holders if h.task_id != task} == {h for h in lock.holders if h.task_id != task}


@given(HOLDERS)
def test_a_stored_lock_expires_only_after_all_its_holds(holders: list[Holder]) -> None:
    """A stored lock expires only after all its holds, so that a task that takes or returns it sees all holders."""
    lock = Lock(NAME, tuple(holders))
    assert lock.expires_at(NOW) >= max([NOW, *(holder.expires_at + MAX_CLOCK_DIFFERENCE for holder in holders)])
    assert lock.expires_at(NOW) >= NOW + LOCK_LIFE


@given(HOLDERS, st.integers(NOW - MINUTE, NOW + LONGEST_LOCK_HOLD))
def test_a_renewed_lock_is_stored_for_longer_than_the_longest_hold(others: list[Holder], until: int) -> None:
    """A renewal does not read the other holders, so the lock's expiry allows for the longest possible hold."""
    expires_at = Lock.renewal_expires_at(NOW, until)
    assert expires_at >= max(until, *(holder.expires_at for holder in others), NOW) + MAX_CLOCK_DIFFERENCE


def test_the_longest_hold_covers_the_longest_deadline_and_lease() -> None:
    """The longest hold covers the longest deadline, including that of topologies, and the longest lease."""
    assert LONGEST_LOCK_HOLD >= MAX_DEADLINE_SECONDS * SECOND + TOPOLOGY_MARGIN
    assert LONGEST_LOCK_HOLD >= MAX_LEASE_SECONDS * SECOND


def test_a_waiter_gets_a_reservation_only_within_its_own_limit() -> None:
    """With a limit of one holder, the first of two waiters gets a reservation, and the second finds the lock full."""
    first, second = (waiting_task(id=task_id) for task_id in TASKS[:2])
    waiters = [Waiter(NOW, task.id, task.generation) for task in (first, second)]
    one = HandOver(Lock(NAME)).admit(waiters[0], first, _claim(1), NOW + SECOND)
    assert one.lock.holders == (Holder(first.id, RESERVED, NOW + SECOND),)
    assert not one.is_full
    both = one.admit(waiters[1], second, _claim(1), NOW + SECOND)
    assert (both.is_full, both.lock, both.admitted) == (True, one.lock, ((waiters[0], first),))
    assert one.admit(waiters[1], second, _claim(2), NOW + SECOND).lock.holder(second.id) is not None


def test_repeating_a_hand_over_wakes_the_waiter_with_a_single_place() -> None:
    """If passing on a lock crashes after the write, the repeat wakes the task again, with a single place."""
    task = waiting_task()
    reserved = Lock(NAME, (Holder(task.id, RESERVED, NOW),))
    again = HandOver(reserved).admit(Waiter(NOW, task.id, 0), task, _claim(1), NOW + SECOND)
    assert (again.lock, len(again.admitted), again.is_full) == (reserved, 1, False)


def test_a_task_that_no_longer_waits_loses_only_its_reservation() -> None:
    """A task that no longer waits loses its reservation, but an attempt that has claimed the lock keeps its hold."""
    lock = Lock(NAME, (Holder(TASKS[0], RESERVED, NOW), Holder(TASKS[1], 3, NOW)))
    waiters = [Waiter(NOW, task_id, 0) for task_id in TASKS[:2]]
    left = HandOver(lock).dismiss(waiters[0], None).dismiss(waiters[1], None)
    assert left.lock.holders == (Holder(TASKS[1], 3, NOW),)
    assert left.departed == tuple(waiters)


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        ({"state": State.WAITING, "next_at": NOW}, True),
        ({"state": State.WAITING, "next_at": NOW + SECOND}, False),
        ({"state": State.RUNNING, "next_at": NOW + MINUTE}, True),
        ({"state": State.PAUSED, "next_at": NOW}, False),
        ({"state": State.CANCELLED, "next_at": NOW}, False),
    ],
)
def test_removing_an_outdated_place_does_not_end_the_tasks_reservation(changes: dict[str, Any], is_kept: bool) -> None:  # noqa: FBT001 - a test parameter
    """The removal of an outdated place ends the task's reservation only if the task no longer waits."""
    task = replace(waiting_task(id=TASKS[0]), **changes)
    lock = Lock(NAME, (Holder(task.id, RESERVED, NOW + SECOND),))
    left = HandOver(lock).dismiss(Waiter(NOW, task.id, 0), task)
    assert (left.lock == lock, len(left.departed)) == (is_kept, 1)


@pytest.mark.parametrize(
    ("changes", "dead"),
    [
        ({"state": State.RUNNING, "lease_expires_at": NOW}, False),
        ({"state": State.ROLLING_BACK}, False),
        ({"state": State.SUCCEEDED}, False),
        ({"state": State.WAITING, "lease_expires_at": NOW}, False),
        ({"state": State.WAITING}, True),
        ({"state": State.PAUSED}, True),
        ({"state": State.SUCCEEDED, "finished_at": NOW}, True),
        ({"state": State.RUNNING, "lease_expires_at": NOW, "fence": 4}, True),
    ],
)
def test_a_holder_is_dead_once_its_own_attempt_is_over(changes: dict[str, Any], dead: bool) -> None:  # noqa: FBT001 - a test parameter
    """A holder is dead only after its follow-ups, when no process can still be working; a reservation is never dead."""
    task = replace(waiting_task(), **{"fence": 3, "lease_expires_at": None, **changes})
    assert is_dead(Holder(task.id, 3, NOW), task) is dead
    assert not is_dead(Holder(task.id, RESERVED, NOW), task)
    assert is_dead(Holder(task.id, 3, NOW), None)
