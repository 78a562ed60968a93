"""Checks running topologies now and then: does what nobody else was left to do, and replaces a lost execution.

Nodes start each other, whatever happens to the execution of their run. But the end of the run is the
execution's to tell: one that was stopped by hand, broke, or waits for a token that got lost tells nobody.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import MINUTE
from duetime.domain.topologies.watchdog_times import reminders

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.topologies import StateMachine
    from duetime.services.enqueue import Enqueuer
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.tasks.control import TaskControl
    from duetime.services.topologies.repository import TopologyRepository
    from duetime.services.topologies.state_machine_steps import StateMachineSteps

EXECUTION_LOST = "its state machine's execution was lost"


@dataclass(frozen=True, slots=True)
class TopologyWatchdog:
    """Watches topologies. Each check sets the next one first, so that no crash is the last check."""

    topology_repository: TopologyRepository
    state_machine_steps: StateMachineSteps
    task_control: TaskControl
    machine: StateMachine
    outcome_writer: OutcomeWriter
    enqueuer: Enqueuer
    runtime: Runtime

    def check_topology(self, task: Task) -> None:
        """Bring a topology on, and to its end if that has come; one whose execution is gone begins another.

        Unless a person has aborted that: it is cancelled then. Else the attempt counts for nothing, and the next one
        takes the run up where it stands.

        Args:
            task: the topology's, as its running attempt was just read.

        Raises:
            Unavailable: a store or the state machine did not answer; it is to be watched again.
        """
        now = self.runtime.now()
        for at in reminders(task, task.lease_expires_at or now, now, self.enqueuer.look_ahead):
            self.enqueuer.remind(task, at)
        topology_run = self.topology_repository.read(task.id)
        # What a plan has not created yet cannot be reconciled, and only an execution goes on creating it.
        is_planned = topology_run is not None and topology_run.is_present and topology_run.run_state.opened
        if is_planned and self.state_machine_steps.finish(task.id, task.fence).over:
            return
        if self.machine.is_running(task.id, task.fence):
            return
        if self.machine.was_aborted(task.id, task.fence):
            self._cancel(task, is_planned=is_planned)
        else:
            # By its fence: rejected if the attempt has ended meanwhile, perhaps by that very execution.
            self.outcome_writer.postpone(task, Postponed(now, EXECUTION_LOST))
            self.runtime.telemetry.count("topology_executions_lost")
            self.runtime.telemetry.note("a topology's execution is gone; another begins", task=task.id.text)

    def _cancel(self, task: Task, *, is_planned: bool) -> None:
        """Cancel a topology whose execution a person has aborted: that is what they meant by it."""
        if task.requested_action is not RequestedAction.CANCEL:
            self.runtime.telemetry.note("a topology's execution was aborted, which cancels it", task=task.id.text)
            # What its nodes' ends ask for takes a moment; what still runs is for the ordinary checks.
            self.enqueuer.remind(task, self.runtime.now() + MINUTE)
            with suppress(RequestError):
                self.task_control.cancel_by_force(task.owner, task.id, None)
        if is_planned:
            self.state_machine_steps.finish(task.id, task.fence)
        else:
            self.state_machine_steps.cancel_unplanned(task.id, task.fence)
