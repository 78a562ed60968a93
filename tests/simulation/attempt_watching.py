"""Invariants of attempts under all faults: who may write them, their number, their duration, and how they stop.

The rules are implemented a second time here, independently of the code that they check.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.field_codecs import read_state
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HandlerTarget, TopologyTarget
from duetime.domain.times import SECOND, Millis
from duetime_testing.simulation.machines import SKEW, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime_testing.simulation.virtual_time import Strand
    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.watching import Effect

MOVES: Mapping[str, str] = {
    "blocked": "blocked cancelled failed paused scheduled",
    "scheduled": "cancelled failed paused running scheduled succeeded",
    "preparing": "cancelled failed paused waiting preparing rolling_back running",
    "running": "cancelled failed paused waiting preparing rolling_back running succeeded",
    "waiting": "cancelled failed paused waiting running scheduled succeeded",
    "paused": "blocked cancelled paused scheduled",
    "succeeded": "rolling_back scheduled succeeded",
    "failed": "failed rolling_back scheduled",
    "rolling_back": "failed rolled_back rolling_back",
    "rolled_back": "rolled_back",
    "cancelled": "blocked cancelled",
}
"""For each state of a task, the states that may follow."""
_STATE, _FENCE, _LEASE, _ATTEMPT_HISTORY, _ASKED, _DEFERRED, _ACTIONS, _DEPENDENTS = (
    ATTRIBUTES[name].name
    for name in (
        *("state", "fence", "lease_expires_at", "attempt_history", "requested_action", "deferred_fence"),
        *("actions", "has_dependents"),
    )
)
_AT_WORK = frozenset({State.PREPARING, State.RUNNING})
_LEASED = frozenset({*_AT_WORK, State.ROLLING_BACK})
_ENDED = frozenset({State.FAILED, State.CANCELLED})
_RETRIABLE = frozenset(
    {
        *("Boom", "Timeout", "WorkerLost"),
        # A step raises these errors if the table fails or the lease has ended.
        *("Unavailable", "LeaseLost"),
        *("Panic", "CancelledError", "KeyboardInterrupt", "GeneratorExit", "BaseExceptionGroup"),
    }
)
"""Types of errors after which another attempt follows, if the task has attempts left."""
_BEGINNING = frozenset({"prepare", "run"})
OVERDUE = 30 * SECOND
"""How long after its timeout a call may still last, because the timeout must be noticed and the process must end."""
SWITCHED = 85 * SECOND
"""The time after which all processes have read a switch, even if reading it fails at first."""
MOST_UNRECEIVED = 3
"""The maximum number of consecutive leases of a pulled task that end without a report and do not count as attempts."""
TOLD = 25 * SECOND
"""The maximum time until a target learns of a request, longer than a third of a lease plus a target's step."""


class AttemptWatching:
    """Watches the attempts of all tasks.

    Attributes:
        deferred: for each task whose target has accepted the work, the time until which the target may report the end.
        is_off: whether watching is turned off, for tests whose calls are not made by a simulated process.
        hears_all: whether this watcher is informed of all user requests.
        may_cancel: ids, names and types of tasks that users have asked to cancel.
        errors: the class of the error that the handler raised, by task and fence.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._claimed_by: dict[str, tuple[int, Strand]] = {}
        self._used: Counter[str] = Counter()
        self._heard: dict[str, int] = {}
        self._unreceived: Counter[str] = Counter()
        self._stopped: dict[str, int] = {}
        self._asked_at: dict[str, Millis] = {}
        self._switches: dict[str, tuple[Millis, int]] = {}
        self.deferred: dict[str, Millis] = {}
        self.is_off = False
        self.hears_all = True
        self.may_cancel: set[str] = set()
        self.errors: dict[tuple[str, int], str] = {}

    def written(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Check a change to a task's record."""
        if not self.is_off:
            self._watch(name, old, new)

    def _watch(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        before, after = read_state(old[_STATE]), read_state(new[_STATE])
        fence, author = int(new[_FENCE]["N"]), self._account.time.author()
        if fence > int(old[_FENCE]["N"]):
            is_unreceived = self._was_unreceived(name, old)
            self._claimed_by[name] = (fence, author)
            self._used[name] += after is State.RUNNING and not is_unreceived
        else:
            self._hear(name, old, new)
            is_ending = after is not before or new.get(_LEASE) != old.get(_LEASE)
            if before in _LEASED and is_ending:
                self._check_author(name, fence, author, f"{before} to {after}", new)
            if before in _AT_WORK:
                self._count(name, old, new, after)
                self._check_errors(name, task_of(new))
        if after is State.CANCELLED and before is not after:
            self._check_wanted(name, new)
        if before in _AT_WORK and after in _ENDED:
            self._check_alone(name, author, after)
        if _ASKED in new and _ASKED not in old:
            self._asked_at[name] = self._account.time.now()
        elif _ASKED not in new:
            self._asked_at.pop(name, None)
        if after is State.RUNNING and new.get(_DEFERRED) == new[_FENCE] and _LEASE in new:
            self.deferred[name] = int(new[_LEASE]["N"])
        else:
            self.deferred.pop(name, None)
        if after is State.SCHEDULED and before is State.FAILED:
            self._stopped.pop(name, None)
            self._used[name] = 0

    def _hear(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Record a write by the holder of a lease; user requests and writes for waiting tasks do not count."""
        if all(new.get(each) == old.get(each) for each in (_ASKED, _ACTIONS, _DEPENDENTS)):
            self._heard[name] = int(new[_FENCE]["N"])

    def _was_unreceived(self, name: str, old: Mapping[str, Any]) -> bool:
        """Whether a lease ended without a report and is one of the few such leases that do not count as attempts."""
        task = task_of(old)
        fence, claimer = self._claimed_by.get(name, (0, None))
        home = None if claimer is None else claimer.home
        is_pulled = task.state is State.RUNNING and isinstance(home, Machine) and home.function == "api"
        if not is_pulled or self._heard.get(name) == fence:
            self._unreceived[name] = 0
            return False
        self._unreceived[name] += 1
        return self._unreceived[name] <= MOST_UNRECEIVED

    def _count(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any], after: State) -> None:
        """Check that a failure ends a task only after the last attempt.

        Attempts that were put back or paused do not count.
        """
        is_put_back = after is State.PAUSED or (
            after is State.WAITING and new.get(_ATTEMPT_HISTORY) == old.get(_ATTEMPT_HISTORY)
        )
        if is_put_back:
            self._used[name] -= 1
        elif after in {State.FAILED, State.ROLLING_BACK}:
            task = task_of(new)
            is_retriable = task.error is not None and task.error.type in _RETRIABLE
            if is_retriable and not isinstance(task.target, TopologyTarget):
                used, allowed = self._used[name], task.retry.max_attempts
                is_spent = used >= allowed or self._is_late(task, task_of(old).attempt)
                self._check(is_spent, f"{name} failed after {used} of {allowed} attempts: {task.error}")
            self._used[name] = 0

    def _is_late(self, task: Task, attempt: int) -> bool:
        """Whether the next attempt might have been too late.

        The attempt number in the record may include rollback attempts.
        """
        next_at = self._account.time.now() + max(task.retry.bound(attempt), OVERDUE)
        return task.retry_by is not None and next_at + 2 * SKEW > task.retry_by

    def _check_author(self, name: str, fence: int, author: Strand, what: str, new: Mapping[str, Any]) -> None:
        """Check that a worker ends an attempt, or renews its lease, only if it began the attempt itself."""
        home = author.home
        known, claimer = self._claimed_by.get(name, (0, author))
        if not isinstance(home, Machine) or home.function != "worker" or known != fence or claimer is author:
            return
        target = task_of(new).target
        # If the work runs outside of duetime, another process may end the attempt, because the process that started it
        # has ended.
        runs_elsewhere = isinstance(target, TopologyTarget) or is_job(target)
        self._check(runs_elsewhere, f"{name} went from {what} by {home}, but attempt {fence} is another process's")

    def _check_alone(self, name: str, author: Strand, after: State) -> None:
        """Check that an attempt whose target is still running is ended only by the attempt's own process."""
        others = [
            effect
            for effect in self._account.watching.live
            if effect.task_id == name and effect.lives and not effect.was_frozen
            if effect.phase in _BEGINNING and effect.process is not author
        ]
        self._check(not others, f"{name} became {after} by {author.home} while {others} goes on")

    def _check_wanted(self, name: str, new: Mapping[str, Any]) -> None:
        """Check that a user asked for each cancellation; `DependencyWatching` checks tasks that never started."""
        task = task_of(new)
        if task.was_never_let_start:
            return
        is_apart = task.node_ref is not None or task.schedule_ref is not None or isinstance(task.target, TopologyTarget)
        # Group members are cancelled with their group, and the task that runs after the group is cancelled by its rule.
        is_apart = is_apart or task.group is not None or task.completes is not None
        is_wanted = is_apart or not self.hears_all or not self.may_cancel.isdisjoint({name, task.name, task.type})
        self._check(is_wanted, f"{name}, called {task.name!r}, was cancelled, and nobody has asked for that")

    def switched(self, task_type: str, most: int | None) -> None:
        """Record how many tasks of a type an operator permits to run concurrently; `None` means no limit."""
        if most is None:
            self._switches.pop(task_type, None)
        else:
            self._switches[task_type] = (self._account.time.now(), most)

    def unswitched(self) -> None:
        """Record that all limits were deleted."""
        self._switches.clear()

    def _check_switch(self, task: Task, phase: str) -> None:
        """Check that no task of a stopped type begins, and that the tasks of a limited type do not exceed its limit."""
        set_at, most = self._switches.get(task.type, (0, 0))
        claimed_at = self._account.watching.claimed_at
        if task.type not in self._switches or claimed_at.get(task.id.text, 0) < set_at + SWITCHED:
            return
        others = {
            effect.task_id
            for effect in self._account.watching.live
            if effect.lives and not effect.was_frozen and effect.task_type == task.type
            if claimed_at.get(effect.task_id, 0) >= set_at + SWITCHED and effect.phase != "clean"
        }
        number = len(others | {task.id.text})
        self._check(
            number <= most, f"{phase} of {task.id} began as number {number} of {task.type}, of which {most} may"
        )

    def asked_to_stop(self, task_id: str, fence: int) -> None:
        """Record a response that reports that a running task will stop."""
        self._stopped[task_id] = fence

    def began(self, task: Task, phase: str, fence: int) -> None:
        """Check a call of a target."""
        name = task.id.text
        if phase not in _BEGINNING or task.fence != fence:
            return
        used, allowed = self._used[name], task.retry.max_attempts
        self._check(used <= allowed, f"{name} began attempt {used} of {allowed}")
        self._check_switch(task, phase)
        stopped = self._stopped.get(name)
        self._check(stopped is None or fence <= stopped, f"{name} began again although it was to stop for good")

    def fails(self, effect: Effect, kind: str) -> None:
        """Record that a handler raises an error. The error must end the attempt, unless another fault does so first."""
        if effect.phase in _BEGINNING:
            self.errors[effect.task_id, effect.fence] = kind

    def _check_errors(self, name: str, task: Task) -> None:
        """Check that without faults, an attempt is not lost when its handler raises an error of any kind."""
        if self._account.faulty or not task.attempt_history:
            return
        for line in task.attempt_history:
            kind = self.errors.get((name, line.fence))
            is_lost = line.outcome is AttemptOutcome.LOST and name not in self._account.watching.overdue
            self._check(kind is None or not is_lost, f"attempt {line.fence} of {name} failed by {kind}, and was lost")

    def look(self) -> None:
        """Check whether calls of targets last too long."""
        now = self._account.time.now()
        for effect in self._account.watching.live:
            if effect.lives and not effect.was_frozen:
                self._look_at(effect, now)

    def _look_at(self, effect: Effect, now: Millis) -> None:
        if effect.phase != "clean":
            late = now - effect.attempt_began - effect.timeout
            self._check(late <= OVERDUE, f"{effect} goes on {late} ms after its time")
        asked_at = self._asked_at.get(effect.task_id)
        # A task that runs in another task's call ends with that call, regardless of requests for the task itself.
        is_alone = effect.task_id not in self._account.joined
        if asked_at is not None and effect.phase == "run" and is_alone and not self._account.faulty:
            task = self._account.watching.record(effect.task_id)
            is_notified = task is None or task.fence != effect.fence or not isinstance(task.target, HandlerTarget)
            ago = now - max(asked_at, effect.began)
            self._check(is_notified or ago <= TOLD, f"{effect} was not told for {ago} ms what its user asks")

    def _check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        self._account.watching.check(holds, violation)
