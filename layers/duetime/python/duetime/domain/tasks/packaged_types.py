"""Types whose handlers are in packages with separate functions, and the tokens of their attempts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.tasks.states import LEASED
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task


@frozen
class PackagedTypes:
    """The functions that run packages of handlers.

    Attributes:
        functions: names of the functions by patterns of types; the first pattern that matches decides.
    """

    functions: Mapping[str, str]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.functions)

    def function_of(self, task_type: str) -> str | None:
        """The function that runs the handler of a type; `None` if the worker does."""
        names = (name for pattern, name in self.functions.items() if fnmatchcase(task_type, pattern))
        return next(names, None)


@frozen
class AttemptToken:
    """Lets a package's function act for one attempt, as long as that attempt has its task.

    Attributes:
        nonce: of the claim; only the worker and the function that it invokes know it.
    """

    task_id: TaskId
    fence: int
    nonce: str

    @classmethod
    def of(cls, task: Task) -> AttemptToken:
        """The token of a claimed task's attempt."""
        return cls(task.id, task.fence, task.lease_nonce or "")

    @classmethod
    def parse(cls, text: str) -> AttemptToken | None:
        """A token from its text; `None` if it is none."""
        task_id, _, rest = text.partition(" ")
        fence, _, nonce = rest.partition(" ")
        try:
            return cls(TaskId.parse(task_id), int(fence), nonce)
        except (InvalidTaskId, ValueError):
            return None

    @property
    def text(self) -> str:
        """Its text."""
        return f"{self.task_id} {self.fence} {self.nonce}"

    def is_of(self, task: Task) -> bool:
        """Whether the attempt has the task, or does the steps after its outcome."""
        if not self.nonce or task.fence != self.fence or task.lease_nonce != self.nonce:
            return False
        return task.state in LEASED or (task.is_terminal and task.finished_at is None)
