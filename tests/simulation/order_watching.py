"""Invariants of ordered keys under all faults: one task of a key runs at a time, in the order of creation.

The order is derived here from the records alone. A task comes before another task if its record existed before the
other task's creation began, or if it precedes the other task in the same batch. The lines themselves are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.tasks.states import LEASED, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_testing.simulation.virtual_time import Strand
    from tests.simulation.fault_simulation import FaultSimulation

_ORDER = ATTRIBUTES["order"].name
_ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.ROLLED_BACK, State.CANCELLED})
_PHASES = frozenset({"prepare", "run", "rollback"})


class OrderWatching:
    """Watches the tasks with ordered keys.

    Attributes:
        followed: the number of started tasks that had to wait for an earlier task.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._written_at: dict[str, Millis] = {}
        self._batches: dict[tuple[str, Strand, Millis], list[Task]] = {}
        """The tasks of each request that created several tasks."""
        self._started: set[str] = set()
        self._open: dict[str, dict[str, int | None]] = {}
        """For each key, the tasks that have not ended or that block the key's line, with their numbers."""
        self._before: dict[str, set[str]] = {}
        self._gone: set[str] = set()
        """Tasks that have ended once. If these tasks are retried, they are put back in line behind the running task."""
        self._begun: dict[str, set[str]] = {}
        self.followed = 0

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table."""
        record = old if new is None or _ORDER not in new else new
        if record is None or _ORDER not in record:
            return
        task = task_of(record)
        name = task.id.text
        is_there = new is not None and _ORDER in new
        key = _key_of(task)
        known = self._open.setdefault(key, {})
        if old is None and is_there:
            self._created(task, known)
        if is_there and _holds(task):
            known[name] = task.order_number
        elif name in known:
            del known[name]
            self._gone.add(name)
        if not is_there or task.state in _ENDED:
            self._begun.get(key, set()).discard(name)

    def _created(self, task: Task, known: Mapping[str, int | None]) -> None:
        """Check that a new task's number is larger than the numbers of all tasks that existed before the creation."""
        author = self._account.time.author()
        began = author.began
        before = {each for each in known if self._written_at[each] < began}
        late = [each for each in before if (known[each] or 0) >= (task.order_number or 0)]
        self._account.watching.check(not late, f"{task.id} was created after {late}, and is before them in line")
        self._before[task.id.text] = before
        self._written_at[task.id.text] = self._account.time.now()
        batch = self._batches.setdefault((_key_of(task), author, began), [])
        for other in batch:
            first, second = sorted((task, other), key=lambda each: each.order_number or 0)
            self._before[second.id.text].add(first.id.text)
        batch.append(task)

    def began(self, task: Task, phase: str, fence: int) -> None:
        """When a target is called, check that no earlier task with the key is open and that no other task has begun."""
        if task.order is None or phase not in _PHASES or task.fence != fence or task.state not in LEASED | _UNDOING:
            return
        key, name = _key_of(task), task.id.text
        begun = self._begun.setdefault(key, set())
        others = begun - {name}
        self._account.watching.check(not others, f"{phase} of {name} began while {sorted(others)} of its key go on")
        earlier = (self._before.get(name, set()) & self._open.get(key, {}).keys()) - self._gone
        is_first = name not in self._started
        self._started.add(name)
        self.followed += is_first and bool(self._before.get(name))
        self._account.watching.check(
            not (earlier and is_first), f"{phase} of {name} began before {sorted(earlier)} of its key had ended"
        )
        begun.add(name)


_UNDOING = frozenset({State.ROLLING_BACK})


def _key_of(task: Task) -> str:
    assert task.order is not None
    return f"{task.owner} {task.order.key}"


def _holds(task: Task) -> bool:
    """Whether a task has not ended, or blocks the line of its key."""
    has_failed = task.state in {State.FAILED, State.ROLLED_BACK} and task.error is not None
    stops = has_failed and task.order is not None and task.order.on_failure.value == "stop" and not task.erased
    return task.state not in _ENDED or stops
