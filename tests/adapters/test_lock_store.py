from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb.locks import DynamoLockStore
from duetime.domain.limits import MAX_LOCK_HOLDERS
from duetime.domain.locks import Holder, Lock, LockClaim, LockName, Waiter
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import DAY, MINUTE
from tests.adapters.clouds import EXECUTOR, Cloud
from tests.adapters.examples import HOME, numbered
from tests.adapters.test_races import CONTENDERS, in_rounds, winners

if TYPE_CHECKING:
    from duetime.ports.stores import LockStore

NAME = LockName("ann", "db-17")
UNTIL = HOME + MINUTE
LATER = HOME + DAY
HELD = Lock(NAME, (Holder(numbered(1), 7, UNTIL),))


def test_a_lock_that_was_never_taken_is_free(lock_store: LockStore) -> None:
    """A lock that was never taken is read with no holders and no waiting tasks, and is not listed."""
    assert lock_store.read(NAME, 5) == (Lock(NAME), [])
    assert lock_store.read_many([NAME]) == []
    assert lock_store.list_keys("ann", "", 10) == []


def test_saved_lock_holders_are_read_back(lock_store: LockStore) -> None:
    """Saved holders are read back with the next version."""
    holders = tuple(Holder(numbered(number), number, UNTIL + number) for number in range(MAX_LOCK_HOLDERS))
    assert lock_store.save(Lock(NAME, holders), "n1", LATER)
    assert lock_store.read(NAME, 0) == (Lock(NAME, holders, 1), [])
    assert lock_store.read_many([NAME, LockName("ann", "none")]) == [Lock(NAME, holders, 1)]


def test_only_the_version_that_was_read_is_replaced(lock_store: LockStore) -> None:
    """If two saves or two creations are based on one version, the second is refused."""
    assert lock_store.save(HELD, "n1", LATER)
    assert not lock_store.save(HELD, "n2", LATER)
    read, _ = lock_store.read(NAME, 0)
    assert lock_store.save(replace(read, holders=()), "n3", LATER)
    assert not lock_store.save(replace(read, holders=HELD.holders), "n4", LATER)
    assert lock_store.read(NAME, 0)[0].holders == ()


def test_a_repeated_save_of_a_lock_succeeds(lock_store: LockStore) -> None:
    """Repeating a save that was applied succeeds and changes nothing."""
    assert lock_store.save(HELD, "n1", LATER)
    assert lock_store.save(HELD, "n1", LATER)
    assert lock_store.read(NAME, 0)[0].version == 1


@pytest.mark.parametrize(("older", "newer"), [(0, 1), (1, 2), (9, 10), (11, 12), (99, 100)])
def test_an_older_attempt_cannot_replace_a_newer_one(lock_store: LockStore, older: int, newer: int) -> None:
    """Replacing a newer attempt with an older one is refused even at the stored version; other saves succeed."""
    task, other = numbered(1), numbered(2)
    assert lock_store.save(Lock(NAME, (Holder(task, newer, UNTIL),)), "n1", LATER)
    stored, _ = lock_store.read(NAME, 0)
    late = Holder(task, older, LATER)
    assert not lock_store.save(replace(stored, holders=(late,)), "n2", LATER, late)
    assert lock_store.read(NAME, 0)[0] == stored
    beside = Holder(other, older, LATER)
    assert lock_store.save(replace(stored, holders=(*stored.holders, beside)), "n3", LATER, beside)
    again = Holder(task, newer, LATER)
    stored, _ = lock_store.read(NAME, 0)
    assert lock_store.save(replace(stored, holders=(again, beside)), "n4", LATER, again)
    after = Holder(task, newer + 1, LATER)
    stored, _ = lock_store.read(NAME, 0)
    assert lock_store.save(replace(stored, holders=(after, beside)), "n5", LATER, after)


def test_the_first_save_of_a_lock_succeeds(lock_store: LockStore) -> None:
    """A lock that is not stored yet can be saved, and repeating the save succeeds."""
    assert lock_store.save(HELD, "n1", LATER, HELD.holders[0])
    assert lock_store.save(HELD, "n1", LATER, HELD.holders[0])
    assert lock_store.read(NAME, 0)[0].holders == HELD.holders


def test_only_the_holder_can_renew_a_hold(lock_store: LockStore) -> None:
    """Only the holder with the same fence renews a hold; other attempts, other tasks and unknown locks are refused."""
    lock_store.save(HELD, "n1", LATER)
    assert lock_store.renew(NAME, Holder(numbered(1), 7, UNTIL + MINUTE), LATER)
    assert lock_store.read(NAME, 0)[0].holders == (Holder(numbered(1), 7, UNTIL + MINUTE),)
    for other in (Holder(numbered(1), 6, LATER), Holder(numbered(1), 70, LATER), Holder(numbered(2), 7, LATER)):
        assert not lock_store.renew(NAME, other, LATER)
    assert not lock_store.renew(LockName("ann", "none"), HELD.holders[0], LATER)
    assert lock_store.read(NAME, 0)[0].holders == (Holder(numbered(1), 7, UNTIL + MINUTE),)


def test_a_late_renewal_does_not_shorten_a_hold(lock_store: LockStore) -> None:
    """A renewal that arrives late does not shorten a longer renewal, and the holder keeps the lock."""
    assert lock_store.save(HELD, "n1", LATER)
    assert lock_store.renew(NAME, Holder(numbered(1), 7, LATER), LATER)
    assert lock_store.renew(NAME, Holder(numbered(1), 7, LATER - 1), LATER)
    assert lock_store.read(NAME, 1)[0].holder(numbered(1)) == Holder(numbered(1), 7, LATER)


def test_a_save_based_on_a_version_before_a_renewal_is_rejected(lock_store: LockStore) -> None:
    """A save that is based on a version before a renewal is refused, so the renewed lock is not taken."""
    lock_store.save(HELD, "n1", LATER)
    read, _ = lock_store.read(NAME, 0)
    lock_store.renew(NAME, Holder(numbered(1), 7, LATER), LATER + DAY)
    assert not lock_store.save(replace(read, holders=()), "n2", LATER)


def test_waiting_tasks_are_ordered_by_due_time(lock_store: LockStore) -> None:
    """Waiting tasks are read by due time and then by id, up to the limit."""
    line = [Waiter(HOME + due, numbered(number), 3) for due, number in ((0, 5), (0, 6), (9, 1), (10, 2), (100_000, 3))]
    for waiter in reversed(line):
        lock_store.join(NAME, waiter, LATER)
    assert lock_store.read(NAME, 10)[1] == line
    lock_store.save(HELD, "n1", LATER)
    assert lock_store.read(NAME, 3)[1] == line[:3]


def test_removing_an_earlier_place_keeps_the_current_place(lock_store: LockStore) -> None:
    """Removing a task's earlier place has no effect on its current place, and a removed place is gone."""
    first, again = Waiter(HOME, numbered(1), 3), Waiter(HOME, numbered(1), 5)
    lock_store.join(NAME, first, LATER)
    lock_store.join(NAME, again, LATER)
    lock_store.leave(NAME, first)
    assert lock_store.read(NAME, 5)[1] == [again]
    lock_store.leave(NAME, again)
    lock_store.leave(NAME, again)
    assert lock_store.read(NAME, 5)[1] == []


def test_locks_are_listed_only_for_their_owner(lock_store: LockStore) -> None:
    """An owner's locks are listed page by page in the order of their keys, without other owners' locks."""
    keys = [f"lock-{number:02}" for number in range(25)]
    for key in keys:
        lock_store.save(Lock(LockName("ann", key)), "n1", LATER)
    lock_store.save(Lock(LockName("ann2", "lock-00b")), "n1", LATER)
    assert lock_store.list_keys("ann", "", 10) == keys[:10]
    assert lock_store.list_keys("ann", keys[9], 100) == keys[10:]


@pytest.mark.slow
@pytest.mark.engine
@in_rounds
def test_one_of_sixteen_concurrent_tasks_gets_a_lock(engine_cloud: Cloud, rounds: int) -> None:
    """If sixteen tasks try to take a free lock at the same time, exactly one task gets the lock."""
    store = DynamoLockStore(engine_cloud.dynamodb, engine_cloud.table(), EXECUTOR)

    def contend(number: int, who: int) -> bool:
        lock, _ = store.read(LockName("ann", f"{number}"), 1)
        return store.save(lock.held_by(Holder(numbered(who), 1, UNTIL)), f"{who}", LATER) if not lock.holders else False

    assert winners(contend, rounds) == [1] * rounds


@pytest.mark.slow
@pytest.mark.engine
def test_four_of_sixteen_concurrent_tasks_get_four_places(engine_cloud: Cloud) -> None:
    """If sixteen tasks compete for four places at the same time, with retries, exactly four tasks get a place."""
    store = DynamoLockStore(engine_cloud.dynamodb, engine_cloud.table(), EXECUTOR)

    def contend(number: int, who: int) -> bool:
        while True:
            lock, _ = store.read(LockName("ann", f"{number}"), 1)
            if lock.room(LockClaim(lock.name, 4, LockScope.TASK)) <= 0:
                return False
            if store.save(lock.held_by(Holder(numbered(who), 1, UNTIL)), f"{who} {lock.version}", LATER):
                return True

    assert winners(contend, 10) == [4] * 10
    assert CONTENDERS > 4
