"""What tasks call: Python handlers and HTTP endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.task import HandlerTarget, HttpTarget, Target

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

    def run(self, target: Target, work: Work) -> Ending:
        """Call the target and wait for its end."""
        match target:
            case HandlerTarget():
                return self.handlers.run(work)
            case HttpTarget():
                return self.http.run(target, work)
