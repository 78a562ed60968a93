"""Repairs topology plans that are incomplete after a restore or a takeover by another Region.

A plan stores the state of its run first, then the nodes. Restores and takeovers do not preserve the order of writes to
different items, so the nodes can be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.errors import RecordUnreadable
from duetime.domain.operating_parameters import REGION_OVERLAP, RUN_STATE_LIFE
from duetime.domain.restore import dismissed, is_left_over
from duetime.domain.tasks.states import NOT_STARTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.run_state import RunState
    from duetime.ports.restore import RecordRewriter
    from duetime.ports.runtime import Runtime
    from duetime.ports.topologies import TopologyStore

_TRIES = 5
_Runs: TypeAlias = "dict[TaskId, tuple[Task | None, RunState | None]]"
"""Topologies with their run states."""


@dataclass(slots=True)
class LostPlans:
    """Repeats plans whose nodes may be missing, and cancels nodes that no topology run would start.

    Attributes:
        since: the restore point or the beginning of the takeover; plans from the last minutes before this time are
            repeated.
    """

    records: RecordRewriter
    topologies: TopologyStore
    runtime: Runtime
    since: Millis
    _left_over: list[TaskId] = field(default_factory=list, init=False)

    def reopen(self, task: Task, *, is_taken_over: bool) -> None:
        """Let a topology run continue, although some of its last writes may be missing.

        If the topology's task is open, the run has not ended. A run that began in the last minutes before `since` is
        planned once more, which creates the tasks of missing nodes.
        """
        run = self.topologies.read(task.id) if task.is_topology else None
        if run is None:
            return
        is_new = run.begun_at >= self.since - REGION_OVERLAP and not is_taken_over
        changed = replace(run, opened=run.opened and not is_new)
        if not task.is_terminal:
            changed = replace(changed, stopped=False, ended=False, dissolved=False)
        if changed != run:
            expires_at = self.runtime.now() + RUN_STATE_LIFE if changed.ended or changed.dissolved else None
            self.topologies.save(changed, self.runtime.nonce(), expires_at)

    def note(self, tasks: Sequence[Task]) -> None:
        """Note which of these tasks are leftover nodes. The tasks were read before the run states."""
        runs: _Runs = {}
        self._left_over += [task.id for task in tasks if self._is_left_over(task, runs)]

    @property
    def is_any_left_over(self) -> bool:
        """Whether any node is left over."""
        return bool(self._left_over)

    def dismiss(self) -> int:
        """Cancel the noted nodes, unless the rest of their plan has arrived since; returns the number cancelled."""
        return sum(self._is_dismissed(task_id) for task_id in self._left_over)

    def _is_dismissed(self, task_id: TaskId) -> bool:
        for _ in range(_TRIES):
            task = self.records.read_many([task_id]).get(task_id)
            # A node that has begun in an active Region runs to its end.
            if task is None or task.state not in NOT_STARTED or not self._is_left_over(task, {}):
                return False
            ended, timer = dismissed(task, self.runtime.now())
            self.records.add_timer(timer)
            if self.records.rewrite(task, replace(ended, nonce=self.runtime.nonce())):
                return True
        return False

    def _is_left_over(self, task: Task, runs: _Runs) -> bool:
        if task.node_ref is None or task.is_terminal:
            return False
        topology = task.node_ref.topology
        try:
            run = runs.get(topology) or runs.setdefault(topology, self.topologies.read_with_task(topology))
        except RecordUnreadable:
            return False
        return is_left_over(task, *run)
