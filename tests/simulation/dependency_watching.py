"""Invariants of tasks with `after` under all faults: each task starts or ends as the outcomes of other tasks require.

The condition of each rule is implemented a second time here. Tasks that wait forever are found by the final check,
which covers all tasks.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from tests.simulation.fault_simulation import FaultSimulation

_STATE, _AFTER = (ATTRIBUTES[name].name for name in ("state", "after"))
_GOOD = "succeeded"
_BAD = frozenset({"failed", "rolled_back", "cancelled"})


class DependencyWatching:
    """Watches tasks that wait for other tasks.

    Attributes:
        decided: the number of tasks that were released, or that ended without running, by rule and result.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._ends: dict[str, set[str]] = {}
        self.decided: Counter[tuple[str, str]] = Counter()

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table."""
        if new is None or _STATE not in new:
            return
        task = task_of(new)
        if task.is_terminal:
            self._ends.setdefault(new[schema.SORT_KEY]["S"], set()).add(task.state.value)
        if old is None or _AFTER not in new or task_of(old).state.value != "blocked":
            return
        if task.state.value == "scheduled":
            self._check(task, "released", holds=self._may_start(task))
        elif task.state.value == "cancelled" and task.cancellation is None and task.error is not None:
            bad = any(ends & _BAD for ends in self._ends_of(task))
            self._check(task, task.error.type, holds=bad or task.error.type == "skipped")

    def _check(self, task: Task, what: str, *, holds: bool) -> None:
        assert task.after is not None
        self.decided[task.after.rule.value, what] += 1
        self._account.watching.check(holds, f"{task.id} was {what} by {task.after.rule} of {self._ends_of(task)}")

    def _ends_of(self, task: Task) -> list[set[str]]:
        """For each task that the given task waits for, all outcomes so far."""
        assert task.after is not None
        return [self._ends.get(str(each), set()) for each in task.after.task_ids]

    def _may_start(self, task: Task) -> bool:
        ends = self._ends_of(task)
        assert task.after is not None
        match task.after.rule.value:
            case "all_success":
                return all(_GOOD in each for each in ends)
            case "all_done":
                return all(ends)
            case "none_failed":
                return all(each & {_GOOD, "cancelled"} for each in ends)
            case "one_success":
                return any(_GOOD in each for each in ends)
            case "always":
                return True
            case "one_failed":
                return any(each & _BAD for each in ends)
            case rule:
                raise AssertionError(rule)
