"""Assertions about executed tasks, created tasks and skipped occurrences; failure messages report what happened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from duetime_testing.failure_reports import report, skipped_runs
from duetime_testing.occurrence_skip_reasons import is_reason, names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from duetime_client import Client
    from duetime_client.task import Task


class _Anything:
    """A value that is equal to every other value."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # no hash can match all equal values

    def __repr__(self) -> str:
        return "anything"


ANYTHING: Any = _Anything()


class Assertions(ABC):
    """Assertions of a test."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """A client of the API."""

    @property
    @abstractmethod
    def now(self) -> datetime:
        """The current time."""

    @property
    @abstractmethod
    def executions(self) -> Sequence[object]:
        """The known executions."""

    @property
    @abstractmethod
    def _errors(self) -> Sequence[str]:
        """The exceptions raised by functions."""

    @abstractmethod
    def _count_runs(self, task_type: str, payload: Any) -> int:  # noqa: ANN401 - any JSON
        """How many times tasks of a type ran with the payload."""

    def assert_ran(self, task_type: str, *, times: int | None = None, payload: Any = ANYTHING) -> None:  # noqa: ANN401 - same
        """Assert that tasks of a type ran `times` times, including retries, or at least once if `times` is omitted."""
        found = self._count_runs(task_type, payload)
        if (found == 0) if times is None else (found != times):
            wanted = "at least once" if times is None else _times(times)
            about = "" if payload is ANYTHING else f" with the payload {payload!r}"
            raise AssertionError(self._explained(f"{task_type!r} ran {_times(found)}{about}, not {wanted}"))

    def assert_created(
        self,
        task_type: str,
        *,
        times: int | None = None,
        payload: Any = ANYTHING,  # noqa: ANN401 - same
        due_at: datetime | None = None,
    ) -> Task:
        """Assert that `times` matching tasks (at least one if omitted) were created, and return the latest of them.

        Raises:
            ValueError: `times` is less than one; use `refute_created`.
        """
        if times is not None and times < 1:
            raise ValueError("times is less than 1: use refute_created to assert that no task was created")
        found = self._created(task_type, payload, due_at)
        if not found if times is None else len(found) != times:
            wanted = "at least one" if times is None else str(times)
            what = f"{len(found)} tasks of type {task_type!r} were created, not {wanted}"
            raise AssertionError(self._explained(what + self._others(task_type)))
        return found[-1]

    def refute_created(self, task_type: str, *, payload: Any = ANYTHING, due_at: datetime | None = None) -> None:  # noqa: ANN401 - same
        """Assert that no matching task was created."""
        if found := self._created(task_type, payload, due_at):
            raise AssertionError(self._explained(f"{len(found)} tasks of type {task_type!r} were created"))

    def assert_skipped(self, schedule: str, *, reason: str | None = None, times: int | None = None) -> None:
        """Assert that `times` occurrences of a schedule (at least one if omitted) were skipped for a reason.

        Args:
            schedule: the schedule's name.
            reason: `dst_gap`, `overlap`, `paused`, `changed`, `deleted`, `catch_up`, or a part of the API's reason
                text, such as the label of a calendar's date.
            times: the exact number of skipped occurrences.
        """
        skipped = skipped_runs(self.client, schedule)
        found = [each for each in skipped if reason is None or is_reason(reason, each.reason)]
        if not found if times is None else len(found) != times:
            wanted = "at least one" if times is None else str(times)
            why = "" if reason is None else f" for {reason!r} (short names: {names()})"
            what = f"{len(found)} occurrences of {schedule!r} were skipped{why}, not {wanted}"
            raise AssertionError(self._explained(what))

    def _created(self, task_type: str, payload: Any, due_at: datetime | None) -> list[Task]:  # noqa: ANN401 - same
        tasks = [task for task in self.client.tasks.list(type=task_type) if due_at in {None, task.due_at}]
        if payload is not ANYTHING:
            tasks = [task for task in tasks if self.client.tasks.get(task.id).payload == payload]
        return sorted(tasks, key=lambda task: (task.created_at, task.id))

    def _others(self, task_type: str) -> str:
        tasks = [self.client.tasks.get(task.id) for task in self.client.tasks.list(type=task_type)]
        lines = [f"\n  {task.type} due {task.due_at.isoformat()}, payload {task.payload!r}" for task in tasks]
        return "".join(["\nCreated were:", *lines]) if lines else ""

    def _explained(self, what: str) -> str:
        return f"{what}\n{report(self.client, self.now, self.executions, self._errors)}"


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")
