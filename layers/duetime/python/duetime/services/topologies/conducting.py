"""Keeping the whole on its course: what its nodes' states and its user ask for is done, as often as it is looked at."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestRefused
from duetime.domain.states import State
from duetime.domain.task import Asked
from duetime.domain.topologies.course import Course, course, is_stopped
from duetime.domain.topologies.head import Begun, Head
from duetime.domain.topologies.statuses import Reason, decided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.task import Task
    from duetime.domain.topologies.statuses import NodeStatus, Statuses
    from duetime.ports.surroundings import Clock, Crew
    from duetime.services.steering import Steering
    from duetime.services.topologies.nodes import Nodes
    from duetime.services.topologies.retention import Retention
    from duetime.services.topologies.wholes import Whole, Wholes


@dataclass(frozen=True, slots=True)
class Conducting:
    """Does about the nodes what becomes of the whole asks for. It remembers nothing: whoever crashed asks again."""

    wholes: Wholes
    nodes: Nodes
    retention: Retention
    steering: Steering
    clock: Clock
    crew: Crew

    def steer(self, whole: Whole, known: Mapping[str, NodeStatus] | None = None) -> tuple[Course, Statuses]:
        """Look where the whole stands, and do what that asks for.

        Args:
            whole: as it was just read.
            known: where some of its nodes stand, known better than by reading.
        """
        if not whole.is_present:
            # It was retried: what stands of the last run is the next run's plan's to judge.
            return Course(State.RUNNING), {}
        statuses = self.wholes.statuses(whole, known)
        overdue = whole.overdue_at is not None and whole.overdue_at <= self.clock.now()
        found = course(whole.graph, statuses, whole.task.asked, overdue=overdue)
        self._keep_to(whole, found, statuses)
        return found, statuses

    def dissolve(self, task: Task) -> None:
        """Take back what is left of a topology whose task has ended, if the whole did not come to its end before.

        Args:
            task: the topology's, as it had ended; it may have been retried since, and then nothing is taken back.
        """
        whole = self.wholes.read(task.id)
        if whole is None:
            self._forestall(task)
            return
        if whole.head.ended or not whole.task.is_terminal:
            return
        # Before any of them is cancelled: what ends meanwhile must not start others.
        self.wholes.save(whole.head, lambda head: replace(head, stopped=True, dissolved=True))
        statuses = self.wholes.statuses(whole)
        self._keep_to(whole, course(whole.graph, statuses, Asked.CANCEL), statuses)

    def _forestall(self, task: Task) -> None:
        """Have a plan that was begun, and is still to enter its run, find that the topology has ended."""
        if task.fence:
            begun = Begun(self.clock.now(), 1)
            over = Head(task.id, (begun,), task.fence, stopped=True, dissolved=True)
            # If that plan comes first, it is seen here, and taken back.
            if not self.wholes.save(over, lambda known: known).dissolved:
                self.dissolve(task)

    def _keep_to(self, whole: Whole, found: Course, statuses: Statuses) -> None:
        if found.cancel or found.stop or is_stopped(whole.graph, statuses):
            # Before any of them is cancelled: what ends meanwhile must not start others.
            self.wholes.save(whole.head, lambda head: replace(head, stopped=True))
        # Thousands, perhaps, while a request waits.
        self.crew.map(lambda key: self.nodes.dismiss(whole, key, Reason.STOPPED), found.cancel)
        for key in found.stop:
            with suppress(RequestRefused):
                self.steering.stop(whole.task.owner, whole.head.task_id(key))
        for key in found.pause:
            with suppress(RequestRefused):
                self.steering.pause(whole.task.owner, whole.head.task_id(key))
        for key in found.undo:
            self.nodes.undo(whole, key)

    def repair(self, whole: Whole) -> tuple[Course, Statuses]:
        """Steer, and do what crashes may have left undone: nodes that wait for nothing any more are decided."""
        found, statuses = self.steer(whole)
        if not whole.task.is_terminal:
            # Of another version of the code, or kept by a rerun whose plan was cut off.
            self.retention.keep(whole, statuses)
        if found.state is State.RUNNING and whole.head.opened and statuses:
            for key, verdict in decided(whole.graph, statuses).items():
                self.nodes.act(whole, key, verdict)
        return found, statuses

    def go_on(self, whole: Whole) -> None:
        """Let what was paused with the whole go on."""
        _, statuses = self.repair(whole)
        for key, status in statuses.items():
            if status.state is State.PAUSED:
                with suppress(RequestRefused):
                    self.steering.resume(whole.task.owner, whole.head.task_id(key))
