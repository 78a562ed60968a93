"""Invariants of locks under all faults, which are checked at each write of a lock."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.domain.locks import RESERVED
from duetime.domain.operating_parameters import LATEST_ARRIVAL
from duetime.domain.switches import SYSTEM
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND, Millis
from duetime_testing.simulation.machines import SKEW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from tests.simulation.fault_simulation import FaultSimulation

_HOLDERS, _SHARED = "m", "sh"
_PATIENCE = 10 * SECOND
"""How long a task must wait in line before it must not be overtaken.

A task checks the lock again after joining the line.
"""
_CLOCKS = 2 * SKEW
_AT_WORK = frozenset({State.PREPARING, State.RUNNING})


class LockWatching:
    """Watches the holders of locks and the tasks that wait for them."""

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._freed_at: dict[str, Millis] = {}
        self._held: dict[str, Mapping[str, Any]] = {}
        self._lines: defaultdict[str, dict[tuple[str, str], tuple[Millis, bool]]] = defaultdict(dict)

    def freed(self, key: str) -> None:
        """Record that an operator forced the release of a lock by all its holders."""
        self._freed_at[key] = self._account.time.now()

    def was_freed(self, task: Task | None, since: Millis) -> bool:
        """Whether the release of one of a task's locks was forced since this time."""
        return task is not None and any(self._freed_at.get(lock.key, 0) >= since for lock in task.all_locks)

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table; writes of other items are ignored."""
        item = new or old
        if item is None or not item[schema.PARTITION_KEY]["S"].startswith(schema.LOCK_PREFIX):
            return
        if _HOLDERS not in item:
            self._note_line(item, is_there=new is not None)
            return
        before, after = _holders(old), _holders(new)
        key = item[schema.SORT_KEY]["S"].removeprefix("#")
        is_forced = self._account.time.now() - self._freed_at.get(key, -LATEST_ARRIVAL) < LATEST_ARRIVAL
        for task_id, (fence, until) in before.items():
            now_by = after[task_id][0] if task_id in after else RESERVED
            if now_by == RESERVED and fence != RESERVED and not is_forced:
                # The hold expired, and the same write may have reserved the lock for the task's next attempt.
                self._check_gone(task_id, fence, until)
            elif RESERVED < now_by < fence:
                self._violated(f"{task_id} holds a lock by fence {now_by} after fence {fence}")
        if new is not None:
            self._held[item[schema.PARTITION_KEY]["S"]] = new
            self._check_ttl(new, after)
            if len(_modes(new)) > 1:
                self._violated(f"the lock {key} is shared and exclusive at once")
            for task_id in after.keys() - before.keys():
                self._check_line(new, key, task_id)

    def check_end(self) -> None:
        """Check that without faults, each hold was released by its own attempt and did not have to expire.

        There are three exceptions. A target call that does not end in time ends its process, and the hold expires. If
        the task of a lost worker is cancelled or has no attempts left, the next claim ends the task without the lock.
        If a lost worker held a place under the limit of a switch that was deleted, the next attempt needs no place.
        """
        overdue = self._account.watching.overdue
        for partition, item in self._held.items():
            for task_id, (fence, _until) in _holders(item).items():
                task = self._account.watching.record(task_id)
                is_over = task is None or task.finished_at is not None
                if task is not None and fence < task.fence and _was_ended_by_claim(task):
                    continue
                if (task_id, fence) in self._account.watching.lost and self._is_of_deleted_limit(partition):
                    continue
                if is_over and fence != RESERVED and not self._account.faulty and task_id not in overdue:
                    self._violated(f"{task_id} has ended, and did not give back {partition}")

    def _is_of_deleted_limit(self, partition: str) -> bool:
        """Whether a lock enforced the limit of a switch that is no longer set."""
        of_switches = schema.LOCK_PREFIX + SYSTEM + "#"
        if not partition.startswith(of_switches):
            return False
        switches = DynamoSwitchStore(self._account.dynamodb, "tasks").read(consistent=True).in_force  # type: ignore[arg-type]  # a fake
        limited = {key.resource for key, switch in switches.by_key.items() if switch.max_concurrent is not None}
        return partition.removeprefix(of_switches) not in limited

    def _note_line(self, item: Mapping[str, Any], *, is_there: bool) -> None:
        """Record which tasks wait for a lock, and since when they wait."""
        line = self._lines[item[schema.PARTITION_KEY]["S"]]
        _mark, due, task_id = item[schema.SORT_KEY]["S"].split("#")
        line.pop((due, task_id), None)
        if is_there:
            line[due, task_id] = self._account.time.now(), _SHARED in item

    def _check_line(self, item: Mapping[str, Any], key: str, task_id: str) -> None:
        """Check that no task overtakes an earlier task that wants the other mode and has waited for some seconds.

        A place in the line is ignored if its task's due time has been changed since.
        """
        task, now = self._account.watching.record(task_id), self._account.time.now()
        is_shared = item[_HOLDERS]["M"][task_id]["S"].endswith(" s")
        if task is None or self._account.faulty:
            return
        for (due, waiter), (since, shares) in self._lines[item[schema.PARTITION_KEY]["S"]].items():
            is_before = (int(due), waiter) < (task.due_at, task_id) and now - since > _PATIENCE
            waiting = self._account.watching.record(waiter) if is_before and shares != is_shared else None
            if waiting is None or waiting.due_at != int(due):
                continue
            if waiting.state is State.WAITING and waiting.waiting_for == f"lock {key}":
                self._violated(f"{task_id} got the lock {key}, for which {waiter} has waited {now - since} ms")

    def _check_gone(self, task_id: str, fence: int, until: Millis) -> None:
        """Check that a hold is ended by or with its own attempt, or that it has expired by every machine's clock."""
        task = self._account.watching.record(task_id)
        is_live = (
            task is not None and task.fence == fence and task.state in _AT_WORK and task.lease_expires_at is not None
        )
        ahead = until + _CLOCKS - SKEW - self._account.time.now()
        if is_live and ahead > 0:
            self._violated(f"{task_id} lost its lock {ahead} ms before its hold was over by every clock")

    def _check_ttl(self, item: Mapping[str, Any], holders: Mapping[str, tuple[int, Millis]]) -> None:
        expires_at = int(item[schema.TTL]["N"]) * SECOND
        for task_id, (_fence, until) in holders.items():
            if expires_at < until + _CLOCKS:
                self._violated(f"a lock may be removed {until - expires_at} ms before {task_id} ceases to hold it")

    def _violated(self, what: str) -> None:
        self._account.watching.check(False, what)  # noqa: FBT003 - it does not hold


def _was_ended_by_claim(task: Task) -> bool:
    """Whether a claim ended a task after its worker was lost, without another attempt."""
    is_last = task.error is not None and task.error.type == "WorkerLost"
    return task.state is State.CANCELLED or is_last


def _holders(item: Mapping[str, Any] | None) -> dict[str, tuple[int, Millis]]:
    if item is None:
        return {}
    held = ((task_id, value["S"].split()) for task_id, value in item[_HOLDERS]["M"].items())
    return {task_id: (int(fence), int(until)) for task_id, (fence, until, _mode) in held}


def _modes(item: Mapping[str, Any]) -> set[str]:
    """The modes of a lock's holders."""
    return {value["S"].split()[2] for value in item[_HOLDERS]["M"].values()}
