"""Topologies: the run of one is framed by the state machine, which will notify of its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.attempts import Deferred, failure
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from duetime.domain.attempts import Ending
    from duetime.ports.targets import Work
    from duetime.ports.topologies import Machine


@dataclass(frozen=True, slots=True)
class TopologyRunner:
    """Starts the state machine's run of an attempt."""

    machine: Machine

    def run(self, work: Work) -> Ending:
        """Start the run; it is deferred until the state machine notifies."""
        try:
            self.machine.start(work.task.id, work.task.fence)
        except Unavailable as error:
            return failure("StateMachineUnavailable", str(error))
        return Deferred()
