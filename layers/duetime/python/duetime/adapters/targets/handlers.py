"""Python handlers, registered by the user's own package."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.domain.attempts import Ending, Failed, Succeeded, failure
from duetime.domain.limits import MAX_PROGRESS_MESSAGE_LENGTH
from duetime.domain.task import Progress
from duetime.domain.times import to_datetime
from duetime.handlers import REGISTRY, Context, Handler, Unretriable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.ports.targets import Work


def load(package: str) -> Mapping[str, Handler]:
    """Import the user's package of handlers, which registers them; none if the name is empty.

    Raises:
        ImportError: there is no such package.
    """
    if package:
        importlib.import_module(package)
    return REGISTRY


@dataclass(frozen=True, slots=True)
class HandlerRunner:
    """Calls the handler that is registered for the task's type, in this process."""

    registry: Mapping[str, Handler]

    def run(self, work: Work) -> Ending:
        """Call the handler; whatever it raises fails the attempt."""
        task = work.task
        function = self.registry.get(task.type)
        if function is None:
            return failure("HandlerUnknown", f"no handler is registered for the type {task.type!r}", retriable=False)
        try:
            result = function(_context(work), json.loads(work.payload))
        except Unretriable as error:
            return failure(type(error).__name__, str(error), retriable=False)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise what it likes
            return failure(type(error).__name__, str(error))
        return _encoded(result)


def _context(work: Work) -> Context:
    def report(percent: int | None, message: str) -> None:
        work.report(None if percent is None else Progress(percent, message[:MAX_PROGRESS_MESSAGE_LENGTH]))

    return Context(
        task_id=work.task.id.text,
        type=work.task.type,
        attempt=work.task.attempt,
        fence=work.task.fence,
        deadline=to_datetime(work.deadline),
        report=report,
    )


def _encoded(result: Any) -> Succeeded | Failed:  # noqa: ANN401 - a handler may return any JSON
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return Succeeded(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        # UnicodeEncodeError, of a lone surrogate, is a ValueError too.
        return failure("ResultNotJson", f"the handler's result is not JSON: {error}", retriable=False)
