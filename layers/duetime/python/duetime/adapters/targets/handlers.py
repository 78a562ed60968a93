"""Python handlers, registered by the user's own package."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.attempts import Deferred, Ending, Stopped, Succeeded, Yielded, failure
from duetime.domain.limits import MAX_PROGRESS_MESSAGE_LENGTH
from duetime.domain.task import Phase, Progress
from duetime.domain.times import to_datetime
from duetime.handlers import (
    REGISTRY,
    Accepted,
    AttemptCancelled,
    AttemptPaused,
    Context,
    Registered,
    Unretriable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.task import Task
    from duetime.ports.targets import Work


def load(package: str) -> Mapping[str, Registered]:
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

    registry: Mapping[str, Registered]

    def phases(self, task: Task) -> frozenset[Phase]:
        """What the handler offers; only `run`, which will fail, if there is none."""
        registered = self.registry.get(task.type)
        return frozenset({Phase.RUN}) if registered is None else frozenset(map(Phase, registered.phases))

    def run(self, work: Work) -> Ending:
        """Have the handler do a phase; whatever it raises fails the attempt."""
        task_type = work.task.type
        registered = self.registry.get(task_type)
        if registered is None:
            return failure("HandlerUnknown", f"no handler is registered for the type {task_type!r}", retriable=False)
        try:
            result = registered.phases[work.phase](_context(work), json.loads(work.payload))
        except AttemptPaused as pause:
            return _encoded(pause.checkpoint, Yielded)
        except AttemptCancelled:
            return Stopped()
        except Unretriable as error:
            return failure(type(error).__name__, str(error), retriable=False)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise what it likes
            return failure(type(error).__name__, str(error))
        if isinstance(result, Accepted):
            return _deferred(work.phase)
        return _encoded(result, Succeeded)


def _deferred(phase: Phase) -> Ending:
    if phase is Phase.RUN:
        return Deferred()
    return failure("PhaseDeferred", f"only `run` can be deferred, not `{phase}`", retriable=False)


def _context(work: Work) -> Context:
    def report(percent: int | None, message: str) -> None:
        work.report(None if percent is None else Progress(percent, message[:MAX_PROGRESS_MESSAGE_LENGTH]))

    return Context(
        task_id=work.task.id.text,
        type=work.task.type,
        attempt=work.task.attempt,
        fence=work.task.fence,
        deadline=to_datetime(work.deadline),
        checkpoint=None if work.checkpoint is None else json.loads(work.checkpoint),
        report=report,
        ask=work.asked,
        inputs=None if work.inputs is None else json.loads(work.inputs),
    )


def _encoded(value: object, ending: Callable[[bytes], Ending]) -> Ending:
    """An ending with a value in JSON, or the failure to make JSON of it."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return ending(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        # UnicodeEncodeError, of a lone surrogate, is a ValueError too.
        return failure("ResultNotJson", f"what the handler left is not JSON: {error}", retriable=False)
