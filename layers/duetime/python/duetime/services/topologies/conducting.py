"""Keeping the whole on its course: what its nodes' states and its user ask for is done, as often as it is looked at."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestRefused
from duetime.domain.states import State
from duetime.domain.task import Asked
from duetime.domain.topologies.course import course, is_stopped
from duetime.domain.topologies.statuses import Reason, decided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.topologies.course import Course
    from duetime.domain.topologies.statuses import NodeStatus, Statuses
    from duetime.ports.surroundings import Clock, Crew
    from duetime.services.steering import Steering
    from duetime.services.topologies.nodes import Nodes
    from duetime.services.topologies.wholes import Whole, Wholes


@dataclass(frozen=True, slots=True)
class Conducting:
    """Does about the nodes what becomes of the whole asks for. It remembers nothing: whoever crashed asks again."""

    wholes: Wholes
    nodes: Nodes
    steering: Steering
    clock: Clock
    crew: Crew

    def steer(self, whole: Whole, known: Mapping[str, NodeStatus] | None = None) -> tuple[Course, Statuses]:
        """Look where the whole stands, and do what that asks for.

        Args:
            whole: as it was just read.
            known: where some of its nodes stand, known better than by reading.
        """
        statuses = self.wholes.statuses(whole, known)
        overdue = whole.overdue_at is not None and whole.overdue_at <= self.clock.now()
        found = course(whole.graph, statuses, whole.task.asked, overdue=overdue)
        self._keep_to(whole, found, statuses)
        return found, statuses

    def dissolve(self, topology: TaskId) -> None:
        """Take back what is left of a topology whose task has ended, if the whole did not come to its end before."""
        whole = self.wholes.read(topology)
        if whole is None or whole.head.ended:
            return
        # Before any of them is cancelled: what ends meanwhile must not start others.
        self.wholes.save(whole.head, lambda head: replace(head, stopped=True, dissolved=True))
        statuses = self.wholes.statuses(whole)
        self._keep_to(whole, course(whole.graph, statuses, Asked.CANCEL), statuses)

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
        if found.state is State.RUNNING and whole.head.opened:
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
