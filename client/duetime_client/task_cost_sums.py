"""Sums the API's cost estimates of tasks by type, schedule, state or tag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime_common.cost_estimate import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime_client.task import Task

_FIELDS = ("type", "schedule", "state")
_TAG = "tag:"


@dataclass(frozen=True, slots=True)
class CostKey:
    """The attribute by which costs are summed.

    Attributes:
        field: a field of a task; `tag` for one of its tags.
        tag: the tag's key.
    """

    field: str
    tag: str = ""

    @classmethod
    def of(cls, text: str) -> CostKey:
        """Parse a key: `type`, `schedule`, `state`, or `tag:KEY`.

        Raises:
            WorkloadError: the text is not a key.
        """
        if text in _FIELDS:
            return cls(text)
        if text.startswith(_TAG) and text != _TAG:
            return cls("tag", text.removeprefix(_TAG))
        raise WorkloadError(f"{text!r} is not allowed; choose one of {', '.join(_FIELDS)}, tag:KEY")

    def name(self, task: Task) -> str | None:
        """The name of a task's group; `None` if the task has no schedule or does not have the tag."""
        if self.field == "tag":
            return task.tags.get(self.tag)
        if self.field == "schedule":
            return str(task.schedule["name"]) if task.schedule else None
        return str(getattr(task, self.field))


@dataclass(frozen=True, slots=True)
class CostSum:
    """The cost of a group of tasks.

    Attributes:
        name: the group; `None` for tasks without a schedule or the tag.
        tasks, attempts: the number of tasks and of attempts.
        dollars: the total cost of the group.
    """

    name: str | None
    tasks: int
    attempts: int
    dollars: float

    @property
    def per_million(self) -> float:
        """The cost in dollars of a million tasks of the group."""
        return self.dollars / self.tasks * 1_000_000


def sums(tasks: Iterable[Task], key: CostKey) -> list[CostSum]:
    """The cost of tasks by group, highest first; tasks are streamed, not kept in memory."""
    found: dict[str | None, CostSum] = {}
    for task in tasks:
        name = key.name(task)
        so_far = found.get(name, CostSum(name, 0, 0, 0.0))
        dollars = so_far.dollars + (task.cost_dollars or 0.0)
        found[name] = CostSum(name, so_far.tasks + 1, so_far.attempts + task.attempt, dollars)
    return sorted(found.values(), key=lambda each: (-each.dollars, each.name or ""))
