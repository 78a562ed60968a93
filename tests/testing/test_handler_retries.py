"""Tests retries that handlers control with `RetryIn`, `retry_on` and `no_retry_on`, in the testing kit."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.handlers import REGISTRY, Context, RetryIn, handler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from duetime_client import RetryPolicy
    from duetime_testing import Duetime

LONG: RetryPolicy = {"max_attempts": 3, "initial_seconds": 3_600, "max_seconds": 3_600}
"""A retry policy whose waits differ from the waits that handlers request."""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Remove the registered handlers after the test."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def test_attempts_start_at_the_time_requested_by_the_handler(duetime: Duetime) -> None:
    """Attempts start exactly when requested, earlier or later than with the policy, up to the last attempt."""
    started: list[datetime] = []

    async def work(_context: Context, _payload: object) -> None:
        started.append(duetime.now)
        raise RetryIn(7 if len(started) == 1 else 7_200)

    duetime.register("report", work)
    task = duetime.client.tasks.create("report", retry=LONG)
    duetime.run_until_idle()
    waits = [(later - before).total_seconds() for before, later in pairwise(started)]
    assert waits == [7, 7_200]
    ended = duetime.client.tasks.get(task.id)
    assert (ended.state, ended.attempt) == ("failed", 3)
    assert ended.error is not None
    assert ended.error.type == "RetryIn"


def test_a_retry_beyond_the_longest_duration_fails_the_task(duetime: Duetime) -> None:
    """If a requested retry is beyond the longest duration, the task fails at once."""

    def work(_context: Context, _payload: object) -> None:
        raise RetryIn(61)

    duetime.register("report", work)
    task = duetime.client.tasks.create("report", retry={**LONG, "max_duration_seconds": 60})
    duetime.run_until_idle()
    ended = duetime.client.tasks.get(task.id)
    assert (ended.state, ended.attempt) == ("failed", 1)


def test_a_rollback_can_request_a_retry(duetime: Duetime) -> None:
    """A handler class's rollback can request a retry, although the class's rule makes `run` fail at once."""
    started: list[datetime] = []

    @handler("tests.transfer", no_retry_on=(ValueError,))
    class Transfer:
        def run(self, _context: Context, _payload: object) -> None:
            raise ValueError

        def rollback(self, _context: Context, _payload: object) -> None:
            started.append(duetime.now)
            if len(started) == 1:
                raise RetryIn(5)

    duetime.register("transfer", Transfer)
    began = duetime.now
    task = duetime.client.tasks.create("transfer", retry=LONG, rollback_on_failure=True)
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).state == "rolled_back"
    assert started[0] - began < timedelta(seconds=2)
    # Unlike a run, a rollback starts up to a second late.
    assert timedelta(seconds=5) <= started[1] - started[0] < timedelta(seconds=6)


@pytest.mark.parametrize("is_decorated", [True, False])
def test_a_registered_handler_has_the_retry_rule_of_its_decorator(duetime: Duetime, *, is_decorated: bool) -> None:
    """The rule comes from the handler's decorator unless the test gives another rule."""

    def work(_context: Context, payload: str) -> None:
        raise {"lost": ConnectionError, "refused": ConnectionRefusedError, "other": KeyError}[payload]

    options: dict[str, Any] = {"retry_on": (ConnectionError,), "no_retry_on": (ConnectionRefusedError,)}
    if is_decorated:
        duetime.register("report", handler("tests.report", **options)(work))
    else:
        duetime.register("report", work, **options)
    tasks = [duetime.client.tasks.create("report", payload=name, retry=LONG) for name in ("lost", "refused", "other")]
    duetime.run_until_idle()
    assert [duetime.client.tasks.get(task.id).attempt for task in tasks] == [3, 1, 1]
