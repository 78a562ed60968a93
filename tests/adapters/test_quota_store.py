"""Tests the stores of the quotas that operators set and of each owner's usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import QUOTA_WINDOW
from duetime.domain.quotas import Hold, OwnerQuotas, Quota, Quotas, StoredQuotas, window_at
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import QuotaStore, QuotaUseStore

LATER = HOME + 30_000
WINDOW = window_at(HOME)


def test_quotas_are_stored_only_at_the_version_read(quota_store: QuotaStore) -> None:
    """A write that is sent twice is stored once; a write based on an earlier version is refused."""
    assert quota_store.read(consistent=True) == StoredQuotas()
    ann = OwnerQuotas("ann", Quotas(creates_per_second=5, pull_leases=1), "a loop", HOME, "boss")
    wanted = StoredQuotas().with_owner(ann)
    assert quota_store.save(wanted, "a")
    assert quota_store.save(wanted, "a")
    assert not quota_store.save(wanted, "b")
    assert quota_store.read(consistent=True) == StoredQuotas({"ann": ann}, 1)


def test_usage_is_counted_by_window_and_quota(quota_use: QuotaUseStore) -> None:
    """Each addition returns the counts of its window, and the last three windows can be read."""
    for number, window in enumerate((WINDOW - 3, WINDOW - 2, WINDOW - 1, WINDOW)):
        assert quota_use.add("ann", window, Quota.CREATES, number + 1, None, LATER)[0]
    assert quota_use.add("ann", WINDOW, Quota.READS, 7, None, LATER) == (True, {Quota.CREATES: 4, Quota.READS: 7})
    counts = quota_use.counts("ann", HOME)
    assert (counts.window, counts.present) == (WINDOW, {Quota.CREATES: 4, Quota.READS: 7})
    assert (counts.previous, counts.earlier) == ({Quota.CREATES: 3}, {Quota.CREATES: 2})
    assert quota_use.counts("ann", HOME + 9 * QUOTA_WINDOW).present == {}
    assert quota_use.counts("bob", HOME).present == {}


def test_an_addition_to_a_full_count_is_rejected(quota_use: QuotaUseStore) -> None:
    """An addition that is rejected because the window is full returns the counts."""
    assert quota_use.add("ann", WINDOW, Quota.CREATES, 9, 10, LATER) == (True, {Quota.CREATES: 9})
    assert quota_use.add("ann", WINDOW, Quota.CREATES, 9, 10, LATER) == (True, {Quota.CREATES: 18})
    assert quota_use.add("ann", WINDOW, Quota.CREATES, 9, 10, LATER) == (False, {Quota.CREATES: 18})


def test_a_quota_place_has_one_holder_at_a_time(quota_use: QuotaUseStore) -> None:
    """A place becomes free when its holder drops it or when its time is over, unless the holder renews it."""
    polls = Quota.LONG_POLLS
    assert quota_use.take("ann", polls, 1, "a", HOME, LATER)
    assert quota_use.take("ann", polls, 1, "a", HOME, LATER + 1)
    assert not quota_use.take("ann", polls, 1, "b", HOME + 1, LATER)
    assert quota_use.take("ann", Quota.CONCURRENT_ATTEMPTS, 1, "b", HOME + 1, LATER)
    assert quota_use.take("bob", polls, 1, "b", HOME + 1, LATER)
    assert quota_use.holds("ann", polls) == {"1": Hold(1, LATER + 1)}
    quota_use.drop("ann", polls, "1", "b")
    assert not quota_use.take("ann", polls, 1, "c", LATER + 1, LATER + 2)
    quota_use.drop("ann", polls, "1", "a")
    quota_use.drop("ann", polls, "1", "a")
    assert quota_use.take("ann", polls, 1, "c", HOME + 2, LATER)
    assert quota_use.take("ann", polls, 1, "d", LATER + 1, LATER + 2)


def test_the_usage_of_an_owner_is_listed_until_dropped(quota_use: QuotaUseStore) -> None:
    """Each quota's use is listed separately until it is dropped; storing the same use again changes nothing."""
    for _ in range(2):
        quota_use.hold("ann", Quota.TOPOLOGY_NODES, "t1", Hold(40), LATER)
    quota_use.hold("ann", Quota.TOPOLOGY_NODES, "t2", Hold(2), LATER)
    quota_use.hold("ann", Quota.PULL_LEASES, "t1", Hold(3), LATER)
    assert quota_use.holds("ann", Quota.TOPOLOGY_NODES) == {"t1": Hold(40), "t2": Hold(2)}
    quota_use.drop("ann", Quota.TOPOLOGY_NODES, "t1")
    assert quota_use.holds("ann", Quota.TOPOLOGY_NODES) == {"t2": Hold(2)}
    assert quota_use.holds("ann", Quota.PULL_LEASES) == {"t1": Hold(3)}
