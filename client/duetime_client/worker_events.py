"""The events of a pull worker, and the errors that keep a worker from starting."""

from __future__ import annotations

from dataclasses import dataclass

from duetime_client.errors import ClientError


class DuplicateHandler(ValueError):
    """Two handlers were registered for the same task type."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"two handlers are registered for the task type {task_type!r}")


class WorkerIdle(ClientError, ValueError):
    """A worker was started without handlers or without a client."""


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """An event of a worker, for its `on_event` callback.

    Attributes:
        what: `leased`, how an attempt ended, `released`, `stopping`, or `unreachable` (the API does not respond).
        seconds: how long the attempt took, or how long the worker waits.
        why: the reason; never a payload or a result.
    """

    what: str
    task_id: str = ""
    type: str = ""
    attempt: int = 0
    seconds: float = 0.0
    why: str = ""
