"""The other runs of a schedule: which one an occurrence waits for, which is next, and asking one to stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import StateConflict, TaskNotFound, Unavailable, VersionMismatch
from duetime.domain.schedules.overlap import LATEST_RUNS, OtherRuns, waiting_limit
from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Clock
    from duetime.ports.tasks import TaskStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.control import TaskControl


@dataclass(frozen=True, slots=True)
class RunQueue:
    """Reads the runs that go on or wait. Every method may raise `Unavailable`."""

    tasks: TaskStore
    task_control: TaskControl
    enqueuer: Enqueuer
    clock: Clock

    def others(self, stored: StoredSchedule, task: Task, seen: Activity) -> OtherRuns:
        """The other runs, as one that wants to begin finds them; no more are read than its turn depends on."""
        if stored.spec.overlap not in LATEST_RUNS or stored.is_permanent:
            ahead = [] if seen.active is None else [seen.active]
            ahead += seen.waiting[: seen.waiting.index(task.id)] if task.id in seen.waiting else seen.waiting
            return OtherRuns(self._first_open(ahead))
        active = None if seen.active is None else self.tasks.read(seen.active)
        waiting = self._first_open(each for each in seen.waiting if each != task.id)
        known = [each for each in (active, waiting) if each is not None and each.schedule_ref is not None]
        latest = max(known, key=lambda each: each.schedule_ref.nominal if each.schedule_ref else 0, default=None)
        return OtherRuns(active if active is not None and active.finished_at is None else None, latest)

    def with_room(self, stored: StoredSchedule, task: Task, seen: Activity) -> Activity:
        """Without those that have ended, if there would be no room for one more otherwise."""
        if task.id in seen.waiting or not 0 < waiting_limit(stored) <= len(seen.waiting):
            return seen
        found = self.tasks.read_many(list(seen.waiting), consistent=True)
        return replace(seen, waiting=tuple(each for each in seen.waiting if each in found and _is_open(found[each])))

    def next_in_turn(self, seen: Activity) -> Task | None:
        """The first of those that wait."""
        return self._first_open(seen.waiting)

    def stop(self, run: Task, successor: Task) -> None:
        """Ask a run to stop, or cancel it where it waits for its retry: another takes its place. Twice is once."""
        ref = successor.schedule_ref
        reason = f"the run of {to_iso(ref.nominal if ref else successor.due_at)} takes its place"
        try:
            asked = self.task_control.cancel_by_force(
                run.owner, run.id, None, Attribution(ActorType.SCHEDULE, reason=reason)
            )
        except (StateConflict, TaskNotFound):
            # It has ended meanwhile.
            return
        except VersionMismatch as error:
            raise Unavailable(f"the task {run.id} was written by others again and again") from error
        if asked.finished_at is None and isinstance(asked.target, TopologyTarget):
            # It finds the request at its next check.
            self.enqueuer.remind(asked, self.clock.now())

    def _first_open(self, ids: Iterable[TaskId]) -> Task | None:
        """The first of these tasks that has not come to its end."""
        found = (self.tasks.read(each) for each in ids)
        return next((each for each in found if each is not None and _is_open(each)), None)


def _is_open(task: Task) -> bool:
    return task.finished_at is None
