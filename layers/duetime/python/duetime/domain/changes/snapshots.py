"""Records as live updates show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.changes.changes import ScheduleSnapshot, TaskSnapshot

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task


def task_snapshot(task: Task) -> TaskSnapshot:
    """A task, without what nobody else is told."""
    return TaskSnapshot(
        id=task.id,
        owner=task.owner,
        type=task.type,
        state=task.state,
        version=task.version,
        due_at=task.due_at,
        created_at=task.created_at,
        priority=task.priority,
        name=task.name,
        tags=task.tags,
        attempt=task.attempt,
        progress=task.progress,
        error=task.error,
        started_at=task.started_at,
        finished_at=task.finished_at,
        schedule_ref=task.schedule_ref,
        node_ref=task.node_ref,
        is_topology=task.is_topology,
        erased=task.erased,
    )


def schedule_snapshot(stored: StoredSchedule) -> ScheduleSnapshot:
    """A schedule, without what its tasks are given."""
    return ScheduleSnapshot(
        owner=stored.owner,
        name=stored.name,
        uid=stored.uid,
        state=stored.state,
        version=stored.version,
        edition=stored.incarnation,
        runs_started=stored.runs_started,
        runs_skipped=stored.runs_skipped,
        log=stored.log,
    )
