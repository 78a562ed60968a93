"""Invariants of an account under all faults, which are checked at each write of a record and each call of a target."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.field_codecs import read_state
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, key_of, task_of
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import INTAKE_KEPT
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.notices import CALLBACK_TYPE
from duetime.domain.tasks.states import LEASED, STARTABLE, TERMINAL, State
from duetime.domain.tasks.targets import ApprovalTarget, AwsTarget, HandlerTarget, HttpTarget
from duetime.domain.tasks.task_options import LockScope
from duetime.domain.times import MINUTE, SECOND, Millis
from duetime_testing.simulation.code_versions import UNKNOWN
from duetime_testing.simulation.machines import SKEW, Machine
from tests.simulation.attempt_watching import MOVES
from tests.simulation.endpoints import CONFLICT, RETRY_AFTER, SINK_URL, message_owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import LockMode, LockSpec
    from duetime_testing.simulation.virtual_time import Strand
    from tests.simulation.fault_simulation import FaultSimulation

_STATE, _FENCE, _VERSION, _FINISHED = (ATTRIBUTES[name].name for name in ("state", "fence", "version", "finished_at"))
_ATTEMPT_HISTORY = ATTRIBUTES["attempt_history"].name
_ERASED = ATTRIBUTES["erased"].name
_LEASE = ATTRIBUTES["lease_expires_at"].name
_NODE_REF = ATTRIBUTES["node_ref"].name
_BEGINNING = frozenset({"prepare", "run"})
PROMPT, TENTH = 10 * SECOND, 400
"""The maximum lateness without faults, in milliseconds, of all starts and of nine in ten starts."""
_AHEAD = 3 * SECOND
_CLOCKS = 10 * SECOND
_FEW = 5
"""The minimum number of starts for which the limit for nine in ten starts is checked."""
MENDED = 15 * MINUTE
"""How late a start may be when no more calls fail.

The first scan finds most tasks after 3 minutes, but a message whose visibility timeout was never set is invisible for
this long.
"""
FOUND = 6 * MINUTE
"""How long after its lease a lost attempt is taken over when no more calls fail, whichever attempt it is.

A scan finds the task within 3 minutes, and the trigger's first invocation comes within one minute. After days without
an invocation of the trigger, the minutes that were missed are scanned one after another.
"""


@dataclass
class Effect:
    """One call of a target, from its start until the call or its process ends.

    Attributes:
        attempt_began: when the first phase of the attempt began, because all phases share the timeout.
        was_frozen: whether its process was suspended during the call, so that its lease may have ended unnoticed.
    """

    task_id: str
    phase: str
    fence: int
    began: Millis
    process: Strand = field(repr=False)
    locks: tuple[LockSpec, ...] = ()
    timeout: Millis = 0
    attempt_began: Millis = 0
    ended: Millis | None = None
    was_frozen: bool = False
    task_type: str = ""
    owner: str = ""

    @property
    def lives(self) -> bool:
        """Whether the call is still running."""
        return self.ended is None and not self.process.done

    @property
    def held_locks(self) -> list[LockSpec]:
        """The locks that must be held during the call."""
        return [lock for lock in self.locks if lock.scope is LockScope.TASK or self.phase in {"run", "rollback"}]


@dataclass
class Watching:
    """Watches an account.

    Attributes:
        violations: descriptions of the violated invariants.
        cancelled: tasks whose cancellation was acknowledged.
        accepted: tasks whose creation was acknowledged.
        effects: the number of calls of targets.
        latest: the maximum lateness of a start without a lock, measured from the task's own time.
        latest_in_calm: the maximum lateness of starts after the last fault, counted from that fault.
        taken_over: the longest time from the end of a lease to the next attempt, after the last fault.
        lateness: the lateness of each start without a lock whose task was created some seconds before its due time.
        live: the running calls of targets.
        taken_up: the fence of each attempt that was claimed in time without a takeover and has not yet called its
            target.
        accepted_topologies: topologies whose creation was acknowledged.
        claimed_at: when each task was last claimed.
        attempts: when the first phase of each attempt began, by task and fence.
        begun: tasks whose first attempt has begun.
        tasks_made: the number of created task records.
        events: the names of the tasks that events to the intake have requested, with the times of the events.
        callbacks: the states that were posted to the callback URL of each task.
        outcomes: the states in which each task has ended, in order; retries and rollbacks lead to several ends.
        retried: how often each task with a callback URL was started again after its end.
        moves: all pairs of a state and its next state that occurred.
        overdue: tasks with a call of a target that did not end in time, so that its process ended.
        lost: attempts, by task and fence, whose lease ended without a report, so that another attempt took over.
        reported: attempts, by task and fence, whose outcome users have reported.
    """

    account: FaultSimulation
    violations: list[str] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    accepted: list[str] = field(default_factory=list)
    effects: int = 0
    latest: Millis = 0
    latest_in_calm: Millis = 0
    taken_over: Millis = 0
    live: list[Effect] = field(default_factory=list)
    taken_up: dict[str, int] = field(default_factory=dict)
    lateness: list[Millis] = field(default_factory=list)
    accepted_topologies: list[str] = field(default_factory=list)
    claimed_at: dict[str, Millis] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Millis] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    tasks_made: int = 0
    events: dict[str, Millis] = field(default_factory=dict)
    callbacks: dict[str, set[str]] = field(default_factory=dict)
    outcomes: defaultdict[str, list[State]] = field(default_factory=lambda: defaultdict(list))
    retried: Counter[str] = field(default_factory=Counter)
    moves: set[tuple[State, State]] = field(default_factory=set)
    overdue: set[str] = field(default_factory=set)
    lost: set[tuple[str, int]] = field(default_factory=set)
    reported: set[tuple[str, int]] = field(default_factory=set)

    def check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        """Record a violation unless the condition holds."""
        if not holds:
            self.account.trace("watch", "VIOLATION", violation)
            self.violations.append(f"{self.account.time.now()}: {violation}")

    def _let_others_look(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        account = self.account
        account.expiries.written(new)
        if (new or old or {})[schema.PARTITION_KEY]["S"].startswith(schema.SCHEDULE_PREFIX):
            account.events.schedule_written(old, new)
        for watching in (account.schedules, account.locks, account.rates, account.unique_keys, account.groups):
            watching.written(old, new)
        account.dependencies.written(old, new)
        account.signals.written(old, new)
        account.ordered_keys.written(old, new)
        account.bulk.written(old, new)

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check that a write changes the state, the version and the fence only as permitted, and removes no record."""
        self._let_others_look(old, new)
        record = new or old
        if record is None or _STATE not in record:
            return
        self.account.events.written(old, new)
        self.account.streams.written(old, new)
        name = record[schema.SORT_KEY]["S"]
        if old is None or new is None:
            self.tasks_made += new is not None
            has_expired = schema.TTL in record and int(record[schema.TTL]["N"]) * SECOND <= self.account.time.now()
            self.check(new is not None or has_expired, f"{name} was removed")
            return
        self.check(UNKNOWN not in old or UNKNOWN in new, f"{name} lost what newer code had written")
        before, after = read_state(old[_STATE]), read_state(new[_STATE])
        self.moves.add((before, after))
        # A due approval can be decided before a worker has claimed it. All other tasks must have begun before they end.
        is_decision = before is State.SCHEDULED and after in {State.SUCCEEDED, State.FAILED}
        is_legal = after in MOVES[before].split() and (
            not is_decision or isinstance(task_of(new).target, ApprovalTarget)
        )
        self.check(is_legal, f"{name} went from {before} to {after}")
        stays = _ERASED in new and after is before
        self.check(_ERASED not in old or stays, f"{name} was deleted, and came back as {after}")
        versions = int(old[_VERSION]["N"]), int(new[_VERSION]["N"])
        self.check(versions[1] == versions[0] + 1, f"{name} went from version {versions[0]} to {versions[1]}")
        fences = int(old[_FENCE]["N"]), int(new[_FENCE]["N"])
        self.check(fences[0] <= fences[1] <= fences[0] + 1, f"{name} went from fence {fences[0]} to {fences[1]}")
        self.account.attempts.written(name, old, new)
        self.account.occurrences.written(name, old, new)
        self.account.nodes.written(old, new)
        if (
            before in LEASED
            and after not in LEASED
            and _ATTEMPT_HISTORY in new
            and old.get(_ATTEMPT_HISTORY) != new[_ATTEMPT_HISTORY]
        ):
            self._check_line(name, task_of(new), before, after)
        if after is State.SUCCEEDED and before is not after:
            others = [each for each in self.live if each.task_id == name and each.lives and not each.was_frozen]
            self.check(not others, f"{name} succeeded while {others} goes on")
            if _NODE_REF in new:
                self.account.topologies.succeeded(name)
        if before in {State.FAILED, State.SUCCEEDED} and after is State.SCHEDULED:
            self.account.topologies.reopened(before, task_of(new))
            self.retried[name] += task_of(old).callback_url is not None
        self.outcomes[name] += [after] * (after in TERMINAL and before not in TERMINAL)
        self.account.jobs.written(name, before, after)
        self.account.topologies.moved(before, after, new)
        if before in STARTABLE and after is State.RUNNING:
            self.taken_up[name] = fences[1]
        if fences[1] > fences[0]:
            self.claimed_at[name] = self.account.time.now()
            if before in LEASED and _LEASE in old:
                self.lost.add((name, fences[0]))
                self._check_taken_over(name, int(old[_LEASE]["N"]))

    def _check_taken_over(self, name: str, over_at: Millis) -> None:
        if self.account.calm_at is None:
            return
        late = self.account.time.now() - max(over_at, self.account.calm_at)
        self.taken_over = max(self.taken_over, late)
        self.check(late <= FOUND, f"{name} was taken over {late} ms after its lease although nothing failed any more")

    def _check_line(self, name: str, task: Task, before: State, after: State) -> None:
        """Check that the end of an attempt is written by the latest attempt."""
        line = task.attempt_history[-1]
        self.check(
            line.fence == task.fence or line.outcome is AttemptOutcome.LOST or _is_late(task),
            f"{name} went from {before} to {after} by the end of attempt {line.fence} under fence {task.fence}",
        )

    def began(self, phase: str, task_id: str, fence: int) -> Effect:
        """Check a call of a target, and return its record."""
        account, task = self.account, self.record(task_id)
        now, process = account.time.now(), account.time.process()
        assert task is not None
        self.effects += 1
        what = f"{phase} of {task_id}, fence {fence}"
        account.trace(process.home, "begins", what)
        # If a notification has just ended this attempt, the record has the due time of the next attempt.
        if phase in _BEGINNING and task.fence == fence and task.state in LEASED:
            # A pull worker uses the clock of the API.
            skew = process.home.fastest_skew if isinstance(process.home, Machine) else SKEW
            self.check(now + skew >= task.next_at, f"{what} began {task.next_at - now - skew} ms early")
            self._check_lateness(task, now, what)
            self._check_expiry(task, now, what)
        self.check(phase not in _BEGINNING or task_id not in self.cancelled, f"{what} began after its cancel")
        self.account.attempts.began(task, phase, fence)
        self.account.events.began(task, phase, fence)
        self.account.rates.began(task, phase, fence, process)
        self.account.ordered_keys.began(task, phase, fence)
        self.account.topologies.began(task, phase)
        if phase in _BEGINNING:
            self.account.schedules.began(task, self.claimed_at.get(task_id, now))
            self.account.occurrences.began(task)
        self.live = [each for each in self.live if each.lives]
        for other in self.live:
            # A process that was suspended cannot know that its lease has ended (see `check_thawed`).
            self.check(other.task_id != task_id or other.was_frozen, f"{what} began while {other} goes on")
        attempt_began = self.attempts.setdefault((task_id, fence), now)
        # A forced release is noticed only by the next heartbeat, so a phase may begin before that.
        is_freed = self.account.locks.was_freed(task, self.claimed_at.get(task_id, now))
        locks = () if is_freed else task.all_locks
        effect = Effect(task_id, phase, fence, now, process, locks, task.timeout_seconds * SECOND, attempt_began)
        effect.task_type, effect.owner = task.type, task.owner
        self._check_lock(effect, what)
        self.live.append(effect)
        return effect

    def ended(self, effect: Effect) -> None:
        """Record that a target has returned."""
        effect.ended = self.account.time.now()
        self.account.trace(effect.process.home, "ends", f"{effect.phase} of {effect.task_id}, fence {effect.fence}")

    def called_back(self, task_id: str, state: str) -> None:
        """Check that a task had the outcome that is posted to its callback URL."""
        # The callback may arrive after a user has retried the task or rolled it back.
        self.check(State(state) in self.outcomes[task_id], f"{task_id} was called back as {state} before its end")
        self.callbacks.setdefault(task_id, set()).add(state)

    def freed(self, key: str) -> None:
        """Record that a lock was released by force from its current holders."""
        self.account.locks.freed(key)
        for effect in self.live:
            if effect.lives:
                effect.locks = tuple(lock for lock in effect.locks if lock.key != key)

    def freezes(self, process: Strand) -> None:
        """Record that a process is suspended, so that its work may be taken over without its noticing."""
        for effect in self.live:
            if effect.process is process and effect.lives:
                effect.was_frozen = True

    def check_thawed(self, process: Strand) -> None:
        """Check that a process which was suspended beyond its leases has noticed their end, and has ended its work."""
        for effect in self.live:
            if effect.process is process and effect.lives and effect.was_frozen:
                task = self.record(effect.task_id)
                self.check(task is None or task.fence == effect.fence, f"{effect} goes on although it lost its lease")

    def ending(self, process: Strand) -> None:
        """Check that without faults, only an overdue target, a lost lock or a report makes a worker end its process."""
        now = self.account.time.now()
        mine = [each for each in self.live if each.process is process and each.lives]
        overdue = [each for each in mine if now - each.attempt_began >= each.timeout]
        self.overdue |= {each.task_id for each in overdue}
        freed = any(self.account.locks.was_freed(self.record(each.task_id), each.attempt_began) for each in mine)
        called = {(each.task_id, each.fence) for each in self.live if each.process is process}
        is_reported = not called.isdisjoint(self.reported)
        self.check(
            self.account.faulty or bool(overdue) or freed or is_reported,
            f"a worker ended its process without need, and with it {mine}",
        )

    def _check_lateness(self, task: Task, now: Millis, what: str) -> None:
        # The scheduler does not determine the number of pull workers.
        if (
            task.all_locks
            or task.completes is not None
            or task.rate is not None
            or task.pull_queue
            or self.taken_up.pop(task.id.text, None) != task.fence
        ):
            return
        late = now - max(task.next_at, self.account.received_from)
        self.latest = max(self.latest, late)
        if task.next_at - task.created_at >= _AHEAD:
            # A task that is due at once is sent at once, so the queue's delay shows only for other tasks.
            self.lateness.append(late)
        self.check(self.account.faulty or late <= PROMPT, f"{what} began {late} ms late without a fault")
        if self.account.calm_at is not None:
            after = now - max(task.next_at, self.account.calm_at)
            self.latest_in_calm = max(self.latest_in_calm, after)
            self.check(after <= MENDED, f"{what} began {after} ms late although nothing failed any more")

    def _check_expiry(self, task: Task, now: Millis, what: str) -> None:
        """Check that no attempt of a handler begins after the task's expiry, even by a clock that differs."""
        is_first = task.attempt == 1 and task.id.text not in self.begun
        self.begun.add(task.id.text)
        start_by = task.start_by if is_first else task.retry_by
        if start_by is None or not isinstance(task.target, HandlerTarget):
            return
        is_in_time = now <= start_by + 2 * SKEW or (task.id.text, task.fence) in self.attempts
        self.check(is_in_time, f"{what} began {now - start_by} ms after it had expired")

    def _check_lock(self, effect: Effect, what: str) -> None:
        for lock in effect.held_locks:
            modes = {
                each.task_id: held.mode
                for each in self.live
                if each.owner == effect.owner and not each.was_frozen
                for held in each.held_locks
                if held.key == lock.key
            }
            modes |= self._deferred_under(lock, effect.owner)
            modes[effect.task_id] = lock.mode
            self.check(len(modes) <= lock.limit, f"{what} began as number {len(modes)} under lock {lock.key}")
            self.check(len({*modes.values()}) == 1, f"{what} began under lock {lock.key} beside another mode: {modes}")

    def _deferred_under(self, lock: LockSpec, owner: str) -> dict[str, LockMode]:
        """The tasks that hold an owner's lock because their targets have accepted the work and will report its end."""
        now = self.account.time.now()
        found: dict[str, LockMode] = {}
        for task_id, until in self.account.attempts.deferred.items():
            task = self.record(task_id) if until > now else None
            if (
                task is None
                or task.owner != owner
                or self.account.locks.was_freed(task, self.claimed_at.get(task_id, now))
            ):
                continue
            if held := _named(task, lock.key):
                found[task_id] = held.mode
        return found

    def record(self, task_id: str) -> Task | None:
        """A task's record."""
        key = key_of(TaskId(task_id))
        item = self.account.table.get((key[schema.PARTITION_KEY]["S"], task_id))
        return task_of(item) if item is not None else None

    def tasks(self) -> Iterator[Task]:
        """All task records."""
        yield from (task_of(item) for item in self.account.table.every() if _STATE in item)

    def unfinished(self) -> list[Task]:
        """The tasks that have not ended."""
        open_items = [item for item in self.account.table.every() if _STATE in item and _FINISHED not in item]
        return [task_of(item) for item in open_items]

    def check_end(self) -> None:
        """Check that every accepted task exists and has ended, and let all other watchers check the end."""
        for task in self.unfinished():
            self.check(self.account.schedules.is_endless(task), f"{task.id} is still {task.state}")
        for task_id in self.accepted:
            self.check(self.record(task_id) is not None, f"{task_id} was accepted and is not there")
        if not self.account.faulty and len(self.lateness) > _FEW:
            *_, tenth = quantiles(self.lateness, n=10)
            self.check(tenth <= TENTH, f"a tenth of all starts were {tenth:.0f} ms late or more without a fault")
        self._check_callbacks()
        names = Counter(
            task.name
            for task in self.tasks()
            if task.name and task.node_ref is None and not task.schedule_ref and task.type != CALLBACK_TYPE
        )
        for name, number in names.items():
            # An event that is delivered again after the number of shards has grown creates a second task.
            may_differ = name in self.events and "shards doubled" in self.account.faults
            self.check(number == 1 or may_differ, f"{name} was asked for once, and there are {number} tasks")
        for name, sent_at in self.events.items():
            # The queue keeps an event for four days, and there may have been more days without an invocation.
            is_expired = self.account.silent_until - sent_at > INTAKE_KEPT
            self.check(name in names or is_expired, f"the event {name} became no task")
        self._check_outside()
        self.account.locks.check_end()
        self.account.bulk_users.check_changed()
        self.account.bulk.check_end()
        self.account.expiries.check_end()
        self.account.events.check_end()
        self.account.occurrences.check_end()
        self.account.jobs.check_end()
        self.account.topologies.check_end(self.accepted_topologies)
        self.account.schedules.check_end()

    def _check_callbacks(self) -> None:
        """Check that each outcome that requires a callback has exactly one callback task."""
        made = Counter(task.name for task in self.tasks() if task.type == CALLBACK_TYPE)
        for name, number in made.items():
            most = len(self.outcomes[name or ""])
            self.check(number <= most, f"{name} has {number} callbacks of {most} outcomes")
        for task in self.tasks():
            least = self.retried[task.id.text]
            if task.callback_url and task.finished_at and task.state in {State.SUCCEEDED, State.FAILED}:
                least += 1
            number = made[task.id.text]
            self.check(number >= least, f"{task.id} has {number} callbacks of at least {least} outcomes")

    def _check_outside(self) -> None:
        """Check that the messages of succeeded tasks were sent, and that tasks with a callback URL were called back."""
        sent = Counter(message_owner(held.body) for held in self.account.sqs.queues[SINK_URL].messages)
        # A callback is a task that is named after the ended task's id, so that users may cancel it by this name, too.
        cancelled = {task.name for task in self.tasks() if task.type == CALLBACK_TYPE and task.state is State.CANCELLED}
        taken_back = cancelled & self.account.attempts.may_cancel
        for task in self.tasks():
            if isinstance(task.target, AwsTarget) and not task.target.is_job and task.state is State.SUCCEEDED:
                self.check(sent[task.id.text] > 0, f"{task.id} succeeded, and its message was not sent")
            if task.callback_url and task.finished_at and task.state in {State.SUCCEEDED, State.FAILED}:
                told = self.callbacks.get(task.id.text, set())
                is_notified = str(task.state) in told or task.id.text in taken_back
                self.check(is_notified, f"{task.id} was not called back: {told}")
            self._check_requests(task)

    def _check_requests(self, task: Task) -> None:
        """Check that listed statuses count as success, and that no call is made earlier than `Retry-After` requests."""
        is_custom = isinstance(task.target, HttpTarget) and task.target.request.is_custom
        if not is_custom:
            return
        lines = task.attempt_history
        failed = [line for line in lines if line.error and line.error.type == f"Http{CONFLICT}"]
        self.check(not failed, f"{task.id} has failed by a status that is success")
        if task.actions.records:
            return  # A user may have requested to run the task at once.
        for line, later in itertools.pairwise(lines):
            if line.error and line.error.type == "Http503" and line.started_at and later.started_at:
                waited = later.started_at - line.started_at - line.took
                # The two times come from the clocks of two processes, and these clocks may differ.
                is_patient = waited >= RETRY_AFTER * SECOND - _CLOCKS
                self.check(is_patient, f"{task.id} was called again after {waited} ms")


def _is_late(task: Task) -> bool:
    """Whether an ended attempt does not count because the attempt began too late."""
    return task.error is not None and task.error.type in {"RetryDurationExpired", "LockWaitExpired"}


def _named(task: Task, key: str) -> LockSpec | None:
    """A task's lock with this key; `None` if the task has no lock with the key."""
    return next((lock for lock in task.all_locks if lock.key == key), None)
