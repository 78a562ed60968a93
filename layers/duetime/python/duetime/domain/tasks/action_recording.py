"""How a write tells of the action that causes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.action_history import ActionRecord, ActorType, Attribution

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.action_history import Action
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis


def recorded(
    task: Task, action: Action, by: Attribution, at: Millis, fields: Iterable[str] = (), nodes: tuple[str, ...] = ()
) -> TaskChanges:
    """What a write that only applies to this version of a record sets, so that it tells of the action."""
    record = ActionRecord(action, at, by, task.version + 1, tuple(sorted(fields)), nodes)
    return {"actions": task.actions.plus(record)}


def is_repeated(task: Task, action: Action, version: int | None, by: Attribution, nodes: tuple[str, ...] = ()) -> bool:
    """Whether an action was carried out on the very version that a request for it names.

    Then it is the same request, sent again since the answer to the first one was lost.
    """
    if version is None:
        return False
    wanted = action, version + 1, by, nodes
    return any((each.action, each.version, each.by, each.nodes) == wanted for each in task.actions.records)


def by_topology(topology: Task) -> Attribution:
    """A topology does it to one of its nodes: for the reason for which something was last done to the topology."""
    last = topology.actions.records[-1:]
    return Attribution(ActorType.TOPOLOGY, reason=last[0].by.reason if last else "")
