"""A world in which everything that can fail does, for a while, and what must hold all the same."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.tasks.attempt_results import Deferred, Ending, Stopped, Succeeded, TargetEnding, Yielded, failure
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import LEGAL, State
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import LockScope, LockSpec, StopRequest, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from tests.virtual.faults import FaultyTaskStore
from tests.virtual.world import OWNER, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work
    from tests.simulation.virtual_time import Strand


@dataclass
class Live:
    """One call of a target, from its start to its end or to the death of its process."""

    task_id: TaskId
    phase: Phase
    fence: int
    began: Millis
    process: Strand = field(repr=False)
    ended: Millis | None = None
    lock: LockSpec | None = None


def _is_under_lock(phase: Phase, lock: LockSpec) -> bool:
    return lock.scope is LockScope.TASK or phase in {Phase.RUN, Phase.ROLLBACK}


class StormyStore(FaultyTaskStore):
    """Tasks in memory; a write may be lost on the way, or its answer, or its writer, before or after."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.moves: list[tuple[TaskId, State, State, str]] = []

    def apply(self, write: Write) -> WriteResult:
        """Make one conditional write, with a fault before or after it."""
        self.before()
        old = self.read(write.task_id)
        result = super().apply(write)
        new = self.read(write.task_id)
        if old is not None and new is not None and new.version != old.version:
            self.moves.append((write.task_id, old.state, new.state, write.move))
            assert new.fence >= old.fence, "a fence went back"
            assert old.state in LEGAL[write.move].sources, f"{write.move} left {old.state}"
        self.after()
        return result


class Storm(World):
    """A world with faults until it is calm, and the invariants that hold in it.

    Attributes:
        faults: how many faults were injected.
        live: every call of a target.
        violations: what did not hold.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.rate = self.random.choice([0.0, 0.003, 0.01, 0.03])
        self.faults = 0
        self.live: list[Live] = []
        self.cancelled: set[TaskId] = set()
        self.made: list[TaskId] = []
        self.violations: list[str] = []
        store = StormyStore()
        super().__init__(tasks=store)
        store.before = store.after = self._fault
        self.queues.refuses = self._refuses
        self.behave = self._behave
        self.offered = frozenset(self.random.sample(sorted(Phase), self.random.randint(0, 4))) | {Phase.RUN}

    def blow(self, duration: Millis) -> None:
        """Let users and faults have their way for a while, then let everything come to its end."""
        for _ in range(4):
            self.time.start_process(lambda: self._use(self.time.now() + duration))
        self.time.start_process(lambda: self._vandalise(self.time.now() + duration))
        self.pass_time(duration)
        self.rate = 0.0
        self.ticking = self.receiving = True
        self._look_for_messages()
        for _ in range(3):
            # An attempt may heed late what it was asked: more than one round finds what is paused.
            self.pass_time(90 * MINUTE)
            for task in self.unfinished():
                if task.state is State.PAUSED:
                    self.task_control.resume(OWNER, task.id)
        self.pass_time(2 * HOUR)

    def run(self, work: Work) -> TargetEnding:
        """Have the target do a phase, under the eyes of the invariants."""
        now, task = self.time.now(), work.task
        self._check(now >= task.next_at, f"{task.id} started {task.next_at - now} ms early")
        is_begun = work.phase in {Phase.PREPARE, Phase.RUN} and task.id in self.cancelled
        self._check(not is_begun, f"{task.id} started after its cancel was acknowledged")
        for other in self.live:
            overlaps = other.task_id == task.id and other.ended is None and not other.process.done
            self._check(not overlaps, f"{other} still runs when {work.phase} begins at {now}, fence {task.fence}")
        self._check_lock(work)
        call = Live(task.id, work.phase, task.fence, now, self.time.process(), lock=task.lock)
        self.live.append(call)
        try:
            return super().run(work)
        finally:
            call.ended = self.time.now()

    def _check_lock(self, work: Work) -> None:
        """No more than the lock's limit work under it, this call included."""
        lock = work.task.lock
        if lock is None or not _is_under_lock(work.phase, lock):
            return
        others = {
            other.task_id
            for other in self.live
            if other.ended is None and not other.process.done and other.lock is not None
            if other.lock.key == lock.key and _is_under_lock(other.phase, other.lock)
        }
        count = len(others | {work.task.id})
        self._check(count <= lock.limit, f"{count} tasks hold lock {lock.key} when {work.task.id} begins {work.phase}")

    def _check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        if not holds:
            self.violations.append(violation)

    def _behave(self, work: Work) -> Ending:
        draw = self.random.random()
        self._spend(work, self.random.choice([0, 0, 100, 2 * SECOND, 20 * SECOND, 70 * SECOND]))
        if draw < self.rate:
            self.take(HOUR)
        if work.phase is Phase.RUN and work.stop_request() is StopRequest.PAUSE:
            return Yielded(b'{"row":1}')
        if work.phase is Phase.RUN and work.stop_request() is StopRequest.CANCEL:
            return Stopped()
        if work.phase is Phase.RUN and draw > 0.9:
            return Deferred()
        if draw > 0.7:
            return failure("Boom", "by chance", retriable=draw > 0.75)
        return Succeeded(b'"done"')

    def _spend(self, work: Work, duration: Millis) -> None:
        """Work in steps, with an ear for what the user asks."""
        until = self.time.now() + duration
        while self.time.now() < until and work.stop_request() is None:
            self.take(min(5 * SECOND, until - self.time.now()))

    def _fault(self) -> None:
        """Fail, crash or stall, now and then."""
        if self.time._current is None or self.random.random() >= self.rate:
            return
        self.faults += 1
        match self.random.randrange(4):
            case 0:
                raise Unavailable("by chance")
            case 1 if self.time.process() is not self._receiver:
                self.time.kill(self.time.process())
            case _:
                self.take(self.random.choice([10, 1000, 8 * SECOND]))

    def _refuses(self) -> bool:
        refused = self.random.random() < self.rate
        self.faults += refused
        return refused

    def _use(self, until: Millis) -> None:
        """Do what users do, at random moments."""
        while self.time.now() < until:
            self.take(self.random.randrange(1, 40 * SECOND))
            with suppress(RequestError, Unavailable):
                self._use_once()

    def _use_once(self) -> None:
        if not self.made or self.random.random() < 0.4:
            self.made.append(self.create(self._spec()).id)
            return
        task_id = self.random.choice(self.made)
        match self.random.randrange(9):
            case 0:
                self.task_updater.cancel(OWNER, task_id, None)
                self.cancelled.add(task_id)
            case 1:
                delay = self.random.choice([0, SECOND, 4 * MINUTE, 15 * MINUTE])
                self.task_updater.change(OWNER, task_id, TaskChange({}, delay=delay), None)
            case 2:
                self.task_control.pause(OWNER, task_id)
            case 3:
                self.task_control.resume(OWNER, task_id)
            case 4:
                self.task_control.run_now(OWNER, task_id)
            case 5:
                self.task_control.stop(OWNER, task_id)
            case 6:
                self.task_control.retry(OWNER, task_id)
            case 7:
                self.task_control.roll_back(OWNER, task_id)
            case _:
                self._notify(task_id)

    def _notify(self, task_id: TaskId) -> None:
        task = self.task_reader.get(OWNER, task_id)
        endings: list[Ending] = [Succeeded(b"1"), failure("Boom", "told")]
        if task.deferred:
            self.task_control.notify(OWNER, task_id, task.fence, self.random.choice(endings))

    def _spec(self) -> TaskSpec:
        pick = self.random.choice
        return TaskSpec(
            "storm",
            delay=pick([0, 300, 5 * SECOND, 90 * SECOND, 5 * MINUTE, 12 * MINUTE]),
            retry=RetryPolicy(max_attempts=pick([1, 3, 5]), initial_seconds=pick([0, 1, 60])),
            timeout_seconds=pick([30, 120]),
            deadline_seconds=pick([10, 300]),
            rollback=pick([True, False]),
            lock=pick([None, None, LockSpec("a"), LockSpec("a", scope=LockScope.RUN), LockSpec("b", 2)]),
        )

    def _vandalise(self, until: Millis) -> None:
        """Duplicate and lose messages, kill workers, stop ticks."""
        while self.time.now() < until:
            self.take(self.random.randrange(1, 30 * SECOND))
            if self.random.random() >= self.rate * 20:
                continue
            self.faults += 1
            match self.random.randrange(5):
                case 0:
                    self.kill_workers()
                case 1:
                    self.lose_messages()
                case 2:
                    self.ticking = not self.ticking
                case _:
                    for task in list(self.tasks._tasks.values())[-5:]:
                        self.queues.send([Outgoing(message_for(task), 0)])

    def unfinished(self) -> list[Task]:
        """The tasks that have not come to their end."""
        return [task for task in self.tasks._tasks.values() if task.finished_at is None]
