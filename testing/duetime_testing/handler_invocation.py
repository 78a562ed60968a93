"""Calls a handler once, without creating a task."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime.domain.ids import TaskId
from duetime.domain.json_values import ValueRefused, json_of
from duetime.handlers import Accepted, Context
from duetime.handlers.payload_codec import present_codec
from duetime_common.payload_codecs import decrypted_json
from duetime_common.payload_models import plain
from duetime_common.steps import MemorySteps
from duetime_testing.errors import NotJson

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from duetime.handlers import Registered

_MINUTE = timedelta(minutes=1)


@dataclass
class HandlerCall:
    """The input for a handler call, and what the handler reports.

    Attributes:
        requested_action: the action that is requested of the attempt: `pause`, `cancel` or `None`.
        progress: all reported progress, as pairs of percent and message.
        heartbeats: number of heartbeats that the handler sent.
        steps: results of completed steps, by name. Given results count as stored by an earlier attempt, and this call
            adds its own. To simulate the next attempt, call the handler again with the same object.
        saved_checkpoint: the last checkpoint that the handler saved; `None` if it did not save a checkpoint.
        clients: returns the client for `context.client`; `None` if the handler gets no client.
    """

    task_type: str
    now: datetime
    attempt: int = 1
    fence: int = 1
    checkpoint: Any = None
    inputs: Any = None
    due_at: datetime | None = None
    requested_action: str | None = None
    progress: list[tuple[int, str]] = field(default_factory=list)
    heartbeats: int = 0
    steps: dict[str, Any] = field(default_factory=dict)
    saved_checkpoint: Any = None
    clients: Callable[[], Any] | None = None

    def context(self, phase: str = "run") -> Context:
        """The context of the handler."""
        return Context(
            task_id=TaskId.of(round(self.now.timestamp() * 1000), 0, 0).text,
            type=self.task_type,
            attempt=self.attempt,
            fence=self.fence,
            deadline=self.now + _MINUTE,
            checkpoint=self.checkpoint,
            report=self._report,
            ask=lambda: self.requested_action,
            inputs=self.inputs,
            due_at=self.due_at or self.now,
            phase=phase,
            step_keeper=lambda: MemorySteps(self.steps),
            checkpoint_writer=self._save,
            clients=self.clients,
        )

    def run(self, registered: Registered, payload: Any, phase: str = "run") -> Any:  # noqa: ANN401 - any JSON
        """Call the handler as a worker would, converting the payload and the result to JSON and back.

        Raises:
            NotJson: the payload or the result changes when it is converted to JSON and back.
        """
        is_binary = isinstance(payload, bytes)
        given = payload if is_binary else through_json(payload, f"the payload of {self.task_type!r}")
        result = registered.call(phase, self.context(phase), given)
        return (
            result if isinstance(result, Accepted) else through_json(plain(result), f"the result of {self.task_type!r}")
        )

    def _save(self, checkpoint: bytes) -> bool:
        self.saved_checkpoint = json.loads(decrypted_json(present_codec(), checkpoint))
        return True

    def _report(self, percent: int | None, message: str) -> None:
        if percent is None:
            self.heartbeats += 1
        else:
            self.progress.append((percent, message))


def through_json(value: Any, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Convert a value to JSON and back.

    Raises:
        NotJson: the value is not JSON, or changes in the conversion (for example, a tuple becomes a list).
    """
    try:
        arrived = json.loads(json_of(value))
    except ValueRefused as error:
        raise NotJson(f"{name} is not JSON: {error}: {value!r}") from error
    if arrived != value:
        raise NotJson(f"{name} is changed by JSON: {value!r} arrives as {arrived!r}")
    return arrived
