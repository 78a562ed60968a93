"""Topologies as targets: the state machine runs a run and notifies of its end; a rollback goes step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.attempt_results import Deferred, NotSent
from duetime.domain.tasks.targets import Phase
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.ports.targets import Work
    from duetime.ports.topologies import StateMachine, TopologyQuota, TopologyRollback


@frozen
class TopologyRunner:
    """Starts a run of the state machine for each attempt, within the quota of its owner."""

    machine: Callable[[], StateMachine]
    rollback: Callable[[], TopologyRollback]
    quota: Callable[[], TopologyQuota | None]

    def run(self, work: Work) -> TargetEnding:
        """Start the run; it is deferred until the state machine notifies.

        For a topology within another, a rollback does a step.

        A failed start is no attempt. If the run has begun anyway, it finds that another attempt has.
        """
        if work.phase is Phase.ROLLBACK:
            return self.rollback().step(work.task, work.deadline)
        # Few tasks are topologies, so the module is not imported at start.
        from duetime.domain.topologies.maps import ending_without_items, node_count  # noqa: PLC0415 - see the line above

        if (ending := ending_without_items(work.payload)) is not None:
            return ending
        quota = self.quota()
        if quota is not None and (refusal := quota.refusal(work.task, node_count(work.payload))):
            return NotSent(refusal)
        try:
            self.machine().start(work.task.id, work.task.fence)
        except Unavailable as error:
            return NotSent(f"the state machine could not be started: {error}")
        return Deferred()
