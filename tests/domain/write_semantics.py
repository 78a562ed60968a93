"""Computes the effect of a conditional write without a store, so that tests can compare the stores with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.states import LEGAL, STARTABLE
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import RequestedAction

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import Write
    from duetime.domain.tasks.task import Task


def permits(write: Write, task: Task) -> bool:
    """Whether a record allows a write."""
    guard = write.guard
    if task.state not in LEGAL[write.move].sources or task.erased:
        return False
    if guard.owner not in (None, task.owner) or guard.version not in (None, task.version):
        return False
    if guard.fence not in (None, task.fence) or (guard.acknowledged and task.unacknowledged):
        return False
    if (guard.alone and (task.node_ref is not None or isinstance(task.target, TopologyTarget))) or (
        (guard.alone or guard.unawaited) and task.has_dependents
    ):
        return False
    if (guard.open and task.finished_at is not None) or (
        guard.not_cancelled and task.requested_action is RequestedAction.CANCEL
    ):
        return False
    if guard.due_by is not None and task.next_at > guard.due_by:
        return False
    if guard.leased_until_before is not None and (task.lease_expires_at or 0) > guard.leased_until_before:
        return False
    is_of_a_generation = guard.leased_until_before is None or task.state in STARTABLE
    return not is_of_a_generation or guard.generation in (None, task.generation)


def applied(write: Write, task: Task) -> Task:
    """The record after a permitted write."""
    changes: dict[str, Any] = {name: value for name, value in write.sets_once.items() if getattr(task, name) is None}
    changes.update(write.sets)
    changes |= {name: getattr(task, name) + number for name, number in write.adds.items()}
    state = LEGAL[write.move].to or task.state
    return replace(task, state=state, nonce=write.nonce, version=task.version + 1, **changes)
