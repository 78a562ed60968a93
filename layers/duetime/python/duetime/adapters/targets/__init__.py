"""What tasks call: Python handlers and HTTP endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.task import HandlerTarget, HttpTarget, Phase, Task

if TYPE_CHECKING:
    from duetime.adapters.targets.handlers import HandlerRunner
    from duetime.adapters.targets.http import HttpRunner
    from duetime.domain.attempts import Ending
    from duetime.ports.targets import Work


@dataclass(frozen=True, slots=True)
class Targets:
    """Calls each kind of target through its own runner."""

    handlers: HandlerRunner
    http: HttpRunner

    def phases(self, task: Task) -> frozenset[Phase]:
        """What the task's target offers; `run` is always among it."""
        match task.target:
            case HandlerTarget():
                return self.handlers.phases(task)
            case HttpTarget(phases=phases):
                return phases | {Phase.RUN}

    def run(self, work: Work) -> Ending:
        """Have the target do one phase and wait for its end."""
        match work.task.target:
            case HandlerTarget():
                return self.handlers.run(work)
            case HttpTarget() as target:
                return self.http.run(target, work)
