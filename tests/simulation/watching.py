"""What must hold in an account whatever fails: watched at every write of a record and every call of a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attributes import ATTRIBUTES
from duetime.adapters.dynamodb.records import key_of, task_of
from duetime.domain.ids import TaskId
from duetime.domain.states import LEGAL, WAITING, State
from duetime.domain.task import LockScope
from duetime.domain.times import SECOND, Millis
from tests.simulation.machines import SKEW, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.domain.task import LockSpec, Task
    from tests.simulation.storms import Storm
    from tests.virtual.time import Strand

_STATE, _FENCE, _VERSION = (ATTRIBUTES[name].name for name in ("state", "fence", "version"))
_MOVES = {(source, rule.to or source) for rule in LEGAL.values() for source in rule.sources}
_BEGINNING = frozenset({"prepare", "run"})
PROMPT = 10 * SECOND
"""Lateness without faults is always less."""


@dataclass
class Effect:
    """One call of a target, from its start to its end or to the death of its process."""

    task_id: str
    phase: str
    fence: int
    began: Millis
    process: Strand = field(repr=False)
    lock: LockSpec | None = None
    ended: Millis | None = None

    @property
    def lives(self) -> bool:
        """Whether it still goes on."""
        return self.ended is None and not self.process.done

    @property
    def is_locked(self) -> bool:
        """Whether it must be under the task's lock."""
        return self.lock is not None and (self.lock.scope is LockScope.TASK or self.phase in {"run", "rollback"})


@dataclass
class Watching:
    """Watches an account.

    Attributes:
        violations: what did not hold.
        cancelled: tasks whose cancel was acknowledged.
        accepted: tasks whose creation was acknowledged.
        effects: how many calls of targets there were.
        latest: the greatest lateness of an unlocked start, by the task's own time.
        live: the calls of targets that go on.
        taken_up: the fence of each attempt that was begun in its time, not taken over, and has called nothing yet.
    """

    account: Storm
    violations: list[str] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    accepted: list[str] = field(default_factory=list)
    effects: int = 0
    latest: Millis = 0
    live: list[Effect] = field(default_factory=list)
    taken_up: dict[str, int] = field(default_factory=dict)

    def check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        """Note what does not hold."""
        if not holds:
            self.account.trace("watch", "VIOLATION", violation)
            self.violations.append(f"{self.account.time.now()}: {violation}")

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Look at a write of the table: moves are legal, versions and fences grow, records stay."""
        record = new or old
        if record is None or _STATE not in record:
            return
        name = record[schema.SORT_KEY]["S"]
        if old is None or new is None:
            self.check(new is not None, f"{name} was removed")
            return
        before, after = State(old[_STATE]["S"]), State(new[_STATE]["S"])
        self.check((before, after) in _MOVES, f"{name} went from {before} to {after}")
        versions = int(old[_VERSION]["N"]), int(new[_VERSION]["N"])
        self.check(versions[1] == versions[0] + 1, f"{name} went from version {versions[0]} to {versions[1]}")
        fences = int(old[_FENCE]["N"]), int(new[_FENCE]["N"])
        self.check(fences[0] <= fences[1] <= fences[0] + 1, f"{name} went from fence {fences[0]} to {fences[1]}")
        if after is State.SUCCEEDED and before is not after:
            others = [each for each in self.live if each.task_id == name and each.lives]
            self.check(not others, f"{name} succeeded while {others} goes on")
        if before in WAITING and after is State.RUNNING:
            self.taken_up[name] = fences[1]

    def began(self, phase: str, task_id: str, fence: int) -> Effect:
        """A target is called."""
        account, task = self.account, self.record(task_id)
        now, process = account.time.now(), account.time.process()
        assert task is not None
        self.effects += 1
        what = f"{phase} of {task_id}, fence {fence}"
        account.trace(process.home, "begins", what)
        if phase in _BEGINNING and task.fence == fence:
            # A pull worker goes by the clock of the API.
            skew = process.home.skew if isinstance(process.home, Machine) else SKEW
            self.check(now + skew >= task.next_at, f"{what} began {task.next_at - now - skew} ms early")
            self._check_lateness(task, now, what)
        self.check(phase not in _BEGINNING or task_id not in self.cancelled, f"{what} began after its cancel")
        self.live = [each for each in self.live if each.lives]
        for other in self.live:
            self.check(other.task_id != task_id, f"{what} began while {other} goes on")
        effect = Effect(task_id, phase, fence, now, process, task.lock)
        self._check_lock(effect, what)
        self.live.append(effect)
        return effect

    def ended(self, effect: Effect) -> None:
        """A target has returned."""
        effect.ended = self.account.time.now()
        self.account.trace(effect.process.home, "ends", f"{effect.phase} of {effect.task_id}, fence {effect.fence}")

    def _check_lateness(self, task: Task, now: Millis, what: str) -> None:
        # How many pull workers there are is not the scheduler's to say.
        if task.lock is not None or task.lane or self.taken_up.pop(task.id.text, None) != task.fence:
            return
        late = now - task.next_at
        self.latest = max(self.latest, late)
        self.check(bool(self.account.faulty) or late <= PROMPT, f"{what} began {late} ms late without a fault")

    def _check_lock(self, effect: Effect, what: str) -> None:
        lock = effect.lock
        if lock is None or not effect.is_locked:
            return
        others = {each.task_id for each in self.live if each.is_locked and each.lock and each.lock.key == lock.key}
        count = len(others | {effect.task_id})
        self.check(count <= lock.limit, f"{what} began as number {count} under lock {lock.key}")

    def record(self, task_id: str) -> Task | None:
        """A task as it is stored."""
        key = key_of(TaskId(task_id))
        item = self.account.table.get((key[schema.PARTITION_KEY]["S"], task_id))
        return task_of(item) if item is not None else None

    def tasks(self) -> Iterator[Task]:
        """All tasks."""
        yield from (task_of(item) for item in self.account.table.every() if _STATE in item)

    def unfinished(self) -> list[Task]:
        """The tasks that have not come to their end."""
        return [task for task in self.tasks() if task.finished_at is None]

    def check_end(self) -> None:
        """Everything that was accepted is there, and at its end."""
        for task in self.unfinished():
            self.check(False, f"{task.id} is still {task.state}")  # noqa: FBT003 - it does not hold
        for task_id in self.accepted:
            self.check(self.record(task_id) is not None, f"{task_id} was accepted and is not there")
