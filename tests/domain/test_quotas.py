"""Quotas: limits and counts."""

from __future__ import annotations

import pytest

from duetime.domain.operating_parameters import QUOTA_WINDOW
from duetime.domain.quotas import OwnerQuotas, Quota, Quotas, StoredQuotas, WindowCounts, is_close, portion
from duetime.domain.times import SECOND

START = 1_000 * QUOTA_WINDOW
CREATES = Quota.CREATES


def test_every_quota_is_a_field() -> None:
    """The enum and the class define the same quotas."""
    assert [quota.value for quota in Quota] == list(Quotas.__dataclass_fields__)


def test_default_quotas_apply_where_an_owner_has_no_own_quota() -> None:
    """An owner's own quotas take precedence; all other quotas keep their default values."""
    defaults = Quotas(creates_per_second=10, open_tasks=100)
    stored = StoredQuotas().with_owner(OwnerQuotas("ann", Quotas(creates_per_second=50, schedules=1)))
    assert stored.limits("ann", defaults) == Quotas(creates_per_second=50, open_tasks=100, schedules=1)
    assert stored.limits("bob", defaults) == defaults
    assert stored.with_owner(OwnerQuotas("ann")).by_owner == {}


def test_the_previous_windows_use_counts_in_proportion_to_its_overlap() -> None:
    """The previous window's use counts in proportion to the part of the last five seconds that it covers."""
    counts = WindowCounts(1_000, {CREATES: 10}, {CREATES: 40}, {CREATES: 7})
    assert counts.used(CREATES, START) == 50
    assert counts.used(CREATES, START + QUOTA_WINDOW // 4) == 40
    assert counts.used(CREATES, START + QUOTA_WINDOW) == 10
    assert counts.used(CREATES, START + 3 * QUOTA_WINDOW) == 0
    assert counts.lately(CREATES, START) == 57
    assert counts.lately(CREATES, START + QUOTA_WINDOW) == 50


@pytest.mark.parametrize(
    ("present", "previous", "passed"),
    [(50, 0, 0), (10, 60, 100), (0, 500, 0), (90, 90, 4_900), (50, 50, 2_500), (30, 25, 279)],
)
def test_a_request_repeated_after_the_given_wait_succeeds(present: int, previous: int, passed: int) -> None:
    """A repeat after the given wait succeeds; an earlier repeat is refused."""
    counts, now = WindowCounts(1_000, {CREATES: present}, {CREATES: previous}), START + passed
    wait = counts.retry_after(CREATES, 10, now)
    assert 0 < wait <= 2 * QUOTA_WINDOW
    assert counts.retry_after(CREATES, 10, now + wait) == 0
    assert counts.used(CREATES, now + wait - 2) >= 50


def test_an_owner_may_use_five_seconds_of_its_limit_at_once() -> None:
    """An owner can use five seconds' worth of its limit at once."""
    counts = WindowCounts(1_000, {CREATES: 49})
    assert counts.retry_after(CREATES, 10, START) == 0
    assert counts.room(CREATES, 10, START) == 50


def test_processes_report_use_in_smaller_steps_close_to_a_limit() -> None:
    """A process reports after using 1/20 of a per-second limit, or 1/100 once half of the window's limit is used."""
    assert not is_close(1_000, 2_499)
    assert is_close(1_000, 2_500)
    assert portion(1_000, close=False) == 50
    assert portion(1_000, close=True) == 10
    assert portion(5, close=False) == portion(5, close=True) == 1
    assert QUOTA_WINDOW == 5 * SECOND
