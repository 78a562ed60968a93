"""Runs targets: Python handlers, HTTP endpoints, AWS resources and topologies.

Pull workers run their tasks themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.attempt_results import Deferred, NotSent, Succeeded
from duetime.domain.tasks.targets import (
    ApprovalTarget,
    AwsTarget,
    CallbackTarget,
    EventTarget,
    HandlerTarget,
    HttpTarget,
    Phase,
    PullTarget,
    TopologyTarget,
)
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.aws_target import AwsRunner
    from duetime.adapters.targets.http_target import HttpRunner
    from duetime.adapters.targets.python_handlers import HandlerRunner
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import EventRunner, Work
    from duetime.ports.topologies import StateMachine, TopologyQuota, TopologyRollback


@frozen
class Targets:
    """Dispatches each kind of target to its runner.

    Attributes:
        events: returns the runner for tasks that wait for an event, which few tasks do.
    """

    handlers: HandlerRunner
    http: HttpRunner
    aws: AwsRunner
    topologies: TopologyRunner
    events: Callable[[], EventRunner]

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the task's target supports, which always include `run`."""
        match task.target:
            case HandlerTarget():
                return self.handlers.phases(task)
            case HttpTarget(phases=phases):
                return phases | {Phase.RUN}
            case ApprovalTarget() | EventTarget() | TopologyTarget():
                return frozenset({Phase.RUN, Phase.ROLLBACK})
            case PullTarget() | AwsTarget() | CallbackTarget():
                return frozenset({Phase.RUN})

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of the target and wait for its end."""
        match work.task.target:
            case HandlerTarget():
                return self.handlers.run(work)
            case HttpTarget() as target:
                return self._call(target, work)
            case CallbackTarget() as target:
                return self.http.call_back(target, work)
            case AwsTarget() as target:
                return self.aws.run(target, work)
            case TopologyTarget():
                return self.topologies.run(work)
            case ApprovalTarget() as target:
                return _approval(target, work)
            case EventTarget() as target:
                return self.events().ending(target, work.task)
            case PullTarget():
                # The task's type is no longer pulled, this process does not know yet that the type is pulled, or the
                # message comes from a rejected change's timer. No task is lost.
                return NotSent(f"pull workers of {work.task.type}")

    def _call(self, target: HttpTarget, work: Work) -> TargetEnding:
        if target.batch is None:
            return self.http.run(target, work)
        # Few targets have batches, so the module is not imported at startup.
        from duetime.adapters.targets.http_batches import run_in_batch  # noqa: PLC0415 - see the line above

        return run_in_batch(self.http.caller, target, work)


def _approval(target: ApprovalTarget, work: Work) -> TargetEnding:
    """The ending of an approval that has timed out or is being rolled back."""
    if work.phase is Phase.ROLLBACK:
        # An approval has no effects, so it needs no rollback.
        return Succeeded(b"null")
    # Few tasks are approvals, so the module is not imported at startup.
    from duetime.domain.tasks.approvals import after_timeout  # noqa: PLC0415 - see the line above

    return after_timeout(target)


@frozen
class TopologyRunner:
    """Starts a run of the state machine for each attempt, within the owner's quota."""

    machine: Callable[[], StateMachine]
    rollback: Callable[[], TopologyRollback]
    quota: Callable[[], TopologyQuota | None]

    def run(self, work: Work) -> TargetEnding:
        """Start the run. The attempt is deferred until the state machine reports the end of the run.

        In the phase `rollback`, a topology that is a node of another topology runs one step of its rollback.

        A failed start does not count as an attempt. If the run has begun despite the failure, the run notices when
        another attempt begins.
        """
        if work.phase is Phase.ROLLBACK:
            return self.rollback().step(work.task, work.deadline)
        # Few tasks are topologies, so the module is not imported at startup.
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
