"""Invariants of every item's expiry under all faults: no item expires while it may still be needed.

The rules are in `tests/time_to_live.py`. They are checked here at each write, and after everything has ended.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.domain.tasks.states import State
from duetime.domain.times import DAY, SECOND, Millis
from duetime.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.domain.tasks.task import Content, Task
    from tests.simulation.fault_simulation import FaultSimulation

_STATE = ATTRIBUTES["state"].name
_OPEN = frozenset({"blocked", "scheduled", "preparing", "running", "waiting", "paused", "rolling_back"})
_MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d#")
LONGEST_ABSENCE = 365 * DAY
"""The longest time for which the trigger can be absent and still find every timer afterwards."""
REMEMBERED = DAY
"""The minimum time for which an idempotency key is remembered."""
_LATE = 70 * SECOND
"""The tolerance, because a write may take a minute and the writer's clock may be behind."""


_REDIRECTED = "u"
"""An attribute of an idempotency key's item that is set if the key now names an older task."""
_KEY_HOLDER = "i"
"""The attribute of a unique key's item that names the task which holds the key."""


def expiry_of(item: Mapping[str, Any]) -> Millis | None:
    """The time from which DynamoDB may delete an item; `None` if the item does not expire."""
    return int(item[schema.TTL]["N"]) * SECOND if schema.TTL in item else None


class ExpiryWatching:
    """Watches when items expire.

    Attributes:
        may_stay: whether contents may be left forever, because a write that removed their expiry arrived after their
            task had ended, long after the sender had given up.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.may_stay = False

    def written(self, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table."""
        if new is None:
            return
        partition, now = new[schema.PARTITION_KEY]["S"], self._account.time.now()
        expires_at = expiry_of(new)
        if _STATE in new:
            is_safe = expires_at is None or new[_STATE]["S"] not in _OPEN
            self._check(is_safe, f"{new[schema.SORT_KEY]['S']} is {new[_STATE]['S']}, and may expire")
        elif _MINUTE.match(partition) and expires_at is not None:
            key = new[schema.SORT_KEY]["S"]
            self._check(expires_at >= now + LONGEST_ABSENCE, f"the timer {key} may be removed before it is read")
        elif partition.startswith(schema.KEY_PREFIX) and expires_at is not None and _REDIRECTED not in new:
            self._check(expires_at >= now + REMEMBERED - _LATE, f"{partition} is forgotten too soon")
        elif partition.startswith(schema.RATE_PREFIX):
            ends = [int(new[name]["N"]) // 1_000 for name in ("a", "h", "n", "o") if name in new]
            is_kept = expires_at is None or (expires_at > max(ends, default=0) and not is_controlled(new))
            self._check(is_kept, f"{partition} is forgotten too soon")
            self._check(expires_at is not None or is_controlled(new), f"{partition} is kept for ever")
        elif partition.startswith(schema.UNIQUE_KEY_PREFIX) and expires_at is not None:
            task = self._account.watching.record(new[_KEY_HOLDER]["S"])
            # A purge lets the key of an ended task expire at once, and then erases the task, so that the task cannot be
            # retried; a retry before that takes the key again, and removes the expiry.
            is_purged = task is not None and task.is_terminal and expires_at <= now + SECOND
            is_safe = task is None or is_purged or _let_go(task) or (task.expires_at or expires_at) < expires_at
            self._check(is_safe, f"{partition} may be removed before its task {new[_KEY_HOLDER]['S']}")

    def check_kept(self, task_id: str) -> None:
        """Check that the contents which a user has just read do not expire if their record does not expire."""
        task = self._account.watching.record(task_id)
        for content in _items_of(task) if task is not None and task.expires_at is None else ():
            item = self._account.table.get((f"{schema.CONTENT_PREFIX}{task_id}", content.name))
            is_kept = item is not None and expiry_of(item) is None
            self._check(is_kept, f"{content.name} of {task_id} may be removed while its task is kept")

    def check_end(self) -> None:
        """Check that contents outside a record are kept at least as long as the record, but not forever."""
        runtime: dict[str, list[Mapping[str, Any]]] = {}
        for item in self._account.table.every():
            if item[schema.PARTITION_KEY]["S"].startswith(schema.CONTENT_PREFIX):
                owner = item[schema.PARTITION_KEY]["S"].removeprefix(schema.CONTENT_PREFIX)
                runtime.setdefault(owner, []).append(item)
        retention = Settings(self._account.environ).retention
        for task in self._account.watching.tasks():
            self._check_contents(task, runtime.get(task.id.text, []))
            if task.node_ref is None and task.finished_at is not None and not task.erased:
                kept = (task.expires_at or 0) - task.finished_at
                # There may be days in which no process runs between the task's outcome and the steps that follow the
                # outcome.
                is_right = -9 * DAY < kept - retention.of(task.type) < _LATE
                self._check(is_right, f"{task.id} of type {task.type} is kept for {kept / DAY:.2f} days after its end")

    def _check_contents(self, task: Task, items: list[Mapping[str, Any]]) -> None:
        there = {item[schema.SORT_KEY]["S"]: expiry_of(item) for item in items}
        for content in _items_of(task):
            self._check(content.name in there, f"{task.id} refers to {content.name}, which is not there")
            expires_at = there.get(content.name)
            if expires_at is not None:
                is_safe = task.finished_at is not None and task.expires_at is not None and expires_at > task.expires_at
                self._check(is_safe or task.finished_at is None, f"{content.name} of {task.id} expires before it")
        if task.finished_at is not None and task.expires_at is not None:
            left = [name for name, expires_at in there.items() if expires_at is None]
            # An API function that crashes while it cancels or deletes a task may have written its end, but not the
            # contents' expiry.
            is_cut_off = self._account.faulty and task.state is State.CANCELLED and task.node_ref is None
            self._check(not left or is_cut_off or self.may_stay, f"{left} of {task.id}, which expires, never expires")

    def _check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        self._account.watching.check(holds, violation)


def is_controlled(item: Mapping[str, Any]) -> bool:
    """Whether a rate was paused or pinned by the rate's owner."""
    return any(item.get(name, {"N": "0"})["N"] != "0" for name in ("pz", "pl"))


def _items_of(task: Task) -> Iterator[Content]:
    for content in task.contents_outside:
        if content.place.value == "item":
            yield content


def _let_go(task: Task) -> bool:
    """Whether a task released its unique key when it started, so that the task can never take the key again."""
    until_start = task.debounce is not None or (task.unique is not None and task.unique.until.value == "started")
    return until_start and task.started_at is not None
