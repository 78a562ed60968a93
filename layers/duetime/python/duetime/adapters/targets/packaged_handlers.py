"""Handlers in packages of their own: the worker invokes the package's function for each phase, and waits for its reply.

The function's role has no table and no queues. What its handlers report meanwhile goes through the attempts function.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.egress import EgressFailed, EgressUnavailable
from duetime.adapters.targets.packaged_work import ending_in, packed_work
from duetime.domain.tasks.attempt_results import NotSent, failure
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Progress
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.packaged_types import PackagedTypes
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.type_defaults import HandlerDescription
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import Work

_TIMED_OUT: int = SECOND
"""A function that ends this close to the deadline, in milliseconds, has reached it."""


@dataclass(frozen=True, slots=True)
class PackagedHandlers:
    """Calls the handlers of packages.

    Attributes:
        types: the functions by types.
        descriptions: what is known of the handlers, by type.
        invoke: invokes a function with an event, and returns its response; passes on what ran, as `name:version`.
        lease: duration of the worker's lease, in milliseconds.
    """

    types: PackagedTypes
    descriptions: Mapping[str, HandlerDescription]
    invoke: Callable[[str, bytes, Callable[[str], None]], bytes]
    runtime: Runtime
    lease: Millis

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the task's handler offers; always includes `run`."""
        known = self.descriptions.get(task.type)
        return frozenset({Phase.RUN}) if known is None else frozenset(map(Phase, known.phases)) | {Phase.RUN}

    def run(self, function: str, work: Work) -> TargetEnding:
        """Run one phase in the function of its package, and wait for its end. Never raises."""
        event = json.dumps(packed_work(work, self.lease), ensure_ascii=False, separators=(",", ":")).encode()
        try:
            reply: dict[str, Any] = json.loads(self.invoke(function, event, work.executed_by))
            ending = ending_in(reply)
        except EgressUnavailable as error:
            return NotSent(f"the function of its handlers: {error}")
        except (EgressFailed, ValueError, LookupError, TypeError, AttributeError) as error:
            work.reload_checkpoint()
            return self._crashed(work, error)
        if isinstance(ending, NotSent):
            self.runtime.telemetry.count("handlers_unavailable")
            why = ending.reason
            self.runtime.telemetry.note("a package of handlers cannot be imported", function=function, error=why)
        if progress := reply.get("progress"):
            work.report(Progress(*progress))
        if reply.get("saved"):
            work.reload_checkpoint()
        return ending

    def _crashed(self, work: Work, error: Exception) -> TargetEnding:
        if self.runtime.now() >= work.deadline - _TIMED_OUT:
            return failure("Timeout", f"the handler did not end within {work.task.timeout_seconds} s")
        return failure("HandlerCrashed", f"the function of the handler ended without a result: {error}")
