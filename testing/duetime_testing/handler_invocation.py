"""One call of one handler, without a scheduler around it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime.domain.ids import TaskId
from duetime.domain.json_values import ValueRefused, json_of
from duetime.handlers import Accepted, Context
from duetime.handlers.payload_models import plain
from duetime_testing.errors import NotJson

if TYPE_CHECKING:
    from datetime import datetime

    from duetime.handlers import Registered

_MINUTE = timedelta(minutes=1)


@dataclass
class HandlerCall:
    """What a handler is given, and what it has told.

    Attributes:
        requested_action: what the user asks of the attempt: `pause`, `cancel` or nothing.
        progress: each progress that it has told: percent and message.
        heartbeats: how many heartbeats it has sent by itself.
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

    def context(self) -> Context:
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
        )

    def run(self, registered: Registered, payload: Any, phase: str = "run") -> Any:  # noqa: ANN401 - any JSON
        """Call the handler, as a worker would: what crosses a border is JSON.

        Raises:
            NotJson: the payload or the result is not the same after JSON.
        """
        given = through_json(payload, f"the payload of {self.task_type!r}")
        result = registered.call(phase, self.context(), given)
        return (
            result if isinstance(result, Accepted) else through_json(plain(result), f"the result of {self.task_type!r}")
        )

    def _report(self, percent: int | None, message: str) -> None:
        if percent is None:
            self.heartbeats += 1
        else:
            self.progress.append((percent, message))


def through_json(value: Any, name: str) -> Any:  # noqa: ANN401 - any JSON
    """A value as it arrives on the other side.

    Raises:
        NotJson: it is not JSON, or arrives as something else, as a tuple does as a list.
    """
    try:
        arrived = json.loads(json_of(value))
    except ValueRefused as error:
        raise NotJson(f"{name} is not JSON: {error}: {value!r}") from error
    if arrived != value:
        raise NotJson(f"{name} is changed by JSON: {value!r} arrives as {arrived!r}")
    return arrived
