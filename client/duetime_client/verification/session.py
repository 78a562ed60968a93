"""Creates the tasks of a verification with a common tag, follows them until they end, and cleans up."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from duetime_client.errors import ApiError, ClientError
from duetime_client.verification.findings import Execution
from duetime_client.verification.verification_plan import PROBE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from duetime_client.client import Client
    from duetime_client.task import Attempt, Task
    from duetime_client.task_request_fields import NewTask, TaskFields

TAG = "duetime-verify"
"""The key of the tag on every task of a verification; the tag's value is the run's id."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A task of a verification.

    Attributes:
        group: name of the check that created the task.
        expected: the expected last state.
        attempts: the expected number of attempts.
    """

    task_id: str
    due_ms: int
    group: str
    expected: str = "succeeded"
    attempts: int = 1


@dataclass
class Session:
    """The tasks of a verification, and their last known states.

    Attributes:
        followed: the followed tasks, by id.
        seen: the tasks as last read.
        attempts: the attempts of each task, at the end.
        schedules: the schedules to delete at the end.
    """

    client: Client
    run_id: str
    now: Callable[[], datetime]
    followed: dict[str, Followed] = field(default_factory=dict)
    seen: dict[str, Task] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    schedules: list[str] = field(default_factory=list)

    @property
    def tags(self) -> dict[str, str]:
        """The tags of every task."""
        return {TAG: self.run_id}

    def now_ms(self) -> int:
        """The current time of this machine, in milliseconds since 1970."""
        return millis(self.now())

    def probe(self, check: str, **fields: Unpack[TaskFields]) -> NewTask:
        """A new task whose result contains the times when it started and ended."""
        return {"type": PROBE, "payload": {}, "name": f"verify-{check}", "tags": self.tags, **fields}

    def create(
        self, group: str, tasks: Iterable[NewTask], expected: str = "succeeded", attempts: int = 1
    ) -> list[Task]:
        """Create tasks and follow them.

        Raises:
            ApiError: a task was rejected.
        """
        made: list[Task] = []
        for result in self.client.tasks.create_batch(tasks):
            if isinstance(result, ApiError):
                raise result
            self.follow(result.id, millis(result.due_at), group, expected, attempts)
            made.append(result)
        return made

    def follow(self, task_id: str, due_ms: int, group: str, expected: str = "succeeded", attempts: int = 1) -> None:
        """Follow a task until it has ended."""
        self.followed.setdefault(task_id, Followed(task_id, due_ms, group, expected, attempts))

    def read_due(self) -> None:
        """Read all due tasks that are not known to have ended."""
        now = self.now_ms()
        for task_id in self.open():
            if self.followed[task_id].due_ms <= now:
                self.seen[task_id] = self.client.tasks.get(task_id)

    def open(self) -> list[str]:
        """The tasks that are not known to have ended."""
        return [each for each in self.followed if each not in self.seen or not self.seen[each].is_terminal]

    def read_all(self) -> Iterator[str]:
        """Read every task and its attempts again, because a task could run again after its outcome; yield each id."""
        for task_id in self.followed:
            self.seen[task_id] = self.client.tasks.get(task_id)
            self.attempts[task_id] = self.client.tasks.list_attempts(task_id)
            yield task_id

    def executions(self, *groups: str) -> list[Execution]:
        """The executions of the tasks in the given groups; all executions if no group is given."""
        return [self.execution(each) for each in self.followed.values() if not groups or each.group in groups]

    def execution(self, followed: Followed) -> Execution:
        """The execution of one task."""
        task = self.seen.get(followed.task_id)
        if task is None:
            return Execution(followed.task_id, followed.due_ms, "unknown", followed.expected)
        result = task.result if isinstance(task.result, dict) else {}
        return Execution(
            followed.task_id,
            followed.due_ms,
            task.state,
            followed.expected,
            max(task.attempt, len(self.attempts.get(task.id, ()))),
            followed.attempts,
            result.get("started_at_ms"),
            result.get("ended_at_ms"),
        )

    def results(self) -> list[dict[str, object]]:
        """The results of the tasks that recorded when they started."""
        found = [task.result for task in self.seen.values() if isinstance(task.result, dict)]
        return [result for result in found if "started_at_ms" in result]

    def clean_up(self) -> list[str]:
        """Delete the schedules, cancel tasks that have not ended, and return the errors."""
        left: list[str] = []
        for name in self.schedules:
            with _error_recorder(left, f"schedule {name}"):
                self.client.schedules.delete(name)
        with _error_recorder(left, f"tasks with the tag {TAG}:{self.run_id}"):
            for _ in self.client.tasks.cancel_by_filter({"tags": self.tags}, force=True):
                pass
        # Filtered lists of tasks are eventually consistent, so tasks that were just created are cancelled by id.
        for task_id in self.open():
            with suppress(ClientError):
                self.client.tasks.cancel(task_id, force=True)
        return left


@contextmanager
def _error_recorder(errors: list[str], subject: str) -> Iterator[None]:
    """Add a client error to a list instead of raising it."""
    try:
        yield
    except ClientError as error:
        errors.append(f"{subject}: {error}")


def millis(moment: datetime) -> int:
    """Convert a time to milliseconds since 1970."""
    return round(moment.timestamp() * 1000)
