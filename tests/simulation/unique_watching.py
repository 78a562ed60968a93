"""Invariants of unique keys under all faults: one task at a time holds a key, and responses are correct.

The holder of a key is determined here from the task records alone, without the keys' items. A task's due time is also
determined from the records; the task must start however often it is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND
from duetime_testing.simulation.machines import SKEW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.users import Reply

_KEYS = tuple(ATTRIBUTES[name].name for name in ("unique", "debounce"))
_STATE = ATTRIBUTES["state"].name
PROMPT = 10 * SECOND
"""Without faults, the maximum time from a task's due time until it is claimed, in milliseconds."""
_ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.ROLLED_BACK, State.CANCELLED})
_AT_WORK = frozenset({State.PREPARING, State.RUNNING, State.ROLLING_BACK})


class UniqueWatching:
    """Watches which tasks hold unique keys.

    Attributes:
        answered: how often a creation returned an existing task, by the action that was taken on the task.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._last: dict[str, str] = {}
        """For each key, the task that took the key last, so that no other task can hold the key."""
        self._holding: set[str] = set()
        self._held_again_at: dict[str, Millis] = {}
        self._held_until: dict[str, Millis] = {}
        self._names: dict[str, set[str]] = {}
        self._due_since: dict[str, Millis] = {}
        self.answered: dict[str, int] = {}

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check a write to the table."""
        record = new or old
        if record is None or _STATE not in record or not any(name in record for name in _KEYS):
            return
        task, now = task_of(record), self._account.time.now()
        key, name = _key_of(task), task.id.text
        self._watch_start(name, task, is_there=new is not None)
        if new is None or not _holds(task):
            if name in self._holding:
                self._holding.discard(name)
                self._held_until[name] = now
            return
        self._names.setdefault(name, set()).add(task.name)
        if old is None or task_of(old).is_terminal:
            self._check_taken(key, name)
        elif name not in self._holding and self._last.get(key) == name:
            # A task that was claimed and put back holds its key again, unless another task took the key in the
            # meantime.
            self._held_again_at[name] = now
        else:
            return
        self._holding.add(name)
        self._held_until.pop(name, None)

    def _watch_start(self, name: str, task: Task, *, is_there: bool) -> None:
        """Check that a task is claimed if it has been due continuously and no creation has delayed it."""
        account, now = self._account, self._account.time.now()
        since = self._due_since.get(name)
        if is_there and task.state is State.SCHEDULED:
            if since is None or since > now or task.due_at > now + 2 * SKEW:
                self._due_since[name] = max(task.due_at, now)
            return
        self._due_since.pop(name, None)
        is_held = bool(task.all_locks) or task.rate is not None or task.pull_queue
        if since is None or is_held or task.state is not State.RUNNING:
            return
        late = now - max(since, account.received_from)
        account.watching.check(account.faulty or late <= PROMPT, f"{name} was due for {late} ms, and replaced")

    def _check_taken(self, key: str, name: str) -> None:
        """Check that a task that holds its key does not lose it to another task."""
        other = self._last.get(key)
        if other not in {None, name}:
            # The process that takes the key may have read the record while a worker had the task, and write after the
            # task was put back.
            began = self._account.time.author().began
            is_held = other in self._holding and self._held_again_at.get(other, -1) < began
            self._account.watching.check(not is_held, f"{name} took the key {key!r}, which {other} held")
            self._holding.discard(other)
            record = self._account.watching.record(other)
            if record is not None and not record.is_terminal:
                # Until now, a creation may have found this task, whose record it reads after the task was put back.
                self._held_until[other] = self._account.time.now()
        self._last[key] = name

    def answered_creation(self, body: Mapping[str, Any], asked_at: Millis, answer: Reply) -> None:
        """Check the response to a creation with a unique key."""
        check = self._account.watching.check
        done = answer.headers.get("Duetime-On-Conflict")
        if answer.status != 200 or answer.headers.get("Idempotent-Replayed"):
            return
        name = answer.body["id"]
        self.answered[done or ""] = self.answered.get(done or "", 0) + 1
        until = self._held_until.get(name)
        check(until is None or until >= asked_at, f"{name} was {done} although it had held no key since {until}")
        if done == "replace":
            is_so = body["name"] in self._names.get(name, ())
            check(is_so, f"{name} was replaced by {body['name']!r}, which it never was")


def _key_of(task: Task) -> str:
    if task.debounce is not None:
        return f"{task.owner} {task.debounce.key}"
    assert task.unique is not None
    return f"{task.owner} {task.unique.key}"


def _holds(task: Task) -> bool:
    """Whether a task holds its unique key."""
    if task.state in _ENDED:
        return False
    if task.unique is not None and task.unique.until.value == "ended":
        return True
    return task.started_at is None and task.state not in _AT_WORK
