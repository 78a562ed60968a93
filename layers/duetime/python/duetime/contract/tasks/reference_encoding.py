"""The schedule and the topology that a task belongs to, as answers show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.tasks.responses import ScheduleReferenceResponse, TopologyReferenceResponse
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.tasks.parent_references import NodeRef, ScheduleRef


def schedule_response(schedule_ref: ScheduleRef | None) -> ScheduleReferenceResponse | None:
    """The schedule's occurrence that a task is."""
    if schedule_ref is None:
        return None
    return ScheduleReferenceResponse(
        name=schedule_ref.schedule,
        revision=schedule_ref.revision,
        scheduled_at=to_iso(schedule_ref.nominal),
        previous_at=None if schedule_ref.previous is None else to_iso(schedule_ref.previous),
        next_at=None if schedule_ref.next is None else to_iso(schedule_ref.next),
        cause=schedule_ref.cause,
    )


def topology_response(node_ref: NodeRef | None) -> TopologyReferenceResponse | None:
    """The node of a topology that a task is."""
    if node_ref is None:
        return None
    return TopologyReferenceResponse(
        id=node_ref.topology.text, run=node_ref.run, node=node_ref.key, reason=node_ref.note or None
    )
