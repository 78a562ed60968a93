from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.limits import MAX_ATTEMPTS
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.attempt_results import Failed
from duetime.domain.tasks.task_options import RetryPolicy
from duetime.domain.times import SECOND
from tests.domain.factories import NOW

policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 100),
    initial_seconds=st.floats(0, 3600),
    multiplier=st.floats(1, 100),
    max_seconds=st.floats(0, 86_400),
)


@given(policies, st.integers(1, 1000), st.floats(0, 1, exclude_max=True))
def test_full_jitter_draws_a_wait_between_zero_and_the_bound(
    policy: RetryPolicy, attempt: int, random_source: float
) -> None:
    """With full jitter, a wait is between zero and its bound, which is never larger than the policy's maximum."""
    wait = policy.wait(attempt, random_source)
    assert 0 <= wait <= policy.bound(attempt) <= policy.max_seconds * 1000


@given(policies, st.integers(1, 1000))
def test_the_bound_on_the_wait_never_decreases_with_attempts(policy: RetryPolicy, attempt: int) -> None:
    """The bound on the wait after an attempt is never smaller than the bound after an earlier attempt."""
    assert policy.bound(attempt) <= policy.bound(attempt + 1)


def test_the_default_bounds_double_from_one_second_to_five_minutes() -> None:
    """The default bounds double from one second to five minutes."""
    assert [RetryPolicy().bound(attempt) for attempt in (1, 2, 3, 9, 10)] == [1000, 2000, 4000, 256_000, 300_000]


def test_the_wait_grows_up_to_the_last_attempt() -> None:
    """With a small multiplier, the bound still grows after each of a hundred attempts."""
    policy = RetryPolicy(MAX_ATTEMPTS, initial_seconds=1, multiplier=1.05, max_seconds=86_400)
    bounds = [policy.bound(attempt) for attempt in range(1, MAX_ATTEMPTS)]
    assert bounds == [int(1.05**power * SECOND) for power in range(MAX_ATTEMPTS - 1)]


def test_there_is_no_retry_after_the_last_allowed_attempt() -> None:
    """If five attempts are allowed, none follows the fifth; if only one is allowed, none follows the first."""
    assert [RetryPolicy().allows_after(attempt) for attempt in (1, 4, 5, 6)] == [True, True, False, False]
    assert not RetryPolicy(max_attempts=1).allows_after(1)


@pytest.mark.parametrize(
    ("failed", "at"),
    [
        (Failed(TaskError("Boom", "")), NOW + SECOND),
        (Failed(TaskError("Boom", ""), wait_at_least=9 * SECOND), NOW + 9 * SECOND),
        (Failed(TaskError("RetryIn", ""), retry_in=SECOND // 2), NOW + SECOND // 2),
        (Failed(TaskError("RetryIn", ""), retry_in=9 * SECOND), NOW + 9 * SECOND),
        (Failed(TaskError("Timeout", ""), process_ends_at=NOW + 3 * SECOND), NOW + 3 * SECOND + LEASE_RETURN_MARGIN),
    ],
    ids=["by_its_policy", "as_the_target_asked", "sooner", "later", "after_its_process"],
)
def test_a_retry_waits_for_the_longest_required_time(failed: Failed, at: int) -> None:
    """The target and the process's end can lengthen the policy's wait, and the handler can replace the wait."""
    assert failed.retry_at(NOW, SECOND) == at
