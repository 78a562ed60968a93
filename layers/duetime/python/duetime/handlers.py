"""What authors of Python handlers use: register a function for a task type, and talk to its running attempt.

    from duetime.handlers import Context, Unretriable, handler

    @handler("report")
    def make_report(context: Context, payload: object) -> object:
        context.progress(50, "half way")
        return {"pages": 3}

A handler may run more than once for a task (a crash, a lost answer): make its effects idempotent with
`context.task_id`, and let a store refuse an older `context.fence` than it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - a public signature that users inspect at run time
from typing import Any, TypeVar

Handler = Callable[["Context", Any], Any]
F = TypeVar("F", bound=Handler)


class Unretriable(Exception):
    """Raise it to fail the task at once: no further attempt would help."""


class HandlerTwice(ValueError):
    """Two handlers were registered for one task type."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"two handlers are registered for the task type {task_type!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """The running attempt, as its handler sees it.

    Attributes:
        task_id: stable over all attempts: the idempotency key to hand on.
        type: the task's type.
        attempt: 1 for the first.
        fence: grows with every attempt; a store can refuse writes of an older one.
        deadline: when the attempt must have ended, in UTC.
    """

    task_id: str
    type: str
    attempt: int
    fence: int
    deadline: datetime
    report: Callable[[int | None, str], None]

    def progress(self, percent: int, message: str = "") -> None:
        """Tell how far the work has come.

        Args:
            percent: 0 to 100; anything beyond is taken to the nearer end.
            message: a few words.
        """
        self.report(max(0, min(100, percent)), message)

    def heartbeat(self) -> None:
        """Say that the attempt is alive. The worker says so by itself; this only does it now."""
        self.report(None, "")


REGISTRY: dict[str, Handler] = {}
"""The registered handlers by task type."""


def handler(task_type: str) -> Callable[[F], F]:
    """Register the decorated function as the handler of a task type.

    The function is given a `Context` and the payload (decoded JSON), and returns the result (JSON). Whatever it
    raises fails the attempt, which is retried by the task's policy, unless it is `Unretriable`.

    Raises:
        HandlerTwice: the type has a handler already.
    """

    def register(function: F) -> F:
        if REGISTRY.setdefault(task_type, function) is not function:
            raise HandlerTwice(task_type)
        return function

    return register
