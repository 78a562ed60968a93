"""Runs the same tests against a deployed stack, in real time (`--duetime-url`)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from duetime_client import Client
from duetime_testing.assertions import Assertions
from duetime_testing.errors import NeedsVirtualTime, NotIdle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LONGEST_ADVANCE = timedelta(minutes=5)
"""The longest time by which a test can advance; for more, the test is skipped, because the wait takes real time."""
_LONGEST_WAIT = timedelta(minutes=15)
_POLL_SECONDS = 1.0


class DeployedDuetime(Assertions):
    """Runs a test against a deployed stack, or skips a test that needs virtual time.

    The deployment's handlers run the tasks. `assert_ran` and `run_until_idle` consider only tasks created since the
    test began.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._began = datetime.now(UTC) - timedelta(seconds=1)

    @cached_property
    def client(self) -> Client:
        """A client of the stack's API."""
        return Client(self._url)

    def close(self) -> None:
        """Close the open connections."""
        self.client.close()

    @property
    def now(self) -> datetime:
        """The current time."""
        return datetime.now(UTC)

    @property
    def executions(self) -> Sequence[object]:
        """An empty sequence, because only the deployment knows the executions."""
        return ()

    @property
    def _errors(self) -> Sequence[str]:
        return ()

    def at(self, _moment: datetime | str) -> None:
        """Skip the test, because a deployment's clock cannot be set."""
        _skip("duetime.at")

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Wait in real time; a test that waits for longer than five minutes is skipped."""
        length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if length > LONGEST_ADVANCE:
            _skip(f"duetime.advance by {length}")
        time.sleep(length.total_seconds())

    def sleep(self, seconds: float) -> None:
        """Wait in real time."""
        self.advance(seconds=seconds)

    def run_until_idle(self) -> None:
        """Wait until all of the test's due tasks have ended.

        Raises:
            NotIdle: a task has not ended after 15 minutes.
        """
        until = self.now + _LONGEST_WAIT
        while self._waiting():
            if self.now > until:
                raise NotIdle(self._explained(f"not idle after {_LONGEST_WAIT}"))
            time.sleep(_POLL_SECONDS)

    def register(self, _task_type: str, _handler: Callable[..., Any]) -> None:
        """Do nothing, because the deployment has its own handlers."""

    def __getattr__(self, name: str) -> NoReturn:
        """Skip the test, because all other attributes, such as `faults` and `mode`, need virtual time."""
        if name.startswith("_"):
            raise AttributeError(name)
        _skip(f"duetime.{name}")

    def _waiting(self) -> list[object]:
        created = self.client.tasks.list(due_before=self.now)
        return [
            task
            for task in created
            if task.created_at >= self._began and task.finished_at is None and not _waits_outside(task.state)
        ]

    def _count_runs(self, task_type: str, payload: Any) -> int:  # noqa: ANN401 - any JSON
        tasks = self._created(task_type, payload, None)
        return sum(self.client.tasks.get(task.id).attempt for task in tasks if task.created_at >= self._began)


def _waits_outside(state: str) -> bool:
    return state in {"paused", "blocked"}


def _skip(what: str) -> NoReturn:
    pytest.skip(str(NeedsVirtualTime(what)))
